"""Contradictions in a spec that no cluster could cure: an ordered list of small checks, one fault each.

Each returns a fault that names the field, and the other field where two contradict each other (rule N12).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Final

from stoker.api.engine import Batching, Context
from stoker.api.faults import Fault
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.api.types import Switch
from stoker.facts.model import ModelFacts
from stoker.facts.quantization import METHODS, Capability
from stoker.plan.demand import AnyDevice, Demand, Facts
from stoker.plan.inputs import Device
from stoker.plan.landing import is_part
from stoker.plan.memory import CONTEXT_BYTES
from stoker.plan.types import EngineTraits, FractionOf
from stoker.plan.units import MIB, shown

_MAX_TENSOR: Final = 64
_LEAST_CONTEXT_BYTES: Final = 256 * MIB
"""No CUDA context takes less, on the smallest slice of a GPU either."""


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that the checks look at."""

    spec: InferenceServiceSpec
    traits: EngineTraits
    demand: Demand
    facts: Facts
    device: AnyDevice

    @property
    def model(self) -> ModelFacts | None:
        """The model's facts where they are known."""
        return self.facts if isinstance(self.facts, ModelFacts) else None

    @property
    def capability(self) -> Capability | None:
        """The least compute capability of the GPUs on which a pod may land."""
        return self.device.capability if self.device else None


def contradictions(case: Case) -> tuple[Fault, ...]:
    """Return every contradiction, in the order of the checks."""
    return tuple(fault for check in _CHECKS if (fault := check(case)))


def tensor_is_valid(facts: ModelFacts, tensor: int) -> bool:
    """Return whether ``tensor`` ranks can share the attention of a model.

    Each rank takes equally many attention heads, and equally many key-value heads or copies of one.
    """
    kv_heads = facts.kv_heads or tensor
    return facts.attention_heads % tensor == 0 and (kv_heads % tensor == 0 or tensor % kv_heads == 0)


def valid_tensors(facts: ModelFacts) -> tuple[int, ...]:
    """Return every tensor size that the model's heads allow."""
    return tuple(tensor for tensor in range(1, _MAX_TENSOR + 1) if tensor_is_valid(facts, tensor))


def _heads(case: Case) -> Fault | None:
    tensor = case.demand.tensor
    if case.model is None or tensor_is_valid(case.model, tensor):
        return None
    heads = f"{case.model.attention_heads} attention heads"
    if case.model.kv_heads not in (None, case.model.attention_heads):
        heads += f" and {case.model.kv_heads} key-value heads"
    values = ", ".join(str(value) for value in valid_tensors(case.model))
    problem = f"the model's {heads} cannot be divided over {tensor} GPUs"
    return Fault("spec.parallelism.tensor", problem, f"set it to one of {values}", "TensorDoesNotDivideHeads")


def _stages(case: Case) -> Fault | None:
    pipeline = case.demand.pipeline
    if case.model is None or pipeline <= len(case.model.layers):
        return None
    problem = f"the model has {len(case.model.layers)} layers, fewer than the {pipeline} stages"
    remedy = f"set it to {len(case.model.layers)} or less"
    return Fault("spec.parallelism.pipeline", problem, remedy, "TooManyStages")


def _whole_gpus(case: Case) -> Fault | None:
    """Slices of a GPU cannot exchange data, and shares of one may all lie on the same GPU (N13)."""
    products = (case.spec.accelerator.products if case.spec.accelerator else None) or ()
    part = next((product for product in products if is_part(product)), None)
    if case.demand.world == 1 or part is None:
        return None
    problem = f"one replica takes {case.demand.world} GPUs, and {part} of spec.accelerator.products is a part of one"
    return Fault("spec.parallelism", problem, "set tensor and pipeline to 1, or name whole GPUs", "PartsOfGPU")


def _parts_everywhere(case: Case) -> Fault | None:
    """Without products the nodes tell; an affinity may lead to others, which is not looked at."""
    landing = case.device.landing if case.device else None
    affinity = case.spec.pod.affinity if case.spec.pod else None
    if case.demand.world == 1 or landing is None or not landing.parts or landing.has_whole or affinity is not None:
        return None
    problem = f"one replica takes {case.demand.world} GPUs, and all that are known are parts of one: {landing.parts[0]}"
    remedy = "set tensor and pipeline to 1, or name whole GPUs in spec.accelerator.products"
    return Fault("spec.parallelism", problem, remedy, "PartsOfGPU")


def _length(case: Case) -> Fault | None:
    wanted = (case.spec.context or Context()).max_length
    longest = case.model.max_length if case.model else None
    if wanted is None or longest is None or wanted <= longest:
        return None
    problem = f"{wanted} tokens are more than the {longest} that the model was made for"
    remedy = f"set it to {longest} or less, or describe the extended model in spec.model.facts"
    return Fault("spec.context.maxLength", problem, remedy, "LongerThanModel")


def _whole_prompts(case: Case) -> Fault | None:
    batching = case.spec.batching or Batching()
    stated, longest = batching.max_batched_tokens, case.demand.max_length
    if batching.chunked_prefill is not Switch.DISABLED or stated is None or longest is None or stated >= longest:
        return None
    where = "spec.context.maxLength" if (case.spec.context or Context()).max_length else "the model's longest sequence"
    problem = f"with spec.batching.chunkedPrefill Disabled one step holds a whole prompt, and {where} is {longest}"
    remedy = f"set it to at least {longest}, lower spec.context.maxLength to {stated}, or enable chunkedPrefill"
    return Fault("spec.batching.maxBatchedTokens", problem, remedy, "PromptExceedsStep")


