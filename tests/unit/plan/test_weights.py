"""Weights: published sizes, quantizations, and what tensor and pipeline parallelism divide."""

from decimal import Decimal

import pytest

from stoker.facts.config import facts_from_config
from stoker.facts.model import Checkpoint, ModelFacts
from stoker.plan.numbers import facts_from_numbers
from stoker.plan.stages import cut, layers_per_stage, split
from stoker.plan.weights import WeightFormat, gguf_format, method_format, stage_weight_bytes
from tests.builders.configs import a_config
from tests.builders.layouts import GIB, model, tiny
from tests.builders.specs import a_spec

GB = 10**9


def whole(facts: ModelFacts, form: WeightFormat, tensor: int = 1) -> int:
    return sum(stage_weight_bytes(stage, form, tensor) for stage in cut(facts, 1))


# Published sizes in GB (1e9): 16 bits, fp8 and 4 bits in groups of 128, with embeddings in 16 bits.
SIZES = {
    "meta-llama/Llama-2-7b-hf": (13.5, 7.0, 3.9),
    "meta-llama/Meta-Llama-3-8B": (16.1, 9.1, 5.7),
    "mistralai/Mistral-7B-v0.3": (14.5, 7.5, 4.1),
    "Qwen/Qwen2.5-7B": (15.2, 8.7, 5.5),
    "Qwen/Qwen3-8B": (16.4, 9.4, 6.1),
    "microsoft/phi-4": (29.3, 15.7, 9.1),
    "google/gemma-2-27b": (54.5, 28.4, 15.8),
    "Qwen/Qwen3-30B-A3B": (61.1, 31.2, 16.7),
    "Qwen/Qwen2.5-32B": (65.5, 34.3, 19.2),
    "mistralai/Mixtral-8x7B-v0.1": (93.4, 47.0, 24.5),
    "meta-llama/Llama-2-70b-hf": (138.0, 69.5, 36.4),
    "meta-llama/Meta-Llama-3-70B": (141.1, 72.7, 39.5),
    "Qwen/Qwen2.5-72B": (145.4, 75.2, 41.2),
    "mistralai/Mixtral-8x22B-v0.1": (281, 141, 73),
    "Qwen/Qwen3-235B-A22B": (470, 236, 123),
    "meta-llama/Llama-3.1-405B": (811.7, 410, 216),
}


@pytest.mark.parametrize(("repository", "sizes"), SIZES.items(), ids=SIZES)
def test_published_sizes_of_weights(repository: str, sizes: tuple[float, float, float]) -> None:
    facts = model(repository)
    found = [whole(facts, method_format(facts, method)) / GB for method in (None, "fp8", "awq")]
    assert found[0] == pytest.approx(sizes[0], rel=0.006)
    assert found[1] == pytest.approx(sizes[1], rel=0.01)
    assert found[2] == pytest.approx(sizes[2], rel=0.02)


@pytest.mark.parametrize(
    ("repository", "gigabytes"),
    {"openai/gpt-oss-20b": 13.8, "openai/gpt-oss-120b": 65, "deepseek-ai/DeepSeek-V3": 673}.items(),
)
def test_checkpoints_that_are_published_quantized(repository: str, gigabytes: float) -> None:
    facts = model(repository)
    assert whole(facts, method_format(facts, None)) / GB == pytest.approx(gigabytes, rel=0.01)


@pytest.mark.parametrize(
    ("repository", "kind", "gigabytes"),
    [
        ("HuggingFaceTB/SmolLM2-135M", "Q4_1", 0.098),
        ("meta-llama/Meta-Llama-3-8B", "Q4_K_M", 4.92),
        ("meta-llama/Meta-Llama-3-8B", "Q8_0", 8.54),
        ("meta-llama/Meta-Llama-3-8B", "F16", 16.07),
    ],
)
def test_published_sizes_of_gguf_files(repository: str, kind: str, gigabytes: float) -> None:
    facts = model(repository)
    assert whole(facts, gguf_format(facts, kind)) / GB == pytest.approx(gigabytes, rel=0.02)


def test_the_index_beats_the_parameter_count() -> None:
    stated = facts_from_config(a_config(), {"metadata": {"total_size": 777_777}})
    assert whole(stated, method_format(stated, None)) == pytest.approx(777_777, abs=2)


def test_the_index_of_a_16_bit_checkpoint_is_halved_by_fp8() -> None:
    stated = facts_from_config(a_config(vocab_size=1), {"metadata": {"total_size": 1_000_000}})
    assert whole(stated, method_format(stated, "fp8")) == pytest.approx(500_000, rel=0.01)


