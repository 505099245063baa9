"""The check values that published tables agree on, model by model."""

import pytest

from stoker.facts.families import known_model, known_repositories
from stoker.facts.model import CacheKind, Checkpoint, ModelFacts

MIB = 2**20


def facts(repository: str) -> ModelFacts:
    found = known_model(repository)
    assert found is not None, repository
    return found


def bytes_per_token(model: ModelFacts) -> int:
    """KV cache of one token in 16 bits, all layers, once windows are full."""
    return sum(2 * it.cache.heads * it.cache.values_per_head for it in model.layers if it.cache.grows)


def bytes_per_token_unbounded(model: ModelFacts) -> int:
    return sum(2 * it.cache.heads * it.cache.values_per_head for it in model.layers)


def bytes_per_sequence(model: ModelFacts) -> int:
    windows = (2 * it.cache.heads * it.cache.values_per_head * it.cache.window_tokens for it in model.layers)
    return sum(windows) + sum(it.cache.state_bytes for it in model.layers)


KV = {
    "meta-llama/Llama-2-7b-hf": 524288,
    "meta-llama/Llama-2-13b-hf": 819200,
    "meta-llama/Llama-2-70b-hf": 327680,
    "meta-llama/Meta-Llama-3-8B": 131072,
    "meta-llama/Llama-3.1-8B-Instruct": 131072,
    "meta-llama/Llama-3.1-70B-Instruct": 327680,
    "meta-llama/Llama-3.1-405B": 516096,
    "meta-llama/Llama-3.2-1B": 32768,
    "meta-llama/Llama-3.2-3B": 114688,
    "mistralai/Mistral-7B-v0.3": 131072,
    "mistralai/Mixtral-8x7B-v0.1": 131072,
    "mistralai/Mistral-Nemo-Instruct-2407": 163840,
    "mistralai/Mixtral-8x22B-v0.1": 229376,
    "mistralai/Mistral-Large-Instruct-2407": 360448,
    "Qwen/Qwen2.5-0.5B": 12288,
    "Qwen/Qwen2.5-7B-Instruct": 57344,
    "Qwen/Qwen2.5-14B": 196608,
    "Qwen/Qwen2.5-32B": 262144,
    "Qwen/Qwen2.5-72B-Instruct": 327680,
    "Qwen/Qwen3-0.6B": 114688,
    "Qwen/Qwen3-8B": 147456,
    "Qwen/Qwen3-32B": 262144,
    "Qwen/Qwen3-30B-A3B": 98304,
    "Qwen/Qwen3-235B-A22B": 192512,
    "microsoft/Phi-3-mini-128k-instruct": 393216,
    "microsoft/phi-4": 204800,
    "tiiuae/falcon-7b": 8192,
    "google/gemma-7b": 458752,
    "google/gemma-2b": 18432,
    "google/gemma-2-27b": 188416,
    "google/gemma-3-4b-it": 20480,
    "google/gemma-3-12b-it": 65536,
    "google/gemma-3-27b-it": 81920,
    "openai/gpt-oss-20b": 24576,
    "openai/gpt-oss-120b": 36864,
    "deepseek-ai/DeepSeek-V3": 70272,
    "deepseek-ai/DeepSeek-R1": 70272,
    "moonshotai/Kimi-K2-Instruct": 70272,
    "deepseek-ai/DeepSeek-V2": 69120,
    "deepseek-ai/DeepSeek-V2-Lite": 31104,
    "meta-llama/Llama-4-Scout-17B-16E": 49152,
    "meta-llama/Llama-4-Maverick-17B-128E": 49152,
    "Qwen/Qwen3-Next-80B-A3B-Instruct": 24576,
    "nvidia/Nemotron-H-8B-Base-8K": 16384,
    "HuggingFaceTB/SmolLM2-135M-Instruct": 23040,
}


@pytest.mark.parametrize(("repository", "expected"), KV.items(), ids=KV)
def test_kv_bytes_per_token_in_16_bits(repository: str, expected: int) -> None:
    assert bytes_per_token(facts(repository)) == expected


@pytest.mark.parametrize(
    ("repository", "expected"),
    {
        "google/gemma-2-27b": 376832,
        "google/gemma-3-4b-it": 139264,
        "google/gemma-3-12b-it": 393216,
        "google/gemma-3-27b-it": 507904,
        "openai/gpt-oss-20b": 49152,
        "openai/gpt-oss-120b": 73728,
        "meta-llama/Llama-4-Scout-17B-16E": 196608,
    }.items(),
)
def test_kv_bytes_per_token_before_the_windows_are_full(repository: str, expected: int) -> None:
    assert bytes_per_token_unbounded(facts(repository)) == expected


@pytest.mark.parametrize(
    ("repository", "mib"),
    {
        "google/gemma-2-27b": 736,
        "google/gemma-3-4b-it": 116,
        "google/gemma-3-12b-it": 320,
        "google/gemma-3-27b-it": 416,
        "meta-llama/Llama-4-Scout-17B-16E": 1152,
        "meta-llama/Llama-4-Maverick-17B-128E": 1152,
        "mistralai/Mistral-7B-v0.1": 512,
        "openai/gpt-oss-20b": 3,
        "Qwen/Qwen3-Next-80B-A3B-Instruct": 73.7,
        "nvidia/Nemotron-H-8B-Base-8K": 49.4,
        "meta-llama/Llama-3.1-8B": 0,
    }.items(),
)
def test_bytes_that_a_sequence_holds_whatever_its_length(repository: str, mib: float) -> None:
    assert bytes_per_sequence(facts(repository)) / MIB == pytest.approx(mib, abs=0.05)


