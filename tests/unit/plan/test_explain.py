"""The table and the JSON of a layout."""

import json

import pytest

from stoker.plan.explain import Row, explain_rows, layout_status
from tests.builders.layouts import planned
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
    return {row.name: row for row in explain_rows(planned(spec), spec.build())}


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
    assert all(row.name and row.value and row.how for row in explain_rows(planned(spec), spec.build()))
