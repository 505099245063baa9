"""KV cache: bytes of a token on a rank, bytes of a sequence, and how many tokens fit."""

from fractions import Fraction

import pytest

from stoker.facts.model import ModelFacts
from stoker.plan.kv import StageCache, stage_cache
from stoker.plan.stages import cut
from tests.builders.layouts import GIB, MIB, model, tiny

BF16, FP8, Q8_0, Q4_0 = Fraction(2), Fraction(1), Fraction(34, 32), Fraction(18, 32)


def cache(
    facts: ModelFacts, tensor: int = 1, element: Fraction = BF16, dtype: str = "auto", block: int = 16, step: int = 2048
) -> StageCache:
    return stage_cache(cut(facts, 1)[0], tensor, dtype, element, block, step)


def token_bytes(repository: str, tensor: int = 1, element: Fraction = BF16, dtype: str = "auto") -> int:
    return cache(model(repository), tensor, element, dtype).token_bytes


@pytest.mark.parametrize(
    ("repository", "tensor", "expected"),
    [
        ("meta-llama/Llama-2-7b-hf", 1, 524288),
        ("meta-llama/Llama-2-7b-hf", 8, 65536),
        ("meta-llama/Llama-3.1-8B", 1, 131072),
        ("meta-llama/Llama-3.1-8B", 4, 32768),
        ("meta-llama/Llama-3.1-70B", 8, 40960),
        ("Qwen/Qwen2.5-72B", 4, 81920),
        ("Qwen/Qwen2.5-7B", 4, 14336),
        # One head at least: more ranks than heads replicate them.
        ("meta-llama/Llama-3.1-70B", 16, 40960),
        ("Qwen/Qwen2.5-7B", 7, 14336),
        ("tiiuae/falcon-7b", 1, 8192),
        ("tiiuae/falcon-7b", 71, 8192),
        # The single latent of MLA lies on every rank.
        ("deepseek-ai/DeepSeek-V3", 1, 70272),
        ("deepseek-ai/DeepSeek-V3", 8, 70272),
        ("deepseek-ai/DeepSeek-V2-Lite", 4, 31104),
        ("google/gemma-3-27b-it", 2, 40960),
    ],
)
def test_bytes_of_a_token_on_one_rank(repository: str, tensor: int, expected: int) -> None:
    assert token_bytes(repository, tensor) == expected


def test_smaller_types() -> None:
    assert token_bytes("meta-llama/Llama-3.1-8B", element=FP8) == 65536
    assert token_bytes("deepseek-ai/DeepSeek-V3", element=FP8) == 35136
    assert token_bytes("deepseek-ai/DeepSeek-V3", element=FP8, dtype="fp8_ds_mla") == 40016
    assert token_bytes("HuggingFaceTB/SmolLM2-135M", element=Q8_0) == 23040 * 34 // 64
    assert token_bytes("HuggingFaceTB/SmolLM2-135M", element=Q4_0) == 23040 * 18 // 64


def test_heads_that_do_not_divide_evenly_round_up() -> None:
    assert cache(tiny(num_attention_heads=6, num_key_value_heads=3, hidden_size=192), 2).token_bytes == 2 * 2 * 64 * 2


def test_run_check_one_gib_holds_2097152_tokens_of_a_tiny_llama() -> None:
    tiny_llama = cache(tiny(), block=128)
    assert tiny_llama.token_bytes == 512
    assert tiny_llama.tokens_in(GIB, 4096) == 2_097_152
    assert tiny_llama.tokens_in(GIB, None) == 2_097_152


@pytest.mark.parametrize(
    ("element", "length", "reported"), [(BF16, 2048, 12_800), (BF16, 1000, 12_500), (FP8, 2048, 25_728)]
)
def test_run_check_what_vllm_reports_of_smollm2_on_the_cpu(element: Fraction, length: int, reported: int) -> None:
    """Seen on vLLM 0.32 with --kv-cache-memory-bytes 296573030."""
    kept = cache(model("HuggingFaceTB/SmolLM2-135M"), element=element, block=128)
    assert kept.tokens_in(296_573_030, length) == reported


def test_run_check_what_vllm_reports_of_a_model_with_windows() -> None:
    """Seen on vLLM 0.32: 36,936 tokens in 50,000,000 bytes; the engine also rounds the pool down to whole blocks."""
    facts = tiny(
        model_type="gemma3_text",
        num_hidden_layers=12,
        num_key_value_heads=1,
        head_dim=64,
        sliding_window=512,
        max_position_embeddings=32768,
    )
    assert cache(facts, block=128).tokens_in(50_000_000, 8192) == pytest.approx(36_936, rel=0.002)


def test_capacity_is_counted_in_whole_blocks() -> None:
    tiny_llama = cache(tiny(), block=128)
    assert tiny_llama.tokens_in(512 * 128 - 1, 4096) == 0
    assert tiny_llama.tokens_in(512 * 128 * 3 + 1000, 4096) == 384
    assert tiny_llama.tokens_in(-5, 4096) == 0


def test_a_sequence_takes_whole_blocks_and_so_fewer_fit() -> None:
    tiny_llama = cache(tiny(), block=128)
    assert tiny_llama.sequence_bytes(1000) == 512 * 1024
    assert tiny_llama.tokens_in(512 * 1024 * 3, 1000) == 3000


@pytest.mark.parametrize(
    ("repository", "mib"),
    [
        ("google/gemma-2-27b", 736),
        ("google/gemma-3-27b-it", 416),
        ("meta-llama/Llama-4-Scout-17B-16E", 1152),
        ("meta-llama/Llama-3.1-8B", 0),
    ],
)
def test_full_windows_of_a_sequence(repository: str, mib: int) -> None:
    assert cache(model(repository)).bytes_per_sequence == mib * MIB


@pytest.mark.parametrize(
    ("repository", "length", "gib"),
    [
        ("meta-llama/Llama-3.1-8B", 8192, 1.0),
        ("meta-llama/Llama-3.1-8B", 131072, 16),
        ("meta-llama/Llama-2-70b-hf", 8192, 2.5),
        ("google/gemma-3-27b-it", 8192, 1.03),
        ("google/gemma-3-27b-it", 131072, 10.4),
        ("google/gemma-2-27b", 8192, 2.16),
        ("openai/gpt-oss-20b", 131072, 3.0),
        ("deepseek-ai/DeepSeek-V3", 131072, 8.58),
        ("meta-llama/Llama-4-Scout-17B-16E", 131072, 7.1),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 131072, 3.07),
        ("mistralai/Mistral-7B-v0.1", 32768, 0.5),
    ],
)
def test_published_memory_of_one_sequence(repository: str, length: int, gib: float) -> None:
    assert cache(model(repository), step=1).sequence_bytes(length) / GIB == pytest.approx(gib, rel=0.012)


def test_a_window_also_holds_the_step_that_is_being_computed() -> None:
    facts = tiny(sliding_window=1024, model_type="mistral")
    assert cache(facts, step=2048).sequence_bytes(4096) == 512 * (1024 + 2048 + 16)
    assert cache(facts, step=2048).sequence_bytes(512) == 512 * 512
    assert cache(facts, step=2048).sequence_bytes(2000) == 512 * 2000


def test_state_is_divided_by_tensor_and_does_not_grow() -> None:
    facts = model("Qwen/Qwen3-Next-80B-A3B-Instruct")
    assert cache(facts, 2).state_bytes == pytest.approx(cache(facts).state_bytes / 2, rel=1e-6)
    growth = cache(facts).sequence_bytes(20_000) - cache(facts).sequence_bytes(10_000)
    assert growth == 10_000 * 24576
