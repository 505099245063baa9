"""Laws of the layout, over generated models and devices."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stoker.facts.model import ModelFacts
from stoker.plan.kv import stage_cache
from stoker.plan.memory import COMMUNICATION_STEP_BYTES
from stoker.plan.stages import cut, layers_per_stage
from stoker.plan.types import Layout, RankMemory, Verdict
from tests.builders.layouts import GIB, gpu, model, planned, tiny
from tests.builders.specs import H100, a_spec

KNOWN = (
    "meta-llama/Llama-3.1-8B-Instruct",
    "meta-llama/Llama-3.1-70B-Instruct",
    "Qwen/Qwen2.5-7B-Instruct",
    "google/gemma-3-27b-it",
    "deepseek-ai/DeepSeek-V3",
    "openai/gpt-oss-20b",
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "meta-llama/Llama-3.2-1B",
)
models = st.sampled_from(KNOWN).map(model)
full_attention = st.builds(
    lambda layers, groups, heads, dim: tiny(
        num_hidden_layers=layers,
        num_key_value_heads=heads,
        num_attention_heads=heads * groups,
        head_dim=dim,
        max_position_embeddings=1_000_000,
    ),
    layers=st.integers(1, 128),
    groups=st.integers(1, 8),
    heads=st.integers(1, 64),
    dim=st.sampled_from([32, 64, 80, 128, 256]),
)
memories = st.integers(1, 400).map(lambda gib: gib * GIB)
lengths = st.integers(1, 131072)
PROPERTY = settings(max_examples=80, deadline=None)


def layout(
    facts: ModelFacts,
    memory: int = 80 * GIB,
    *,
    tensor: int = 1,
    pipeline: int = 1,
    length: int = 4096,
    kv: str = "auto",
    step: int | None = None,
) -> Layout:
    spec = a_spec().on(H100).tensor(tensor).pipeline(pipeline).max_length(length).kv(kv)
    if step is not None:
        spec = spec.set("batching.maxBatchedTokens", step)
    return planned(spec, facts=facts, device=gpu(memory_bytes=memory))


def of_the_model(rank: RankMemory) -> tuple[int, ...]:
    """What the model takes of a rank; communication between ranks comes on top."""
    return rank.weight_bytes, rank.activation_bytes, rank.kv_bytes_per_token, rank.kv_bytes_per_sequence


@PROPERTY
@given(models | full_attention, st.integers(1, 8), st.integers(1, 4))
def test_more_tensor_parallelism_never_needs_more_memory(facts: ModelFacts, tensor: int, pipeline: int) -> None:
    pipeline = min(pipeline, len(facts.layers))
    fewer, more = (layout(facts, tensor=it, pipeline=pipeline).ranks for it in (tensor, tensor * 2))
    for one, other in zip(fewer, more, strict=True):
        assert all(after <= before for before, after in zip(of_the_model(one), of_the_model(other), strict=True))
        assert other.overhead_bytes - one.overhead_bytes <= COMMUNICATION_STEP_BYTES


@PROPERTY
@given(models | full_attention, memories, memories, lengths, st.sampled_from([2048, 16384]))
@example(model("openai/gpt-oss-20b"), 142 * GIB, 160 * GIB, 10993, 8192)
def test_more_memory_never_holds_fewer_tokens(facts: ModelFacts, one: int, other: int, length: int, step: int) -> None:
    # Left to itself, vLLM computes longer steps on larger GPUs, and its windows keep the tokens of one step.
    small, large = sorted((one, other))
    few, many = layout(facts, small, length=length, step=step), layout(facts, large, length=length, step=step)
    assert (few.kv_tokens or 0) <= (many.kv_tokens or 0)
    assert not (few.verdict is Verdict.FITS and many.verdict is Verdict.TOO_SMALL)


@PROPERTY
@given(models | full_attention, memories, lengths, lengths)
def test_a_longer_sequence_never_gives_more_concurrency(facts: ModelFacts, memory: int, one: int, other: int) -> None:
    short, long = sorted((one, other))
    many, few = layout(facts, memory, length=short), layout(facts, memory, length=long)
    assert (few.max_concurrency or Decimal(0)) <= (many.max_concurrency or Decimal(0))
    assert not (few.verdict is Verdict.FITS and many.verdict is Verdict.TOO_SMALL)


@PROPERTY
@given(full_attention, memories, st.integers(1, 1000))
def test_half_the_kv_type_holds_twice_the_tokens(facts: ModelFacts, memory: int, blocks: int) -> None:
    length = blocks * 16
    wide, narrow = layout(facts, memory, length=length), layout(facts, memory, length=length, kv="fp8")
    double = 2 * (wide.kv_tokens or 0)
    assert double <= (narrow.kv_tokens or 0) <= double + 16
    assert 2 * (narrow.kv_bytes_per_token_per_rank or 0) == wide.kv_bytes_per_token_per_rank


@PROPERTY
@given(models | full_attention, st.integers(1, 16))
def test_the_layers_of_the_stages_are_the_layers_of_the_model(facts: ModelFacts, pipeline: int) -> None:
    count = len(facts.layers)
    pipeline = min(pipeline, count)
    assert sum(layers_per_stage(count, pipeline)) == count
    stages = cut(facts, pipeline)
    assert sum(stage.layer_count for stage in stages) == count
    assert max(layers_per_stage(count, pipeline)) - min(layers_per_stage(count, pipeline)) <= 1
    embedding = sum(stage.embedding_parameters for stage in stages)
    assert embedding == facts.embedding_parameters


@PROPERTY
@given(models | full_attention, st.integers(1, 8))
def test_stages_keep_together_what_one_stage_keeps(facts: ModelFacts, pipeline: int) -> None:
    pipeline = min(pipeline, len(facts.layers))
    parts = layout(facts, pipeline=pipeline).ranks
    whole = layout(facts).ranks[0]
    assert sum(part.kv_bytes_per_token for part in parts) == whole.kv_bytes_per_token
    assert sum(part.kv_bytes_per_sequence for part in parts) == pytest.approx(whole.kv_bytes_per_sequence, abs=64)


@PROPERTY
@given(models | full_attention, memories, lengths)
def test_every_byte_of_the_budget_is_accounted_for(facts: ModelFacts, memory: int, length: int) -> None:
    rank = layout(facts, memory, length=length).ranks[0]
    used = rank.weight_bytes + rank.activation_bytes + rank.graph_bytes + rank.overhead_bytes
    assert rank.budget_bytes == memory * 9 // 10
    assert rank.kv_bytes == rank.budget_bytes - used


@PROPERTY
@given(models | full_attention, memories, lengths)
def test_what_fits_holds_one_sequence_and_what_does_not_is_short(facts: ModelFacts, memory: int, length: int) -> None:
    found = layout(facts, memory, length=length)
    if found.verdict is Verdict.FITS:
        assert found.short_by_bytes is None
        assert (found.kv_tokens or 0) >= length
    else:
        assert (found.short_by_bytes or 0) > 0
        assert (found.kv_tokens or 0) < length


@PROPERTY
@given(models, st.integers(1, 64))
def test_a_latent_is_never_divided(facts: ModelFacts, tensor: int) -> None:
    latent = model("deepseek-ai/DeepSeek-V3")
    assert layout(latent, tensor=tensor).kv_bytes_per_token_per_rank == 70272
    (stage,) = cut(facts, 1)
    one, many = (stage_cache(stage, ranks, "auto", Fraction(2), 16, 1).token_bytes for ranks in (1, tensor))
    assert many * tensor >= one


def test_the_law_of_memory_holds_for_facts_that_state_their_size() -> None:
    facts = replace(model("meta-llama/Llama-3.1-8B"), weight_bytes=GIB)
    assert layout(facts).weight_bytes == GIB
