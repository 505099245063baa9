"""The table and the JSON of a layout."""

import json

import pytest

from stoker.plan.explain import Row, explain_rows, layout_status
from tests.builders.layouts import planned, traits_of
from tests.builders.specs import H100, SpecBuilder, a_spec

KEYS = {
    "podsPerReplica",
    "gpusPerPod",
    "resourceName",
    "weightBytesPerRank",
    "kvBytesPerTokenPerRank",
    "kvTokens",
    "maxConcurrency",
    "verdict",
    "reasons",
    "suggestions",
    "origins",
    "ranks",
}


def rows(spec: SpecBuilder) -> dict[str, Row]:
    return {row.name: row for row in explain_rows(planned(spec), spec.build(), traits_of(spec))}


def test_the_json_has_the_promised_keys_and_survives_json() -> None:
    status = layout_status(planned(a_spec().on(H100).tensor(2).max_length(8192)))
    assert set(status) >= KEYS
    assert json.loads(json.dumps(status)) == status
    assert status["gpusPerPod"] == 2
    assert status["resourceName"] == "nvidia.com/gpu"
    assert status["kvBytesPerTokenPerRank"] == 65536
    assert status["verdict"] == "Fits"
    assert status["maxConcurrency"] == pytest.approx(status["kvTokens"] / 8192, abs=0.01)
    assert len(status["ranks"]) == 1


def test_what_is_unknown_is_null_and_never_zero() -> None:
    status = layout_status(planned(a_spec().model("hf://acme/novel").on(H100)))
    assert status["verdict"] == "Unknown"
    assert [status[key] for key in ("weightBytesPerRank", "kvBytesPerTokenPerRank", "kvTokens")] == [None] * 3
    assert (status["maxConcurrency"], status["maxLength"], status["gpusPerPod"]) == (None, None, 1)
    assert layout_status(planned(a_spec().on_cpu("64Gi").max_length(1024)))["resourceName"] is None


def test_suggestions_are_fields_to_copy() -> None:
    status = layout_status(planned(a_spec().on("NVIDIA-L4")))
    assert status["suggestions"][0]["fields"] == {"spec.parallelism.tensor": "2"}
    assert status["shortByBytes"] > 0


def test_the_rows_hold_the_arithmetic() -> None:
    found = rows(a_spec().on(H100).max_length(8192))
    assert found["GPUs per pod"] == Row("GPUs per pod", "1 (nvidia.com/gpu)", "tensor 1 x pipeline 1")
    assert found["memory of the engine"].value == "71.68 GiB"
    assert found["memory of the engine"].how == f"0.9 of the GPU (table of known GPUs ({H100}))"
    assert found["- weights"].value == "14.96 GiB"
    assert found["KV cache of a token"].value == "131072 B"
    assert found["verdict"].value == "Fits"


def test_rows_of_a_pipeline_name_their_stage() -> None:
    found = rows(a_spec().on(H100).pipeline(2).tensor(2))
    assert {"stage 0: - weights", "stage 1: - weights"} <= set(found)
    assert found["KV cache holds"].how.endswith("(the least of the stages)")
    assert "tensor 2" in found["stage 0: - weights"].how


def test_rows_of_a_layout_that_does_not_fit_say_what_would() -> None:
    found = rows(a_spec().on("NVIDIA-L4"))
    assert found["verdict"].value == "TooSmall"
    assert "short by" in found["verdict"].how
    assert found["would fit"].value.startswith("spec.")
    nothing = rows(a_spec().model("hf://deepseek-ai/DeepSeek-V3").on(memory="24Gi"))
    assert nothing["would fit"].value == "nothing"


def test_rows_of_contradictions() -> None:
    assert rows(a_spec().on(H100).tensor(3))["contradiction"].value == "spec.parallelism.tensor"


def test_what_contradicts_itself_is_not_said_to_fit_nowhere() -> None:
    found = rows(a_spec().model("hf://deepseek-ai/DeepSeek-V3").on(memory="24Gi").max_length(10**6))
    assert found["verdict"].value == "TooSmall"
    assert found["contradiction"].value == "spec.context.maxLength"
    assert "would fit" not in found


@pytest.mark.parametrize(
    "spec",
    [
        a_spec().on(H100),
        a_spec().on(),
        a_spec().on_cpu("64Gi").max_length(2048),
        a_spec().llama_cpp().on_cpu(),
        a_spec().model("hf://acme/novel").on(H100),
        a_spec().model("hf://google/gemma-3-27b-it").on(H100).pipeline(2),
    ],
)
def test_every_row_has_words(spec: SpecBuilder) -> None:
    assert all(row.name and row.value and row.how for row in explain_rows(planned(spec), spec.build(), traits_of(spec)))