def _sequences(case: Case) -> Fault | None:
    batching = case.spec.batching or Batching()
    stated = batching.max_batched_tokens
    if stated is None or case.demand.max_sequences <= stated:
        return None
    problem = f"{case.demand.max_sequences} sequences need a token each in a step of maxBatchedTokens {stated}"
    remedy = f"lower it to {stated}, or raise spec.batching.maxBatchedTokens"
    return Fault("spec.batching.maxSequences", problem, remedy, "SequencesExceedStep")


def _weights_capability(case: Case) -> Fault | None:
    method = METHODS.get(case.demand.weights or "")
    if method is None or case.capability is None or case.capability >= method.capability:
        return None
    remedy = f"choose GPUs of at least {_shown(method.capability)} in spec.accelerator.products, or another method"
    problem = f"{case.demand.weights} needs compute capability {_shown(method.capability)}, and {_gpu(case)}"
    return Fault("spec.quantization.weights", problem, remedy, "QuantizationNotOnGPU")


def _checkpoint_capability(case: Case) -> Fault | None:
    checkpoint = case.model.checkpoint if case.model else None
    method = METHODS.get(checkpoint.method) if checkpoint else None
    if method is None or checkpoint is None or case.capability is None or case.capability >= method.capability:
        return None
    problem = f"the checkpoint is quantized as {checkpoint.method}, which needs {_shown(method.capability)}"
    remedy = f"choose newer GPUs in spec.accelerator.products ({_gpu(case)}), or a checkpoint that is not quantized"
    return Fault("spec.model.source", problem, remedy, "QuantizationNotOnGPU")


def _checkpoint_method(case: Case) -> Fault | None:
    checkpoint = case.model.checkpoint if case.model else None
    wanted = METHODS.get(case.demand.weights or "")
    if checkpoint is None or case.demand.weights in (None, checkpoint.method):
        return None
    stored = METHODS.get(checkpoint.method)
    if wanted and stored and wanted.family == stored.family:
        return None
    problem = f"{case.demand.weights} contradicts the checkpoint of spec.model.source, which is {checkpoint.method}"
    return Fault("spec.quantization.weights", problem, "remove it, or serve another checkpoint", "QuantizationMismatch")


def _gpu_layers(case: Case) -> Fault | None:
    wanted, model = case.demand.gpu_layers, case.model
    if wanted == 0:
        remedy = "remove it and spec.accelerator for an engine on the CPU, or set it to 1 or more"
        return Fault("spec.execution.gpuLayers", "0 leaves the GPU of spec.accelerator idle", remedy, "IdleGPU")
    if wanted is None or model is None or wanted <= len(model.layers) + 1:
        return None
    problem = f"{wanted} is more than the model's {len(model.layers)} layers and its output layer"
    remedy = f"set it to {len(model.layers) + 1} or less, or remove it for all of them"
    return Fault("spec.execution.gpuLayers", problem, remedy, "TooManyLayers")


def _stated_memory(case: Case) -> Fault | None:
    """What the maker prints on a GPU exceeds what its driver reports by up to 7 %: that much is no contradiction."""
    device = case.device
    if not isinstance(device, Device) or device.observed_bytes is None:
        return None
    if device.memory_bytes * 10 <= device.observed_bytes * 11:
        return None
    problem = (
        f"{shown(device.memory_bytes)} is more than the {shown(device.observed_bytes)} of {device.observed_origin}"
    )
    remedy = "remove it, or name the GPUs that have as much in spec.accelerator.products"
    return Fault("spec.accelerator.memory", problem, remedy, "MoreMemoryThanGPU")


def _whole_memory(case: Case) -> Fault | None:
    """vLLM ends where its share exceeds what is free, and its own CUDA context has taken some before it looks."""
    demand = case.demand
    if not demand.on_gpu or case.traits.fraction_of is not FractionOf.TOTAL:
        return None
    left = None if demand.memory_bytes is None else demand.memory_bytes - (demand.budget_bytes or 0)
    if demand.memory_fraction < 1 and (left is None or left >= _LEAST_CONTEXT_BYTES):
        return None
    fraction = demand.memory_fraction
    problem = f"{fraction} leaves {shown(left) if left else 'nothing'} of each GPU for the context of CUDA"
    return Fault("spec.accelerator.memoryFraction", problem, f"set it to {_most(demand)} or less", "NoRoomForContext")


def _most(demand: Demand) -> Decimal:
    """Return the largest fraction, in hundredths, that leaves a CUDA context its room."""
    if demand.memory_bytes is None:
        return Decimal("0.95")
    left = Decimal(max(demand.memory_bytes - CONTEXT_BYTES, 0)) / demand.memory_bytes
    return max(left.quantize(Decimal("0.01"), ROUND_DOWN), Decimal("0.01"))


def _gpu(case: Case) -> str:
    product = getattr(case.device, "product", None) or "the GPU"
    return f"{product} has {_shown(case.capability or (0, 0))}"


def _shown(capability: Capability) -> str:
    return f"{capability[0]}.{capability[1]}"


_CHECKS: Final[Iterable[Callable[[Case], Fault | None]]] = (
    _heads,
    _stages,
    _whole_gpus,
    _parts_everywhere,
    _length,
    _whole_prompts,
    _sequences,
    _weights_capability,
    _checkpoint_method,
    _checkpoint_capability,
    _gpu_layers,
    _stated_memory,
    _whole_memory,
)
