"""The smallest layouts that would fit, as field values that a user can copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from stoker.facts.gpus import GPUS
from stoker.facts.model import ModelFacts
from stoker.facts.quantization import METHODS
from stoker.plan.contradictions import tensor_is_valid
from stoker.plan.demand import AnyDevice, Demand, default_batched_tokens
from stoker.plan.host import container_for, least_container
from stoker.plan.inputs import STATED_MEMORY, Device
from stoker.plan.memory import Fit, concurrency, fit, longest_that_fits
from stoker.plan.types import EngineTraits, Suggestion
from stoker.plan.units import MIB, quantity

MAX_SUGGESTIONS: Final = 4
_GPUS_OF_A_NODE: Final = 8
"""Where no node is known."""
_SHORTEST: Final = 256
"""A shorter context is of no use to anybody, and is not suggested."""


@dataclass(frozen=True, slots=True)
class _Change:
    """Other values of the demand, and the fields of the spec that make them."""

    fields: Mapping[str, str]
    values: Mapping[str, Any]

    def __or__(self, other: _Change) -> _Change:
        return _Change({**self.fields, **other.fields}, {**self.values, **other.values})


@dataclass(frozen=True, slots=True)
class _Search:
    """One search: what does not fit, on what."""

    facts: ModelFacts
    demand: Demand
    traits: EngineTraits
    device: AnyDevice
    fitted: Fit
    container: int | None
    """The memory that the spec states for the container of the engine, in bytes."""

    def try_out(self, change: _Change) -> Suggestion | None:
        """Return the change as a suggestion where it fits, with a container that holds it."""
        fitted = self.fit_with(change)
        if not fitted.fits:
            return None
        change |= self._container(change, fitted)
        return Suggestion(change.fields, _summary(change, fitted, self.demand))

    def _container(self, change: _Change, fitted: Fit) -> _Change:
        least = least_container(replace(self.demand, **change.values), fitted, self.traits)
        if not self.demand.on_gpu or self.container is None or self.container >= least:
            return _Change({}, {})
        return _Change({"spec.resources.memory": quantity(least)}, {})

    def fit_with(self, change: _Change) -> Fit:
        """Return how the replica lies with the change."""
        form = None if "weights" in change.values else self.fitted.form
        return fit(self.facts, replace(self.demand, **change.values), self.traits, form)

    def first_that_fits(self, changes: Iterable[_Change]) -> Iterator[Suggestion]:
        """Yield the first change that fits, if any does."""
        found = next((suggestion for change in changes if (suggestion := self.try_out(change))), None)
        if found:
            yield found


def suggest(
    facts: ModelFacts, demand: Demand, traits: EngineTraits, device: AnyDevice, fitted: Fit, container: int | None
) -> tuple[Suggestion, ...]:
    """Return up to four layouts that fit where ``fitted`` does not; empty where nothing would help.

    First a single change: more of each GPU, more GPUs (the fewest), smaller formats, fewer layers on the GPU, a larger
    container, fewer or shorter sequences. Two changes at once only where neither more GPUs nor a smaller format is
    enough, and another GPU only where nothing else is. ``container`` is what the spec states for the engine's
    container, in bytes; it grows with a layout that needs more.
    """
    search = _Search(facts, demand, traits, device, fitted, container)
    layouts, formats = tuple(_layouts(search)), tuple(_formats(search))
    found = [*search.first_that_fits(_larger_share(search)), *search.first_that_fits(layouts)]
    found += [*(it for change in formats if (it := search.try_out(change)))]
    found += [it for change in _host_changes(search) if (it := search.try_out(change))]
    if not found:
        found += search.first_that_fits(layout | change for layout in layouts for change in _all_together(formats))
    found += [it for change in _smaller_loads(search) if (it := search.try_out(change))]
    if not found:
        found += search.first_that_fits(_larger_gpus(search))
    return tuple(found[:MAX_SUGGESTIONS])


def _larger_share(search: _Search) -> Iterator[_Change]:
    """The engine's usual fraction of each GPU, where the spec gives it less."""
    usual = search.traits.default_memory_fraction
    if search.demand.on_gpu and search.demand.memory_fraction < usual:
        yield _Change({"spec.accelerator.memoryFraction": str(usual)}, {"memory_fraction": usual})


def _layouts(search: _Search) -> Iterator[_Change]:
    """Tensor x pipeline over more GPUs of one node, the fewest first, tensor before pipeline."""
    demand, traits = search.demand, search.traits
    if search.device is None:
        return
    world = 1
    while (world := world * 2) <= (search.device.landing.largest or _GPUS_OF_A_NODE):
        for tensor in _halves(world):
            pipeline = world // tensor
            possible = (traits.supports_tensor or tensor == 1) and (traits.supports_pipeline or pipeline == 1)
            fits_model = tensor_is_valid(search.facts, tensor) and pipeline <= len(search.facts.layers)
            if world > demand.world and possible and fits_model:
                yield _layout(demand, tensor, pipeline)


