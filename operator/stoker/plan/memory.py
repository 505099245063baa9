"""Memory of each rank: weights, activations, graphs, overhead, and what is left for the KV cache."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from stoker.facts.model import ModelFacts
from stoker.plan.demand import Demand
from stoker.plan.kv import StageCache, stage_cache
from stoker.plan.stages import Stage, cut, split, without_experts
from stoker.plan.types import EngineTraits, FractionOf, RankMemory, Windows
from stoker.plan.units import MIB
from stoker.plan.weights import (
    WeightFormat,
    ceil_div,
    expert_weight_bytes,
    gguf_format,
    method_format,
    stage_weight_bytes,
)

CONTEXT_BYTES: Final = 768 * MIB
"""CUDA context and kernels of one process, and what the driver keeps of the memory that it reports: 0.5 to 1 GiB."""
COMMUNICATION_STEP_BYTES: Final = 512 * MIB
"""Buffers of NCCL and of custom reductions: 0.5 GiB between two GPUs, and as much more with each doubling."""
GRAPH_BYTES: Final = 256 * MIB
GRAPH_BYTES_PER_LAYER: Final = 12 * MIB
"""CUDA graphs: about 0.6 GiB for 32 layers, 1.2 GiB for 80."""
_UNKNOWN_VOCABULARY: Final = 131072
_HIDDEN_COPIES: Final = 4
"""Copies of the hidden state that are alive at once: input, residual, normalized, output."""
_LOGIT_COPIES: Final = 2


@dataclass(frozen=True, slots=True)
class Fit:
    """How the stages of one replica use their devices; ``caches`` go with ``ranks``."""

    ranks: tuple[RankMemory, ...]
    caches: tuple[StageCache, ...]
    form: WeightFormat
    host_bytes: int
    """Weights and KV cache that lie in the memory of the container (llama.cpp)."""
    weight_bytes: int
    """Of the whole model."""
    short_by_bytes: int | None
    """What the worst rank lacks for the sequences that must fit; 0 or less when they fit, None when unknown."""
    kv_tokens: int | None
    needed_kv_bytes: int | None
    """KV cache of the sequences that must fit, on the worst rank; None where no length is known."""

    @property
    def fits(self) -> bool:
        """Whether everything is known and fits."""
        return self.short_by_bytes is not None and self.short_by_bytes <= 0


def weight_format(facts: ModelFacts, demand: Demand) -> WeightFormat:
    """Return how the weights lie in memory. A GGUF file whose name states no type counts as 16 bits."""
    if demand.is_gguf:
        return gguf_format(facts, demand.gguf or "F16")
    return method_format(facts, demand.weights)


def fit(facts: ModelFacts, demand: Demand, traits: EngineTraits, form: WeightFormat | None = None) -> Fit:
    """Lay the model over the devices and count every byte; ``form`` spares a second look at the same weights."""
    form = form or weight_format(facts, demand)
    host, stages, experts = _host_and_stages(facts, demand, traits)
    whole = windows_are_whole(facts, traits)
    caches = tuple(_cache(stage, demand, traits, whole=whole) for stage in stages)
    weights = tuple(stage_weight_bytes(stage, form, demand.tensor) for stage in stages)
    parts = zip(stages, caches, weights, strict=True)
    ranks = tuple(_rank(index, *part, facts, demand, traits) for index, part in enumerate(parts))
    needed = [_needed_on_device(cache, demand, traits) for cache in caches]
    pairs = zip(needed, ranks, strict=True)
    known = [(need or 0) - rank.kv_bytes for need, rank in pairs if rank.kv_bytes is not None]
    tokens = [rank.kv_tokens for rank in ranks if rank.kv_tokens is not None]
    return Fit(
        ranks=ranks,
        caches=caches,
        form=form,
        host_bytes=_host_bytes(host, caches, form, demand, traits, whole=whole) + expert_weight_bytes(experts, form),
        weight_bytes=_whole_weight_bytes(facts, form),
        short_by_bytes=max(known, default=None),
        kv_tokens=min(tokens, default=None),
        needed_kv_bytes=max((need for need in needed if need is not None), default=None),
    )


def _whole_weight_bytes(facts: ModelFacts, form: WeightFormat) -> int:
    return sum(stage_weight_bytes(stage, form, 1) for stage in cut(facts, 1))


def _host_and_stages(
    facts: ModelFacts, demand: Demand, traits: EngineTraits
) -> tuple[Stage | None, tuple[Stage, ...], int]:
    """Return what stays in the container, the stages on the devices, and the expert parameters taken from those."""
    if not (demand.on_gpu and traits.splits_layers):
        return None, cut(facts, demand.pipeline), 0
    facts, experts = without_experts(facts, traits.expert_layers_in_container)
    host, stages = split(facts, demand.gpu_layers, demand.pipeline)
    return host, stages, experts


def windows_are_whole(facts: ModelFacts, traits: EngineTraits) -> bool:
    """Return whether layers that see a window keep all of a sequence all the same."""
    mixed = traits.windows is Windows.WHOLE_IF_MIXED and any(layer.cache.grows for layer in facts.layers)
    return mixed or traits.windows is Windows.WHOLE


def _cache(stage: Stage, demand: Demand, traits: EngineTraits, *, whole: bool) -> StageCache:
    return stage_cache(
        stage,
        demand.tensor,
        demand.kv_dtype,
        demand.kv_element_bytes,
        traits.block_tokens,
        demand.batched_tokens,
        whole_windows=whole,
    )


def _needed(cache: StageCache, demand: Demand, traits: EngineTraits) -> int | None:
    """KV cache without which the engine does not start: one whole sequence, or that of every slot."""
    if demand.max_length is None:
        return None
    return cache.sequence_bytes(demand.max_length) * (1 if traits.context_is_shared else demand.max_sequences)


def _needed_on_device(cache: StageCache, demand: Demand, traits: EngineTraits) -> int | None:
    elsewhere = traits.kv_in_container and demand.on_gpu
    return 0 if elsewhere and demand.max_length else _needed(cache, demand, traits)


def _host_bytes(
    host: Stage | None,
    caches: tuple[StageCache, ...],
    form: WeightFormat,
    demand: Demand,
    traits: EngineTraits,
    *,
    whole: bool,
) -> int:
    if host is None:
        return 0
    kept = [_cache(host, demand, traits, whole=whole), *(caches if traits.kv_in_container else ())]
    return stage_weight_bytes(host, form, 1) + sum(_needed(cache, demand, traits) or 0 for cache in kept)


def _rank(
    index: int, stage: Stage, cache: StageCache, weights: int, facts: ModelFacts, demand: Demand, traits: EngineTraits
) -> RankMemory:
    activations = _activation_bytes(stage, facts, demand)
    graphs, overhead = _graph_bytes(stage, demand, traits), _overhead_bytes(demand, traits)
    fixed = weights + activations + graphs + overhead
    budget = demand.budget_bytes
    left = None if budget is None else _left(demand, traits, budget, fixed)
    return RankMemory(
        stage=index,
        layers=stage.layer_count,
        weight_bytes=weights,
        activation_bytes=activations,
        graph_bytes=graphs,
        overhead_bytes=overhead,
        kv_bytes_per_token=cache.token_bytes,
        kv_bytes_per_sequence=cache.bytes_per_sequence,
        budget_bytes=budget,
        kv_bytes=left,
        kv_tokens=None if left is None else _tokens(cache, left, demand, traits),
    )


def _left(demand: Demand, traits: EngineTraits, budget: int, fixed: int) -> int:
    """What remains for the KV cache; an engine on the CPU is told in whole steps."""
    if traits.fraction_of is FractionOf.FREE and demand.on_gpu:
        free = (demand.memory_bytes or 0) - fixed
        return int(free * demand.memory_fraction) if free > 0 else free
    left = budget - fixed
    return left if demand.on_gpu or left < 0 else left - left % traits.kv_cache_step_bytes


def _tokens(cache: StageCache, kv_bytes: int, demand: Demand, traits: EngineTraits) -> int | None:
    """Capacity in tokens; an engine whose slots divide the cache allocates no more than they hold."""
    if traits.kv_in_container and demand.on_gpu:
        return demand.max_length * demand.max_sequences if demand.max_length else None
    tokens = cache.tokens_in(kv_bytes, demand.max_length)
    if traits.context_is_shared or demand.max_length is None:
        return tokens
    return min(tokens, demand.max_length * demand.max_sequences)


def _activation_bytes(stage: Stage, facts: ModelFacts, demand: Demand) -> int:
    """Peak of a step in 16 bits: the MLP's inner values, copies of the hidden state, and the logits of each request."""
    if not stage.groups and not stage.is_last:
        return 0
    values = ceil_div(facts.step_width, demand.tensor) + _HIDDEN_COPIES * facts.hidden_size
    vocabulary = facts.vocabulary_size or _UNKNOWN_VOCABULARY
    logits = demand.max_sequences * vocabulary * 4 * _LOGIT_COPIES if stage.is_last else 0
    return 2 * demand.batched_tokens * values + logits


