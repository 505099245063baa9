"""What does not fit comes back with the smallest layouts that would, as fields to copy; and those do fit."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.plan.types import EngineTraits, Layout, Verdict
from tests.builders.layouts import gpu, model, planned
from tests.builders.specs import H100, SpecBuilder, a_spec
from tests.builders.traits import vllm_traits

L4, T4, A100, H200 = "NVIDIA-L4", "Tesla-T4", "NVIDIA-A100-SXM4-40GB", "NVIDIA-H200"
LLAMA_70B = "hf://meta-llama/Llama-3.1-70B-Instruct"


def applied(spec: SpecBuilder, fields: Mapping[str, str]) -> SpecBuilder:
    """The spec with the fields of a suggestion, copied as a user would copy them."""
    for path, value in fields.items():
        typed: object = int(value) if value.isdigit() else value
        typed = value[1:-1].split(", ") if value.startswith("[") else typed
        spec = spec.set(path.removeprefix("spec."), typed)
    return spec


def fields_of(layout: Layout) -> list[dict[str, str]]:
    return [dict(suggestion.fields) for suggestion in layout.suggestions]


def gpus_of(fields: Mapping[str, str]) -> int:
    return int(fields.get("spec.parallelism.tensor", "1")) * int(fields.get("spec.parallelism.pipeline", "1"))


def test_the_fewest_gpus_come_first() -> None:
    layout = planned(a_spec().model(LLAMA_70B).on(H100).max_length(32768))
    assert layout.suggestions[0].fields == {"spec.parallelism.tensor": "4"}


def test_what_fits_gets_no_suggestion() -> None:
    assert planned(a_spec().on(H100)).suggestions == ()


def test_fp8_only_where_the_gpu_computes_in_it() -> None:
    native = planned(a_spec().model(LLAMA_70B).on(H100).tensor(2).max_length(131072))
    assert {"spec.quantization.weights": "fp8"} in fields_of(native)
    old = planned(a_spec().model(LLAMA_70B).on(A100).tensor(4).max_length(131072))
    assert all("spec.quantization.weights" not in fields for fields in fields_of(old))


def test_the_largest_length_that_fits_is_named() -> None:
    layout = planned(a_spec().on(L4))
    lengths = [int(it["spec.context.maxLength"]) for it in fields_of(layout) if "spec.context.maxLength" in it]
    assert len(lengths) == 1
    assert planned(a_spec().on(L4).max_length(lengths[0])).verdict is Verdict.FITS
    assert planned(a_spec().on(L4).max_length(lengths[0] + 2048)).verdict is Verdict.TOO_SMALL


def test_no_more_gpus_than_the_largest_node_has() -> None:
    spec = a_spec().model(LLAMA_70B).on(L4).max_length(8192)
    eight, four = planned(spec, device=gpu(L4)), planned(spec, device=gpu(L4, largest=4))
    assert gpus_of(fields_of(eight)[0]) == 8
    assert all(gpus_of(fields) <= 4 for fields in fields_of(four))


def test_tensor_sizes_that_the_heads_do_not_allow_are_not_suggested() -> None:
    spec = a_spec().model("hf://microsoft/phi-4").on(L4).max_length(4096)
    assert fields_of(planned(spec))[0] == {"spec.parallelism.tensor": "2"}
    quarter = planned(spec, device=gpu(memory_bytes=14 * 2**30))
    assert fields_of(quarter)[0] == {"spec.parallelism.tensor": "2", "spec.parallelism.pipeline": "2"}


def test_no_length_beyond_that_of_the_model_is_suggested() -> None:
    layout = planned(a_spec().on(H100).max_length(1_000_000))
    assert {"spec.context.maxLength": "131072"} in fields_of(layout)
    assert_suggestions_fit(a_spec().on(H100).max_length(1_000_000))


@pytest.mark.parametrize(
    "spec",
    [
        a_spec().model(LLAMA_70B).on(H100).max_length(32768).set("resources.memory", "8Gi"),
        a_spec().llama_cpp(source="pvc://m/x.F16.gguf").on(L4).set("resources.memory", "1Gi").max_length(65536),
    ],
)
def test_a_container_that_would_be_too_small_grows_with_the_layout(spec: SpecBuilder) -> None:
    spec = spec.facts(**NUMBERS) if "llama.cpp" in str(spec.raw()) else spec
    assert any("spec.resources.memory" in fields for fields in fields_of(planned(spec)))
    assert_suggestions_fit(spec)


def test_a_fraction_that_leaves_most_of_the_gpu_idle_is_raised_first() -> None:
    spec = a_spec().on(H100).max_length(8192).memory_fraction("0.1")
    assert fields_of(planned(spec))[0] == {"spec.accelerator.memoryFraction": "0.9"}
    assert_suggestions_fit(spec)


def test_two_changes_at_once_where_one_is_not_enough() -> None:
    spec = a_spec().model("hf://meta-llama/Llama-3.1-405B-Instruct").on(H100).max_length(8192)
    first = fields_of(planned(spec))[0]
    assert first == {"spec.parallelism.tensor": "8", "spec.quantization.weights": "fp8"}


def test_another_gpu_only_where_nothing_else_helps() -> None:
    spec = a_spec().model("hf://deepseek-ai/DeepSeek-V3").on(H100).tensor(8).max_length(65536)
    assert [list(fields) for fields in fields_of(planned(spec))] == [["spec.accelerator.products"]]
    stated = planned(a_spec().model("hf://deepseek-ai/DeepSeek-V3").on(memory="80Gi").tensor(8).max_length(65536))
    assert stated.suggestions == ()


def test_at_most_four() -> None:
    layout = planned(a_spec().on_cpu("6Gi").llama_cpp().facts(**NUMBERS).max_length(8192))
    assert 2 <= len(layout.suggestions) <= 4


NUMBERS = {
    "parameterCount": 8_030_261_248,
    "layers": 32,
    "attentionHeads": 32,
    "kvHeads": 8,
    "hiddenSize": 4096,
    "vocabularySize": 128256,
    "maxContextLength": 131072,
}
MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.1-70B-Instruct",
    "meta-llama/Llama-3.1-405B-Instruct",
    "Qwen/Qwen2.5-7B-Instruct",
    "microsoft/phi-4",
    "google/gemma-3-27b-it",
    "deepseek-ai/DeepSeek-V3",
    "openai/gpt-oss-120b",
    "Qwen/Qwen3-30B-A3B",
    "HuggingFaceTB/SmolLM2-135M-Instruct",
)


def assert_suggestions_fit(spec: SpecBuilder, traits: EngineTraits | None = None) -> None:
    layout = planned(spec, traits=traits)
    for suggestion in layout.suggestions:
        better = planned(applied(spec, suggestion.fields), traits=traits)
        assert better.verdict is Verdict.FITS, (suggestion, better.reasons)
        assert set(better.faults) <= set(layout.faults)
    assert (layout.verdict is Verdict.TOO_SMALL) or not layout.suggestions


@settings(max_examples=120, deadline=None)
@given(
    repository=st.sampled_from(MODELS),
    product=st.sampled_from([T4, L4, A100, H100, H200]),
    tensor=st.sampled_from([1, 2, 4, 8]),
    pipeline=st.sampled_from([1, 2, 3]),
    length=st.integers(256, 131072),
    fraction=st.sampled_from(["0.5", "0.9"]),
)
def test_suggestions_fit_on_gpus(
    repository: str, product: str, tensor: int, pipeline: int, length: int, fraction: str
) -> None:
    length = min(length, model(repository).max_length or length)
    spec = a_spec().model(f"hf://{repository}").on(product).tensor(tensor).pipeline(pipeline)
    assert_suggestions_fit(spec.max_length(length).memory_fraction(fraction))


@settings(max_examples=60, deadline=None)
@given(
    repository=st.sampled_from(MODELS[:5]),
    memory=st.sampled_from(["2Gi", "8Gi", "32Gi", "128Gi"]),
    length=st.integers(256, 16384),
)
def test_suggestions_fit_on_cpus(repository: str, memory: str, length: int) -> None:
    assert_suggestions_fit(a_spec().model(f"hf://{repository}").on_cpu(memory).max_length(length))


@settings(max_examples=60, deadline=None)
@given(
    product=st.sampled_from([T4, L4, A100]),
    length=st.integers(256, 131072),
    slots=st.integers(1, 16),
    gpu_layers=st.one_of(st.none(), st.integers(1, 33)),
    kind=st.sampled_from(["F16", "Q8_0", "Q4_K_M"]),
)
def test_suggestions_fit_for_llama_cpp(
    product: str, length: int, slots: int, gpu_layers: int | None, kind: str
) -> None:
    spec = a_spec().llama_cpp(source=f"pvc://models/llama-8b.{kind}.gguf").facts(**NUMBERS).on(product)
    spec = spec.max_length(length).set("batching.maxSequences", slots).set("execution.gpuLayers", gpu_layers)
    assert_suggestions_fit(spec)


@pytest.mark.parametrize("traits", [vllm_traits(supports_tensor=False), vllm_traits(supports_pipeline=False)])
def test_what_the_engine_cannot_do_is_not_suggested(traits: EngineTraits) -> None:
    spec = a_spec().model(LLAMA_70B).on(H100).max_length(8192)
    assert_suggestions_fit(spec, traits)
    forbidden = "spec.parallelism.pipeline" if traits.supports_tensor else "spec.parallelism.tensor"
    assert all(forbidden not in fields for fields in fields_of(planned(spec, traits=traits)))
