"""Whether a layout fits: the verdict, and the reasons in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.facts.model import CacheKind, ModelFacts, UnknownFacts
from stoker.plan.demand import AnyDevice, Demand, Facts
from stoker.plan.inputs import UnknownDevice
from stoker.plan.landing import Landing
from stoker.plan.memory import Fit
from stoker.plan.types import Concerns, EngineTraits, Uncounted, Verdict
from stoker.plan.units import shown


@dataclass(frozen=True, slots=True)
class Given:
    """Everything that a verdict looks at; ``fitted`` is None where the model is unknown or has too few layers."""

    spec: InferenceServiceSpec
    facts: Facts
    device: AnyDevice
    demand: Demand
    traits: EngineTraits
    fitted: Fit | None

    @property
    def uncounted(self) -> tuple[Uncounted, ...]:
        """What moves memory by an unknown amount in this model."""
        return tuple(it for it in self.traits.uncounted if _concerns(it.concerns, self.facts))


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict; ``short_by_bytes`` is what each device lacks where it is TooSmall."""

    verdict: Verdict
    reasons: tuple[str, ...]
    short_by_bytes: int | None = None


def judge(it: Given) -> Judgement:
    """Return the verdict. It is Fits or TooSmall only where nothing that is not counted could turn it around."""
    unknown, moved = (
        tuple(_unknown(it)),
        tuple(f"{move.reason}, which the layout does not count" for move in it.uncounted),
    )
    short = it.fitted.short_by_bytes if it.fitted else None
    if it.fitted and short is not None and short > 0 and not _size_is_unknown(it):
        reasons = (*_too_small(it, it.fitted, short), *moved)
        certain = short > sum(move.frees_bytes for move in it.uncounted)
        return Judgement(Verdict.TOO_SMALL, reasons, short) if certain else Judgement(Verdict.UNKNOWN, reasons)
    if unknown or it.fitted is None:
        return Judgement(Verdict.UNKNOWN, (*(unknown or ("the model has fewer layers than stages",)), *moved))
    if any(move.takes for move in it.uncounted):
        figures, *others = _fits(it, it.fitted)
        return Judgement(Verdict.UNKNOWN, (*moved, f"without that {figures}", *others))
    return Judgement(Verdict.FITS, _fits(it, it.fitted))


def _concerns(models: Concerns, facts: Facts) -> bool:
    """Whether a model is one of ``models``; of an unknown one it is to be feared.

    Numbers alone (``spec.model.facts.inline``) tell neither encoders nor experts.
    """
    if models is Concerns.EVERY_MODEL or isinstance(facts, UnknownFacts):
        return True
    in_numbers = not facts.model_type
    if models is Concerns.ENCODERS:
        return in_numbers or facts.encoder_parameters > 0
    if models is Concerns.EXPERTS:
        return in_numbers or any(layer.parameters.experts for layer in facts.layers)
    if models is Concerns.UNTOLD_EXPERTS:
        return in_numbers
    if models is Concerns.LATENT_LAYERS:
        return any(layer.cache.kind is CacheKind.LATENT for layer in facts.layers)
    return any(layer.cache.is_bounded or layer.cache.state_bytes for layer in facts.layers)


def _unknown(it: Given) -> Iterator[str]:
    if isinstance(it.facts, UnknownFacts):
        yield f"the model is not known: {it.facts.reason}"
    if isinstance(it.device, UnknownDevice):
        yield f"the memory of the GPU is not known: {it.device.reason}"
    if _size_is_unknown(it):
        yield "the name of the GGUF file does not state its quantization, and so not its size"
    if it.fitted and it.demand.max_length is None:
        yield "the longest sequence is not known; set spec.context.maxLength"
    if it.device is not None and it.demand.world > 1:
        yield from _nowhere(it.demand.world, it.device.landing)


def _nowhere(world: int, landing: Landing) -> Iterator[str]:
    """Yield why no known node may hold the replica. Others may come, so that it is no contradiction."""
    if landing.largest is not None and world > landing.largest:
        what = f"one replica takes {world} GPUs of one node, and the largest that is known has {landing.largest}"
        yield f"{what}; lower spec.parallelism, or add a larger node"
    if landing.parts:
        more = f" and {len(landing.parts) - 1} more" * (len(landing.parts) > 1)
        remedy = "name whole GPUs in spec.accelerator.products"
        yield f"GPUs of {landing.parts[0]}{more} are parts, between which a replica cannot be divided; {remedy}"


def _size_is_unknown(it: Given) -> bool:
    """Whether the weights are a GGUF file of a quantization that nothing states."""
    stated = isinstance(it.facts, ModelFacts) and it.facts.weight_bytes is not None
    return it.demand.is_gguf and it.demand.gguf is None and not stated


def _too_small(it: Given, fitted: Fit, short: int) -> tuple[str, ...]:
    worst = min(fitted.ranks, key=lambda rank: rank.kv_bytes or 0)
    where = "each GPU" if it.demand.on_gpu else "the container"
    fixed = worst.weight_bytes + worst.activation_bytes + worst.graph_bytes + worst.overhead_bytes
    budget = worst.budget_bytes or 0
    what = "one sequence" if it.traits.context_is_shared else f"{it.demand.max_sequences} sequences"
    cache, need = f"the KV cache of {what} of {it.demand.max_length} tokens", shown(fitted.needed_kv_bytes or 0)
    if fixed > budget:
        first = f"weights and activations need {shown(fixed)} of {where}, and the engine may use {shown(budget)}"
        more = f", with {need} for {cache}" if fitted.needed_kv_bytes else ""
        return first, f"short by {shown(short)} on {where}{more}"
    left = shown(max(worst.kv_bytes or 0, 0))
    return f"{cache} needs {need}, and {left} of {where} are left", f"short by {shown(short)} on {where}"


def _fits(it: Given, fitted: Fit) -> tuple[str, ...]:
    demand, traits = it.demand, it.traits
    where = f"{demand.world} GPU{'s' * (demand.world > 1)}" if demand.on_gpu else "the CPU"
    if traits.kv_in_container and demand.on_gpu:
        where = "the memory of the container"
    elif (
        demand.gpu_layers is not None and isinstance(it.facts, ModelFacts) and demand.gpu_layers < len(it.facts.layers)
    ):
        where += ", that of the other layers in the container"
    reasons = [f"{fitted.kv_tokens} tokens of KV cache on {where}"]
    if not demand.on_gpu and traits.kv_cache_step_bytes > 1:
        reasons.append(f"the engine takes its KV cache in steps of {shown(traits.kv_cache_step_bytes)}, rounded down")
    if any(cache.windows or cache.state_bytes for cache in fitted.caches):
        reasons.append("layers of several kinds share one pool; the engine's padding of it is not counted")
    return tuple(reasons)