def _halves(world: int) -> Iterator[int]:
    while world:
        yield world
        world //= 2


def _layout(demand: Demand, tensor: int, pipeline: int) -> _Change:
    fields = {}
    if tensor != demand.tensor:
        fields["spec.parallelism.tensor"] = str(tensor)
    if pipeline != demand.pipeline:
        fields["spec.parallelism.pipeline"] = str(pipeline)
    return _Change(fields, {"tensor": tensor, "pipeline": pipeline})


def _formats(search: _Search) -> Iterator[_Change]:
    """Smaller weights, and a smaller KV cache, where the engine has them and the GPU computes in them."""
    demand, elements = search.demand, search.traits.kv_element_bytes
    capability = search.device.capability if search.device else None
    native = capability is not None and capability >= METHODS["fp8"].native
    if native and not (demand.is_gguf or demand.weights or search.facts.checkpoint):
        yield _Change({"spec.quantization.weights": "fp8"}, {"weights": "fp8"})
    small = "q8_0" if "q8_0" in elements else "fp8" if "fp8" in elements and (native or not demand.on_gpu) else None
    if small and Fraction(elements[small]) < demand.kv_element_bytes:
        values = {"kv_dtype": small, "kv_element_bytes": Fraction(elements[small])}
        yield _Change({"spec.quantization.kvCache": small}, values)


def _all_together(formats: tuple[_Change, ...]) -> Iterator[_Change]:
    """Each format, then all of them."""
    yield from formats
    if len(formats) > 1:
        yield formats[0] | formats[1]


def _host_changes(search: _Search) -> Iterator[_Change]:
    """More of the container's memory: for a CPU engine itself, for a split model by fewer layers on the GPU."""
    demand, fitted = search.demand, search.fitted
    if not demand.on_gpu:
        needed = container_for(fitted, demand, search.traits, fitted.needed_kv_bytes or 1)
        yield _Change({"spec.resources.memory": quantity(needed)}, {"memory_bytes": needed})
    elif search.traits.splits_layers:
        low, high = 0, min(demand.gpu_layers or len(search.facts.layers) + 1, len(search.facts.layers) + 1) - 1
        while low < high:
            middle = (low + high + 1) // 2
            fits = search.fit_with(_Change({}, {"gpu_layers": middle})).fits
            low, high = (middle, high) if fits else (low, middle - 1)
        if low:
            yield _Change({"spec.execution.gpuLayers": str(low)}, {"gpu_layers": low})


def _smaller_loads(search: _Search) -> Iterator[_Change]:
    """Fewer sequences where each has a slot of its own, and shorter ones."""
    demand, traits = search.demand, search.traits
    length = longest_that_fits(search.fitted, demand, traits)
    if length and search.facts.max_length:
        length = min(length, search.facts.max_length)
    if length and length >= _SHORTEST:
        yield _Change({"spec.context.maxLength": str(length)}, {"max_length": length})
    if not traits.context_is_shared and demand.max_length:
        ranks = zip(search.fitted.ranks, search.fitted.caches, strict=True)
        slots = min((rank.kv_bytes or 0) // max(cache.sequence_bytes(demand.max_length), 1) for rank, cache in ranks)
        if slots > 0:
            yield _Change({"spec.batching.maxSequences": str(slots)}, {"max_sequences": slots})


def _larger_gpus(search: _Search) -> Iterator[_Change]:
    """GPUs of the table with more memory, the smallest first, where the spec does not state the memory itself."""
    if not isinstance(search.device, Device) or search.device.origin == STATED_MEMORY:
        return
    demand, least = search.demand, search.device.capability or (0, 0)
    for gpu in sorted(GPUS.values(), key=lambda gpu: (gpu.memory_mib, gpu.product)):
        memory = gpu.memory_mib * MIB
        if memory <= search.device.memory_bytes or gpu.capability < least:
            continue
        step = 0 if demand.step_is_stated else default_batched_tokens(search.traits, memory)
        values = {"memory_bytes": memory, "batched_tokens": max(demand.batched_tokens, step)}
        yield _Change({"spec.accelerator.products": f"[{gpu.product}]"}, values)


def _summary(change: _Change, fitted: Fit, demand: Demand) -> str:
    fields = ", ".join(f"{path} {value}" for path, value in change.fields.items())
    length = change.values.get("max_length", demand.max_length)
    if fitted.kv_tokens is None or length is None:
        return fields
    return (
        f"{fields}: {fitted.kv_tokens} tokens of KV cache, {float(concurrency(fitted.kv_tokens, length)):.1f} sequences"
    )
