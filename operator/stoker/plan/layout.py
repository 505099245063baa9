"""``plan_layout``: from a spec, an engine, a model and a device to the one :class:`~stoker.plan.types.Layout`."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from stoker.api.engine import Accelerator, Batching, Context, Quantization, Resources
from stoker.api.faults import Fault
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.facts.model import ModelFacts, UnknownFacts
from stoker.plan import host
from stoker.plan.contradictions import Case, contradictions
from stoker.plan.demand import AnyDevice, Demand, Facts, demand_of
from stoker.plan.inputs import Device, UnknownDevice, facts_origin
from stoker.plan.memory import Fit, concurrency, fit
from stoker.plan.suggest import suggest
from stoker.plan.types import EngineTraits, Layout, Placement, Suggestion, Verdict
from stoker.plan.verdict import Given, Judgement, judge


def plan_layout(
    spec: InferenceServiceSpec,
    traits: EngineTraits,
    facts: ModelFacts | UnknownFacts,
    device: Device | UnknownDevice | None,
) -> Layout:
    """Return the layout of one replica: counts, memory per rank, verdict, and the smallest layouts that would fit.

    ``device`` is None for an engine on the CPU. Where the model or the device is unknown the verdict is ``Unknown``
    with the reason, and every count that does not depend on it is there. Never raises: what is wrong is in ``faults``.
    """
    memory = device.memory_bytes if isinstance(device, Device) else None
    demand = demand_of(spec, traits, facts, device, memory if device else host.stated_memory(spec))
    faults = contradictions(Case(spec, traits, demand, facts, device))
    fitted, demand = _fit(facts, demand, traits, device)
    small = host.container_fault(spec, demand, fitted, traits)
    layout = _layout(spec, traits, facts, device, demand, fitted, (*faults, small) if small else faults)
    return replace(layout, suggestions=tuple(way for way in layout.suggestions if _mends(way, faults)))


def _mends(way: Suggestion, faults: tuple[Fault, ...]) -> bool:
    """Return whether a way to fit leaves no contradiction, for which it would be refused itself.

    What is suggested for a field agrees with the model; only the number of sequences is not held against that of
    ``batching.maxBatchedTokens``.
    """
    return all(fault.path in way.fields and fault.reason != "SequencesExceedStep" for fault in faults)


def _fit(facts: Facts, demand: Demand, traits: EngineTraits, device: AnyDevice) -> tuple[Fit | None, Demand]:
    """Lay out a known model; the container of a CPU engine that states no memory is sized by it."""
    if isinstance(facts, UnknownFacts):
        sized = demand.memory_bytes if device or demand.memory_bytes else host.DEFAULT_CPU_ENGINE_BYTES
        return None, _with_memory(demand, sized)
    if demand.pipeline > len(facts.layers):
        return None, demand
    fitted = fit(facts, demand, traits)
    if device is None and demand.memory_bytes is None:
        demand = _with_memory(demand, host.cpu_engine_memory(fitted, demand, traits))
        fitted = fit(facts, demand, traits)
    return fitted, demand


def _with_memory(demand: Demand, memory_bytes: int | None) -> Demand:
    return replace(demand, memory_bytes=memory_bytes)


def _layout(
    spec: InferenceServiceSpec,
    traits: EngineTraits,
    facts: Facts,
    device: AnyDevice,
    demand: Demand,
    fitted: Fit | None,
    faults: tuple[Fault, ...],
) -> Layout:
    judged = judge(Given(spec, facts, device, demand, traits, fitted))
    shm = host.shm_bytes(traits, demand.world, demand.on_gpu)
    weights = fitted.weight_bytes if fitted else None
    tokens = fitted.kv_tokens if fitted else None
    return Layout(
        placement=_placement(facts, demand),
        pods_per_replica=1,
        gpus_per_pod=demand.world if device else 0,
        resource_name=device.resource_name if device else None,
        tensor=demand.tensor,
        pipeline=demand.pipeline,
        max_length=demand.max_length,
        max_sequences=demand.max_sequences,
        max_queued=_max_queued(spec, traits, demand),
        gpu_layers=demand.gpu_layers,
        memory_fraction=demand.memory_fraction,
        kv_dtype=demand.kv_dtype,
        weight_bytes=weights,
        kv_cache_bytes=None if device else _explicit_kv_bytes(demand, traits, fitted),
        kv_tokens=tokens,
        max_concurrency=_concurrency(tokens, demand.max_length),
        shm_bytes=shm,
        memory_request_bytes=_memory_request(spec, facts, demand, traits, fitted, shm),
        cpu_request_millicores=host.cpu_request(spec, demand),
        startup_budget_seconds=host.startup_budget_seconds(weights),
        ranks=fitted.ranks if fitted else (),
        verdict=judged.verdict,
        reasons=judged.reasons,
        short_by_bytes=judged.short_by_bytes,
        suggestions=_suggestions(facts, device, demand, traits, fitted, judged, host.stated_memory(spec)),
        faults=faults,
        origins=_origins(spec, traits, facts, device, demand),
    )


def _suggestions(
    facts: Facts,
    device: AnyDevice,
    demand: Demand,
    traits: EngineTraits,
    fitted: Fit | None,
    judged: Judgement,
    container: int | None,
) -> tuple[Suggestion, ...]:
    if judged.verdict is not Verdict.TOO_SMALL or fitted is None or isinstance(facts, UnknownFacts):
        return ()
    return suggest(facts, demand, traits, device, fitted, container)


# ---- parts of the layout -------------------------------------------------------------------------------------------
def _placement(facts: Facts, demand: Demand) -> Placement:
    if not demand.on_gpu:
        return Placement.CPU
    if demand.gpu_layers is None:
        return Placement.GPU
    everything = isinstance(facts, ModelFacts) and demand.gpu_layers > len(facts.layers)
    return Placement.GPU if everything else Placement.SPLIT


def _max_queued(spec: InferenceServiceSpec, traits: EngineTraits, demand: Demand) -> int | None:
    if not traits.has_queue_limit:
        return None
    return (spec.batching or Batching()).max_queued or 2 * demand.max_sequences


def _explicit_kv_bytes(demand: Demand, traits: EngineTraits, fitted: Fit | None) -> int | None:
    """The KV cache that a CPU engine is told: all that is left for a shared pool, what the slots hold otherwise.

    Of an unknown model, a quarter of the container: the weights may take the rest.
    """
    if fitted is None:
        guess = (demand.budget_bytes or 0) // 4
        return guess - guess % traits.kv_cache_step_bytes if traits.context_is_shared else None
    if not traits.context_is_shared:
        return fitted.needed_kv_bytes
    return max(fitted.ranks[0].kv_bytes or 0, 0)


def _memory_request(
    spec: InferenceServiceSpec, facts: Facts, demand: Demand, traits: EngineTraits, fitted: Fit | None, shm: int
) -> int:
    if stated := host.stated_memory(spec):
        return stated
    if not demand.on_gpu:
        return demand.memory_bytes or host.DEFAULT_CPU_ENGINE_BYTES
    return host.gpu_engine_memory(facts, fitted, demand, traits, shm)


def _concurrency(tokens: int | None, max_length: int | None) -> Decimal | None:
    if tokens is None or max_length is None:
        return None
    return Decimal(int(concurrency(tokens, max_length) * 100)).scaleb(-2)


def _origins(
    spec: InferenceServiceSpec, traits: EngineTraits, facts: Facts, device: AnyDevice, demand: Demand
) -> dict[str, str]:
    default = f"default of {traits.name}"
    batching, context = spec.batching or Batching(), spec.context or Context()
    quantization, accelerator = spec.quantization or Quantization(), spec.accelerator or Accelerator()
    known = isinstance(facts, ModelFacts)
    return {
        "facts": facts_origin(spec) if known else "unknown",
        "memory": _memory_origin(spec, device),
        "memoryFraction": "spec.accelerator.memoryFraction" if accelerator.memory_fraction else default,
        "maxLength": "spec.context.maxLength" if context.max_length else "model" if demand.max_length else "unknown",
        "maxSequences": "spec.batching.maxSequences" if batching.max_sequences else default,
        "maxBatchedTokens": "spec.batching.maxBatchedTokens" if batching.max_batched_tokens else default,
        "kvCache": "spec.quantization.kvCache" if quantization.kv_cache else default,
        "weights": _weights_origin(facts, demand, quantization.weights),
    }


def _memory_origin(spec: InferenceServiceSpec, device: AnyDevice) -> str:
    if isinstance(device, Device):
        return device.origin
    if device is not None:
        return "unknown"
    return "spec.resources.memory" if (spec.resources or Resources()).memory else "layout"


def _weights_origin(facts: Facts, demand: Demand, stated: str | None) -> str:
    if isinstance(facts, UnknownFacts):
        return "unknown"
    if facts.weight_bytes is not None:
        return "size stated by the model's facts"
    if demand.is_gguf:
        return f"parameters x bits of {demand.gguf}, from the file's name" if demand.gguf else "unknown"
    stored = facts.checkpoint.method if facts.checkpoint else None
    return f"parameters x bits of {stored or stated or facts.native_dtype}"