# ---- llama.cpp: slots, layers outside the GPU ----------------------------------------------------------------------
QWEN_32B = {
    "weightBytes": 19_851_335_840,
    "layers": 64,
    "attentionHeads": 40,
    "kvHeads": 8,
    "hiddenSize": 5120,
    "vocabularySize": 152064,
    "maxContextLength": 32768,
}


def split(layers: int = 40, **fields: object) -> SpecBuilder:
    spec = a_spec().llama_cpp(source="pvc://models/qwen.Q4_K_M.gguf").facts(**QWEN_32B).on("NVIDIA-L4").max_length(8192)
    spec = spec.set("execution.gpuLayers", layers).set("batching.maxSequences", 2)
    for path, value in fields.items():
        spec = spec.set(path.replace("_", "."), value)
    return spec


def test_a_split_model_says_what_lies_where() -> None:
    found = rows(split())
    assert found["- weights"].value == "9.74 GiB"
    assert found["- weights"].how == "40 layers (spec.execution.gpuLayers); the other 8.75 GiB lie in the container"
    assert found["verdict"].how == "16384 tokens of KV cache on 1 GPU, that of the other layers in the container"


def test_slots_say_that_they_take_what_they_hold_and_no_more() -> None:
    found = rows(split())
    assert found["KV cache holds"].value == "16384 tokens"
    assert found["KV cache holds"].how == "2 slots of 8192 tokens: 2.5 GiB of what is left"
    too_many = rows(split(batching_maxSequences=16))
    assert too_many["verdict"].value == "TooSmall"
    assert too_many["KV cache holds"].how == "16 slots of 8192 tokens need 20 GiB, more than what is left"


def test_slots_of_a_cpu_engine_are_told_in_tokens() -> None:
    numbers = {"weightBytes": 10**8, "layers": 30, "attentionHeads": 9, "kvHeads": 3, "hiddenSize": 576}
    found = rows(a_spec().llama_cpp(source="pvc://m/a.Q8_0.gguf").facts(**numbers).on_cpu("2Gi").max_length(2048))
    assert found["KV cache holds"].how == "4 slots of 2048 tokens: 180 MiB of what is left"


def test_a_margin_is_called_a_margin() -> None:
    assert rows(split())["memory of the engine"].how.startswith("0.9 of the GPU, the rest is a margin (table of")
    assert rows(a_spec().on(H100))["memory of the engine"].how.startswith("0.9 of the GPU (table of")


def test_what_is_not_known_says_so_once_and_in_words() -> None:
    found = rows(a_spec().llama_cpp().on_cpu())
    assert found["model"].how == "facts: none, see the verdict"
    assert found["weights"].how == "the model is not known"
    assert found["time to start"].how == "30 min, since the size of the weights is not known"
    assert found["verdict"].how.startswith("the model is not known: ")


def test_sizes_of_the_container_say_whose_they_are() -> None:
    stated = rows(a_spec().llama_cpp().on_cpu("8Gi", "4"))
    assert stated["memory of the container"].how == "spec.resources.memory; request and limit"
    assert stated["CPU of the container"].how == "spec.resources.cpu; request, no limit"
    derived = rows(a_spec().on(H100))
    assert derived["memory of the container"].how == "computed from the layout; request and limit"
    assert derived["CPU of the container"].how == "computed from the layout; request, no limit"


def test_a_type_that_the_model_chooses_says_its_size() -> None:
    assert rows(a_spec().on(H100))["KV cache of a token"].how == "32 layers, in auto (2 bytes a value)"
    assert rows(a_spec().on(H100).kv("fp8"))["KV cache of a token"].how == "32 layers, in fp8 (1 byte a value)"


def test_windows_are_no_part_of_what_a_token_takes() -> None:
    found = rows(a_spec().model("hf://google/gemma-2-27b-it").on(H100).tensor(2).max_length(8192))
    assert found["KV cache of a token"].how.startswith("those of 46 layers that keep every token, in auto")
    assert found["KV cache holds"].how == "what is left, in sequences of full length with their windows and states"


def test_what_the_container_keeps_of_a_model_on_gpus_is_told_once() -> None:
    found = rows(split(65, execution_gpuLayers=None, parallelism_pipeline=2, accelerator_memory="48Gi"))
    assert found["stage 0: - weights"].how.startswith("32 layers; the other ")
    assert found["stage 0: - weights"].how.endswith(" lie in the container")
    assert found["stage 1: - weights"].how == "32 layers"
    assert "container" not in rows(a_spec().on(H100))["- weights"].how