def test_a_checkpoint_is_not_quantized_twice() -> None:
    facts = model("deepseek-ai/DeepSeek-V3")
    assert whole(facts, method_format(facts, "fp8")) == whole(facts, method_format(facts, None))


def test_an_unknown_method_of_a_checkpoint_counts_as_16_bits() -> None:
    facts = tiny(quantization_config={"quant_method": "mystery"})
    assert whole(facts, method_format(facts, None)) == whole(tiny(), method_format(tiny(), None))


def test_stated_bits_of_a_checkpoint() -> None:
    eight = tiny(quantization_config={"quant_method": "compressed-tensors", "config_groups": {"g": {"num_bits": 8}}})
    assert eight.checkpoint == Checkpoint("compressed-tensors", Decimal(8))
    assert whole(eight, method_format(eight, None)) < 0.8 * whole(tiny(), method_format(tiny(), None))


def test_tensor_divides_matrices_and_leaves_norms_and_latent_projections_whole() -> None:
    facts = model("deepseek-ai/DeepSeek-V3")
    form = method_format(facts, None)
    whole_parts = sum(layer.parameters.whole + 2 * layer.parameters.kept for layer in facts.layers)
    one, eight = whole(facts, form), whole(facts, form, 8)
    assert eight == pytest.approx((one - whole_parts) / 8 + whole_parts, rel=1e-6)
    assert eight > one / 8


@pytest.mark.parametrize(
    ("layers", "stages", "expected"),
    [
        (61, 2, (31, 30)),
        (61, 4, (15, 15, 16, 15)),
        (80, 4, (20, 20, 20, 20)),
        (5, 4, (1, 1, 2, 1)),
        (7, 4, (2, 2, 2, 1)),
        (4, 4, (1, 1, 1, 1)),
        (30, 1, (30,)),
    ],
)
def test_layers_are_cut_as_vllm_cuts_them(layers: int, stages: int, expected: tuple[int, ...]) -> None:
    assert layers_per_stage(layers, stages) == expected


def test_embeddings_lie_on_the_first_stage_and_the_output_on_the_last() -> None:
    first, middle, last = cut(model("meta-llama/Meta-Llama-3-8B"), 3)
    table = 128256 * 4096
    assert (first.embedding_parameters, first.head_parameters) == (table, 0)
    assert (middle.embedding_parameters, middle.head_parameters) == (0, 0)
    assert (last.embedding_parameters, last.head_parameters, last.is_last) == (0, table, True)


def test_tied_embeddings_are_copied_to_the_last_of_several_stages() -> None:
    table = 128256 * 2048
    only, (first, last) = cut(model("meta-llama/Llama-3.2-1B"), 1)[0], cut(model("meta-llama/Llama-3.2-1B"), 2)
    assert (only.embedding_parameters, only.head_parameters) == (table, 0)
    assert (first.embedding_parameters, last.head_parameters) == (table, table)


@pytest.mark.parametrize(
    ("gpu_layers", "on_gpu", "head_on_gpu"), [(None, 30, 1), (31, 30, 1), (30, 30, 0), (10, 10, 0)]
)
def test_layers_split_between_gpu_and_container(gpu_layers: int | None, on_gpu: int, head_on_gpu: int) -> None:
    facts = model("HuggingFaceTB/SmolLM2-135M")
    host, (stage,) = split(facts, gpu_layers, 1)
    assert (host.layer_count, stage.layer_count) == (30 - on_gpu, on_gpu)
    assert host.embedding_parameters == 49152 * 576
    assert stage.head_parameters == head_on_gpu * 49152 * 576


def test_inline_numbers_give_the_stated_size() -> None:
    numbers = {"layers": 32, "attentionHeads": 32, "kvHeads": 8, "hiddenSize": 4096, "vocabularySize": 128256}
    spec = a_spec().facts(**numbers, parameterCount=8_030_261_248).build()
    assert spec.model.facts is not None
    assert spec.model.facts.inline is not None
    facts = facts_from_numbers(spec.model.facts.inline)
    assert whole(facts, method_format(facts, None)) == pytest.approx(16.06e9, rel=0.001)
    exact = a_spec().facts(**numbers, weightBytes=5 * GIB).build().model.facts
    assert exact is not None
    assert exact.inline is not None
    assert whole(facts_from_numbers(exact.inline), method_format(facts_from_numbers(exact.inline), None)) == 5 * GIB