def _graph_bytes(stage: Stage, demand: Demand, traits: EngineTraits) -> int:
    if not demand.on_gpu or not demand.cuda_graphs or traits.fraction_of is FractionOf.UNUSED:
        return 0
    return GRAPH_BYTES + GRAPH_BYTES_PER_LAYER * stage.layer_count


def _overhead_bytes(demand: Demand, traits: EngineTraits) -> int:
    if not demand.on_gpu:
        return traits.host_overhead_bytes
    return CONTEXT_BYTES + COMMUNICATION_STEP_BYTES * (demand.world - 1).bit_length()


def longest_that_fits(fitted: Fit, demand: Demand, traits: EngineTraits) -> int | None:
    """Return the largest ``maxLength`` with which the replica fits; None where not even short sequences do."""
    if demand.max_length is None:
        return None
    slots = 1 if traits.context_is_shared else demand.max_sequences
    low, high = 0, demand.max_length
    while low < high:
        middle = (low + high + 1) // 2
        if all(
            rank.kv_bytes is not None and slots * cache.sequence_bytes(middle) <= rank.kv_bytes
            for rank, cache in zip(fitted.ranks, fitted.caches, strict=True)
        ):
            low = middle
        else:
            high = middle - 1
    return _rounded(low)


def _rounded(length: int) -> int | None:
    step = next((step for step in (1024, 256, 16) if length >= 4 * step), 1)
    return length - length % step or None


def concurrency(kv_tokens: int, max_length: int) -> Fraction:
    """Return how many sequences of full length fit at once."""
    return Fraction(kv_tokens, max_length)
