"""A layout in words and figures: rows for a table, and JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from stoker.api.engine import Resources
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.plan.types import EngineTraits, FractionOf, Layout, Placement, RankMemory, Suggestion, Verdict
from stoker.plan.units import shown

_UNKNOWN: Final = "unknown"
_COMPUTED: Final = "computed from the layout"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the explanation: what it is, its value, and how it came about."""

    name: str
    value: str
    how: str


def explain_rows(layout: Layout, spec: InferenceServiceSpec, traits: EngineTraits) -> list[Row]:
    """Return the arithmetic of a layout, from the inputs to the verdict, in the order in which it is done."""
    inputs, arithmetic = _inputs(layout, spec), _arithmetic(layout, traits)
    return [*inputs, *_counts(layout), *arithmetic, *_container(layout, spec), *_outcome(layout)]


def _inputs(layout: Layout, spec: InferenceServiceSpec) -> Iterator[Row]:
    facts, weights = layout.origins.get("facts", _UNKNOWN), layout.origins.get("weights", _UNKNOWN)
    yield Row("model", spec.model.source, f"facts: {'none, see the verdict' if facts == _UNKNOWN else facts}")
    yield Row("weights", _bytes(layout.weight_bytes), "the model is not known" if weights == _UNKNOWN else weights)
    yield Row("longest sequence", _tokens(layout.max_length), layout.origins.get("maxLength", _UNKNOWN))
    yield Row("sequences at once", str(layout.max_sequences), layout.origins.get("maxSequences", _UNKNOWN))
    yield Row("KV cache type", layout.kv_dtype, layout.origins.get("kvCache", _UNKNOWN))


def _counts(layout: Layout) -> Iterator[Row]:
    if layout.gpus_per_pod:
        how = f"tensor {layout.tensor} x pipeline {layout.pipeline}"
        yield Row("GPUs per pod", f"{layout.gpus_per_pod} ({layout.resource_name})", how)
    else:
        yield Row("GPUs per pod", "0", "no spec.accelerator: the engine computes on the CPU")
    yield Row("pods per replica", str(layout.pods_per_replica), "one node")


def _arithmetic(layout: Layout, traits: EngineTraits) -> Iterator[Row]:
    for rank in layout.ranks:
        yield from _rank(layout, traits, rank)
    if layout.ranks:
        least = " (the least of the stages)" if len(layout.ranks) > 1 else ""
        yield Row("KV cache holds", _tokens(layout.kv_tokens), _tokens_how(layout, traits) + least)
        concurrency = f"{_tokens(layout.kv_tokens)} / {_tokens(layout.max_length)}"
        yield Row("sequences of full length", _or_unknown(layout.max_concurrency), concurrency)


def _rank(layout: Layout, traits: EngineTraits, rank: RankMemory) -> Iterator[Row]:
    where = f"stage {rank.stage}: " if len(layout.ranks) > 1 else ""
    layers = f"{rank.layers} layers"
    shared = f" / tensor {layout.tensor}, what cannot be divided lies on every GPU" if layout.tensor > 1 else ""
    yield Row(f"{where}memory of the engine", _bytes(rank.budget_bytes), _budget(layout, traits))
    yield Row(f"{where}- weights", shown(rank.weight_bytes), layers + shared + _elsewhere(layout, traits, rank))
    yield Row(f"{where}- activations", shown(rank.activation_bytes), "one step of the batch, and its logits")
    if rank.graph_bytes:
        yield Row(f"{where}- CUDA graphs", shown(rank.graph_bytes), f"about 256 MiB + 12 MiB x {layers}")
    yield Row(f"{where}- overhead", shown(rank.overhead_bytes), "contexts and buffers of the processes")
    yield Row(f"{where}= left for the KV cache", _bytes(rank.kv_bytes), "memory of the engine - the above")
    kept = f"those of {layers} that keep every token" if rank.kv_bytes_per_sequence else layers
    how = f"{kept}, in {layout.kv_dtype}{_width(layout, traits)}{shared}"
    yield Row(f"{where}KV cache of a token", f"{rank.kv_bytes_per_token} B", how)
    if rank.kv_bytes_per_sequence:
        how = "windows once full, and states, whatever the length"
        yield Row(f"{where}KV cache of a sequence", shown(rank.kv_bytes_per_sequence), how)


def _budget(layout: Layout, traits: EngineTraits) -> str:
    device = "the GPU" if layout.gpus_per_pod else "the container"
    margin = ", the rest is a margin" if traits.fraction_of is FractionOf.UNUSED else ""
    return f"{layout.memory_fraction} of {device}{margin} ({layout.origins.get('memory', _UNKNOWN)})"


def _elsewhere(layout: Layout, traits: EngineTraits, rank: RankMemory) -> str:
    """What of a model lies in the memory of the container beside its layers on GPUs; told once."""
    field = " (spec.execution.gpuLayers)" if layout.placement is Placement.SPLIT else ""
    if not (traits.splits_layers and layout.gpus_per_pod) or layout.weight_bytes is None or rank.stage > 0:
        return field
    outside = layout.weight_bytes - sum(it.weight_bytes for it in layout.ranks)
    return f"{field}; the other {shown(outside)} lie in the container" if outside > 0 else field


def _width(layout: Layout, traits: EngineTraits) -> str:
    size = traits.kv_element_bytes.get(layout.kv_dtype)
    return "" if size is None else f" ({size.normalize():f} byte{'s' * (size != 1)} a value)"


