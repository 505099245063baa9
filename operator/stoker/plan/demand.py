"""What one replica is asked to do, with every default resolved: the input of the arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from stoker.api.engine import Batching, Context, Execution, Parallelism, Quantization
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.api.types import Switch, fraction
from stoker.facts.gpus import known_gpu
from stoker.facts.model import ModelFacts, UnknownFacts
from stoker.facts.quantization import gguf_type
from stoker.plan.inputs import Device, UnknownDevice
from stoker.plan.landing import SLICE
from stoker.plan.types import UNBOUNDED, EngineTraits
from stoker.plan.units import MIB

Facts = ModelFacts | UnknownFacts
AnyDevice = Device | UnknownDevice | None


@dataclass(frozen=True, slots=True)
class Demand:
    """One replica's wishes. A variation of it is what a suggestion tries."""

    tensor: int
    pipeline: int
    max_length: int | None
    max_sequences: int
    batched_tokens: int
    step_is_stated: bool
    """Whether the spec says how many tokens a step computes; else a larger GPU computes more."""
    kv_dtype: str
    kv_element_bytes: Fraction
    weights: str | None
    """The quantization that ``spec.quantization.weights`` asks for."""
    gguf: str | None
    """The quantization of a GGUF file, as its name states it."""
    is_gguf: bool
    memory_bytes: int | None
    """Of one GPU, or of the container of a CPU engine; None where it is not known."""
    memory_fraction: Decimal
    on_gpu: bool
    cuda_graphs: bool
    gpu_layers: int | None

    @property
    def world(self) -> int:
        """Processes that share the model: tensor x pipeline."""
        return self.tensor * self.pipeline

    @property
    def budget_bytes(self) -> int | None:
        """What the engine may use of a device, in bytes."""
        return None if self.memory_bytes is None else int(self.memory_bytes * self.memory_fraction)


def demand_of(
    spec: InferenceServiceSpec, traits: EngineTraits, facts: Facts, device: AnyDevice, memory_bytes: int | None
) -> Demand:
    """Resolve the spec's fields and their defaults; ``memory_bytes`` is of one GPU, or of a CPU engine's container."""
    parallelism = spec.parallelism or Parallelism()
    execution = spec.execution or Execution()
    dtype = (spec.quantization or Quantization()).kv_cache or traits.default_kv_dtype
    source = spec.model.source
    return Demand(
        tensor=parallelism.tensor or 1,
        pipeline=parallelism.pipeline or 1,
        max_length=max_length_of(spec, facts),
        max_sequences=max_sequences_of(spec, traits),
        batched_tokens=_batched_tokens(spec, traits, facts, _memory_as_read(spec, device, memory_bytes)),
        step_is_stated=(spec.batching or Batching()).max_batched_tokens is not None,
        kv_dtype=dtype,
        kv_element_bytes=Fraction(traits.kv_element_bytes.get(dtype, Decimal(2))),
        weights=(spec.quantization or Quantization()).weights,
        gguf=gguf_type(source) if source.endswith(".gguf") else None,
        is_gguf=source.endswith(".gguf"),
        memory_bytes=memory_bytes,
        memory_fraction=memory_fraction_of(spec, traits),
        on_gpu=device is not None,
        cuda_graphs=traits.captures_graphs and execution.cuda_graphs is not Switch.DISABLED,
        gpu_layers=execution.gpu_layers,
    )


def max_length_of(spec: InferenceServiceSpec, facts: Facts) -> int | None:
    """Return the longest sequence: the field, else that of the model."""
    stated = (spec.context or Context()).max_length
    return stated or (facts.max_length if isinstance(facts, ModelFacts) else None)


def max_sequences_of(spec: InferenceServiceSpec, traits: EngineTraits) -> int:
    """Return how many requests run at once; the default never exceeds the tokens of a step."""
    batching = spec.batching or Batching()
    return batching.max_sequences or min(
        traits.default_max_sequences, batching.max_batched_tokens or traits.default_max_sequences
    )


def memory_fraction_of(spec: InferenceServiceSpec, traits: EngineTraits) -> Decimal:
    """Return the fraction of a device's memory that the engine may use."""
    stated = spec.accelerator.memory_fraction if spec.accelerator else None
    return fraction(stated) if stated else traits.default_memory_fraction


def _batched_tokens(spec: InferenceServiceSpec, traits: EngineTraits, facts: Facts, memory: int | None) -> int:
    """Tokens of one step: the field, else the engine's own choice for a device of this size.

    Without chunked prefill a step holds a whole prompt.
    """
    batching = spec.batching or Batching()
    tokens = batching.max_batched_tokens or default_batched_tokens(traits, memory)
    whole = batching.chunked_prefill is Switch.DISABLED
    return max(tokens, max_length_of(spec, facts) or 0) if whole else tokens


def _memory_as_read(spec: InferenceServiceSpec, device: AnyDevice, memory_bytes: int | None) -> int | None:
    """The memory by which an engine chooses its step: on a slice (MIG) the driver tells that of the whole GPU."""
    if device is None or memory_bytes is None:
        return None
    products = [*((spec.accelerator.products if spec.accelerator else None) or ()), getattr(device, "product", None)]
    whole = {product.partition(SLICE)[0] for product in products if product and SLICE in product}
    return max([memory_bytes, *(_whole_bytes(product) for product in whole)])


def _whole_bytes(product: str) -> int:
    gpu = known_gpu(product)
    return gpu.memory_mib * MIB if gpu else UNBOUNDED


def default_batched_tokens(traits: EngineTraits, memory_bytes: int | None) -> int:
    """Return the tokens of a step that the engine chooses on a device of ``memory_bytes``."""
    steps = traits.default_batched_tokens
    return ([tokens for least, tokens in steps if (memory_bytes or 0) >= least] or [steps[0][1]])[-1]