PARAMETERS_BILLION = {
    "meta-llama/Llama-2-7b-hf": 6.74,
    "meta-llama/Meta-Llama-3-8B": 8.03,
    "mistralai/Mistral-7B-v0.3": 7.25,
    "Qwen/Qwen2.5-7B": 7.62,
    "Qwen/Qwen3-8B": 8.19,
    "microsoft/phi-4": 14.66,
    "google/gemma-2-27b": 27.2,
    "google/gemma-3-27b-it": 27.4,
    "Qwen/Qwen3-30B-A3B": 30.5,
    "Qwen/Qwen2.5-32B": 32.8,
    "mistralai/Mixtral-8x7B-v0.1": 46.7,
    "meta-llama/Llama-2-70b-hf": 69.0,
    "meta-llama/Llama-3.1-70B": 70.55,
    "Qwen/Qwen2.5-72B": 72.7,
    "openai/gpt-oss-20b": 20.9,
    "openai/gpt-oss-120b": 116.8,
    "mistralai/Mixtral-8x22B-v0.1": 140.6,
    "Qwen/Qwen3-235B-A22B": 235,
    "meta-llama/Llama-3.1-405B": 405.9,
    "deepseek-ai/DeepSeek-V3": 671,
    "deepseek-ai/DeepSeek-V2-Lite": 15.7,
    "moonshotai/Kimi-K2-Instruct": 1026,
    "Qwen/Qwen3-Next-80B-A3B-Instruct": 80,
    "nvidia/Nemotron-H-8B-Base-8K": 8.1,
    "meta-llama/Llama-4-Scout-17B-16E": 108.6,
    "HuggingFaceTB/SmolLM2-135M": 0.1345,
    "meta-llama/Llama-3.2-1B": 1.236,
}


@pytest.mark.parametrize(("repository", "billion"), PARAMETERS_BILLION.items(), ids=PARAMETERS_BILLION)
def test_parameters_computed_from_the_dimensions(repository: str, billion: float) -> None:
    assert facts(repository).parameter_count / 1e9 == pytest.approx(billion, rel=0.006)


def test_every_row_of_the_table_can_be_read() -> None:
    assert all(known_model(repository) for repository in known_repositories())
    assert len(known_repositories()) > 90


def test_a_repository_is_found_in_any_case_and_only_under_its_full_name() -> None:
    assert known_model("META-LLAMA/llama-3.1-8b-instruct") == known_model("meta-llama/llama-3.1-8b-instruct")
    assert known_model("somebody/Llama-3.1-8B-Instruct") is None
    assert known_model("meta-llama/Llama-3.1-8B-Instruct-AWQ") is None


@pytest.mark.parametrize(
    ("repository", "method"),
    [
        ("Qwen/Qwen2.5-7B-Instruct-AWQ", "awq"),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", "gptq"),
        ("Qwen/Qwen3-8B-FP8", "fp8"),
        ("Qwen/Qwen3-8B-GGUF", None),
    ],
)
def test_quantized_repositories_of_the_makers(repository: str, method: str | None) -> None:
    checkpoint = facts(repository).checkpoint
    assert (checkpoint.method if checkpoint else None) == method


def test_latent_attention_has_one_unit_that_cannot_be_divided() -> None:
    cache = facts("deepseek-ai/DeepSeek-V3").layers[0].cache
    assert (cache.kind, cache.heads, cache.values_per_head, cache.latent_rank) == (CacheKind.LATENT, 1, 576, 512)
    assert facts("deepseek-ai/DeepSeek-V3").kv_heads is None


def test_explicit_head_dim_beats_hidden_size_over_heads() -> None:
    assert facts("mistralai/Mistral-Nemo-Instruct-2407").layers[0].cache.values_per_head == 2 * 128
    assert facts("google/gemma-2-27b").layers[1].cache.values_per_head == 2 * 128


def test_checkpoints_that_are_quantized_as_published() -> None:
    assert facts("openai/gpt-oss-20b").checkpoint == Checkpoint("mxfp4")
    assert facts("deepseek-ai/DeepSeek-V3").checkpoint == Checkpoint("fp8")
    assert facts("meta-llama/Llama-3.1-8B").checkpoint is None


def test_a_window_longer_than_the_model_is_no_window() -> None:
    cache = facts("microsoft/Phi-3-mini-128k-instruct").layers[0].cache
    assert (cache.kind, cache.window_tokens) == (CacheKind.FULL, 0)


def test_layers_keep_the_order_of_the_model() -> None:
    gemma = [layer.cache.kind for layer in facts("google/gemma-3-27b-it").layers]
    assert gemma[:6] == [CacheKind.WINDOW] * 5 + [CacheKind.FULL]
    assert (gemma.count(CacheKind.FULL), gemma.count(CacheKind.WINDOW)) == (10, 52)
    nemotron = [layer.cache.kind for layer in facts("nvidia/Nemotron-H-8B-Base-8K").layers]
    assert (nemotron.count(CacheKind.FULL), nemotron.count(CacheKind.STATE), len(nemotron)) == (4, 24, 52)