def _tokens_how(layout: Layout, traits: EngineTraits) -> str:
    if traits.kv_in_container and layout.gpus_per_pod:
        return "in the memory of the container, as the arguments of the engine ask"
    if not traits.context_is_shared and layout.max_length is not None:
        return _slots(layout, layout.max_length)
    if layout.kv_cache_bytes is not None:
        return f"within {shown(layout.kv_cache_bytes)} that the engine is told"
    if any(rank.kv_bytes_per_sequence for rank in layout.ranks):
        return "what is left, in sequences of full length with their windows and states"
    return "what is left / KV cache of a token, in whole blocks"


def _slots(layout: Layout, length: int) -> str:
    """An engine whose slots divide the cache allocates what they hold, however much is left."""
    slots = f"{layout.max_sequences} slots of {length} tokens"
    rank = min(layout.ranks, key=lambda it: it.kv_tokens or 0)
    needed = layout.max_sequences * (length * rank.kv_bytes_per_token + rank.kv_bytes_per_sequence)
    about = "about " if rank.kv_bytes_per_sequence else ""
    if layout.kv_tokens is not None and layout.kv_tokens < layout.max_sequences * length:
        return f"{slots} need {about}{shown(needed)}, more than what is left"
    return f"{slots}: {about}{shown(needed)} of what is left"


def _container(layout: Layout, spec: InferenceServiceSpec) -> Iterator[Row]:
    stated = spec.resources or Resources()
    if layout.shm_bytes:
        yield Row("shared memory", shown(layout.shm_bytes), "between the processes; part of the container's memory")
    memory = "spec.resources.memory" if stated.memory else _COMPUTED
    yield Row("memory of the container", shown(layout.memory_request_bytes), f"{memory}; request and limit")
    cores = "spec.resources.cpu" if stated.cpu else _COMPUTED
    yield Row("CPU of the container", f"{layout.cpu_request_millicores / 1000:g} cores", f"{cores}; request, no limit")
    how = "8 min, and the weights at 110 MB/s"
    if layout.weight_bytes is None:
        how = f"{layout.startup_budget_seconds // 60} min, since the size of the weights is not known"
    yield Row("time to start", f"{layout.startup_budget_seconds} s at most", how)


def _outcome(layout: Layout) -> Iterator[Row]:
    yield Row("verdict", layout.verdict.value, "; ".join(layout.reasons))
    if layout.verdict is Verdict.TOO_SMALL and not (layout.suggestions or layout.faults):
        yield Row("would fit", "nothing", "no layout on one node holds it")
    for suggestion in layout.suggestions:
        yield Row("would fit", _fields(suggestion), suggestion.summary.partition(": ")[2])
    for fault in layout.faults:
        yield Row("contradiction", fault.path, f"{fault.problem}; {fault.remedy}")


def layout_status(layout: Layout) -> dict[str, Any]:
    """Return a layout as JSON: camelCase, bytes and tokens as integers, null for what is unknown."""
    concurrency = layout.max_concurrency
    return {
        "verdict": layout.verdict.value,
        "reasons": list(layout.reasons),
        "placement": layout.placement.value,
        "podsPerReplica": layout.pods_per_replica,
        "gpusPerPod": layout.gpus_per_pod,
        "resourceName": layout.resource_name,
        "tensor": layout.tensor,
        "pipeline": layout.pipeline,
        "maxLength": layout.max_length,
        "maxSequences": layout.max_sequences,
        "maxQueued": layout.max_queued,
        "gpuLayers": layout.gpu_layers,
        "memoryFraction": str(layout.memory_fraction),
        "kvDtype": layout.kv_dtype,
        "weightBytes": layout.weight_bytes,
        "weightBytesPerRank": layout.weight_bytes_per_rank,
        "kvBytesPerTokenPerRank": layout.kv_bytes_per_token_per_rank,
        "kvCacheBytes": layout.kv_cache_bytes,
        "kvTokens": layout.kv_tokens,
        "maxConcurrency": None if concurrency is None else float(concurrency),
        "shortByBytes": layout.short_by_bytes,
        "shmBytes": layout.shm_bytes,
        "memoryRequestBytes": layout.memory_request_bytes,
        "cpuRequestMillicores": layout.cpu_request_millicores,
        "startupBudgetSeconds": layout.startup_budget_seconds,
        "ranks": [_rank_status(rank) for rank in layout.ranks],
        "suggestions": [{"fields": dict(it.fields), "summary": it.summary} for it in layout.suggestions],
        "faults": [{"path": it.path, "problem": it.problem, "remedy": it.remedy} for it in layout.faults],
        "origins": dict(layout.origins),
    }


def _rank_status(rank: RankMemory) -> dict[str, int | None]:
    return {
        "stage": rank.stage,
        "layers": rank.layers,
        "weightBytes": rank.weight_bytes,
        "activationBytes": rank.activation_bytes,
        "graphBytes": rank.graph_bytes,
        "overheadBytes": rank.overhead_bytes,
        "kvBytesPerToken": rank.kv_bytes_per_token,
        "kvBytesPerSequence": rank.kv_bytes_per_sequence,
        "budgetBytes": rank.budget_bytes,
        "kvBytes": rank.kv_bytes,
        "kvTokens": rank.kv_tokens,
    }


def _fields(suggestion: Suggestion) -> str:
    return ", ".join(f"{path}: {value}" for path, value in suggestion.fields.items())


def _bytes(count: int | None) -> str:
    return "unknown" if count is None else shown(count)


def _tokens(count: int | None) -> str:
    return "unknown" if count is None else f"{count} tokens"


def _or_unknown(value: object) -> str:
    return "unknown" if value is None else str(value)
