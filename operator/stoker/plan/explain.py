"""A layout in words and figures: rows for a table, and JSON for programs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.plan.types import Layout, RankMemory, Suggestion, Verdict
from stoker.plan.units import shown


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the explanation: what it is, its value, and how it came about."""

    name: str
    value: str
    how: str


def explain_rows(layout: Layout, spec: InferenceServiceSpec) -> list[Row]:
    """Return the arithmetic of a layout, from the inputs to the verdict, in the order in which it is done."""
    return [*_inputs(layout, spec), *_counts(layout), *_arithmetic(layout), *_container(layout), *_outcome(layout)]


def _inputs(layout: Layout, spec: InferenceServiceSpec) -> Iterator[Row]:
    origins = layout.origins
    yield Row("model", spec.model.source, f"facts: {origins.get('facts', 'unknown')}")
    yield Row("weights", _bytes(layout.weight_bytes), origins.get("weights", "unknown"))
    yield Row("longest sequence", _tokens(layout.max_length), origins.get("maxLength", "unknown"))
    yield Row("sequences at once", str(layout.max_sequences), origins.get("maxSequences", "unknown"))
    yield Row("KV cache type", layout.kv_dtype, origins.get("kvCache", "unknown"))


def _counts(layout: Layout) -> Iterator[Row]:
    if layout.gpus_per_pod:
        how = f"tensor {layout.tensor} x pipeline {layout.pipeline}"
        yield Row("GPUs per pod", f"{layout.gpus_per_pod} ({layout.resource_name})", how)
    else:
        yield Row("GPUs per pod", "0", "no spec.accelerator: the engine computes on the CPU")
    yield Row("pods per replica", str(layout.pods_per_replica), "one node")


def _arithmetic(layout: Layout) -> Iterator[Row]:
    for rank in layout.ranks:
        yield from _rank(layout, rank)
    if layout.ranks:
        least = " (the least of the stages)" if len(layout.ranks) > 1 else ""
        yield Row("KV cache holds", _tokens(layout.kv_tokens), _tokens_how(layout) + least)
        concurrency = f"{_tokens(layout.kv_tokens)} / {_tokens(layout.max_length)}"
        yield Row("sequences of full length", _or_unknown(layout.max_concurrency), concurrency)


def _rank(layout: Layout, rank: RankMemory) -> Iterator[Row]:
    where = f"stage {rank.stage}: " if len(layout.ranks) > 1 else ""
    layers = f"{rank.layers} layers"
    shared = f" / tensor {layout.tensor}, what cannot be divided lies on every GPU" if layout.tensor > 1 else ""
    budget = f"{layout.memory_fraction} of {'the GPU' if layout.gpus_per_pod else 'the container'}"
    budget += f" ({layout.origins.get('memory', 'unknown')})"
    yield Row(f"{where}memory of the engine", _bytes(rank.budget_bytes), budget)
    yield Row(f"{where}- weights", shown(rank.weight_bytes), layers + shared)
    yield Row(f"{where}- activations", shown(rank.activation_bytes), "one step of the batch, and its logits")
    if rank.graph_bytes:
        yield Row(f"{where}- CUDA graphs", shown(rank.graph_bytes), f"about 256 MiB + 12 MiB x {layers}")
    yield Row(f"{where}- overhead", shown(rank.overhead_bytes), "contexts and buffers of the processes")
    yield Row(f"{where}= left for the KV cache", _bytes(rank.kv_bytes), "memory of the engine - the above")
    yield Row(f"{where}KV cache of a token", f"{rank.kv_bytes_per_token} B", f"{layers} in {layout.kv_dtype}{shared}")
    if rank.kv_bytes_per_sequence:
        how = "windows once full, and states, whatever the length"
        yield Row(f"{where}KV cache of a sequence", shown(rank.kv_bytes_per_sequence), how)


def _tokens_how(layout: Layout) -> str:
    if layout.kv_cache_bytes is not None:
        return f"within {shown(layout.kv_cache_bytes)} that the engine is told"
    return "what is left / KV cache of a token, in whole blocks"


def _container(layout: Layout) -> Iterator[Row]:
    if layout.shm_bytes:
        yield Row("shared memory", shown(layout.shm_bytes), "between the processes; part of the container's memory")
    yield Row("memory of the container", shown(layout.memory_request_bytes), "request and limit")
    yield Row("CPU of the container", f"{layout.cpu_request_millicores / 1000:g} cores", "request")
    yield Row("time to start", f"{layout.startup_budget_seconds} s at most", "8 min, and the weights at 110 MB/s")


def _outcome(layout: Layout) -> Iterator[Row]:
    yield Row("verdict", layout.verdict.value, "; ".join(layout.reasons))
    if layout.verdict is Verdict.TOO_SMALL and not layout.suggestions:
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
