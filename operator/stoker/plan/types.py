"""The layout of one replica over its devices: the single source for GPU counts, resource names and memory figures."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Final

from stoker.api.faults import Fault


class Verdict(StrEnum):
    """Whether the layout fits its devices."""

    FITS = "Fits"
    TOO_SMALL = "TooSmall"
    UNKNOWN = "Unknown"


class Placement(StrEnum):
    """Where the weights of a replica live."""

    GPU = "GPU"
    CPU = "CPU"
    SPLIT = "Split"
    """Some layers on the GPU, the rest in the memory of the container (llama.cpp)."""


class FractionOf(StrEnum):
    """What the memory fraction of an engine is a fraction of; it differs by engine."""

    TOTAL = "Total"
    """Of the whole device (vLLM)."""
    FREE = "Free"
    """Of what is free when the engine starts."""
    UNUSED = "Unused"
    """The engine has no such setting: it takes what it needs (llama.cpp)."""


class Windows(StrEnum):
    """What a layer that sees a window keeps of a long sequence."""

    BOUNDED = "Bounded"
    """Its window only."""
    WHOLE_IF_MIXED = "WholeIfMixed"
    """Everything, where other layers of the model keep everything."""
    WHOLE = "Whole"
    """Everything."""


class Concerns(StrEnum):
    """The models in which an argument can move memory."""

    EVERY_MODEL = "EveryModel"
    BOUNDED_LAYERS = "BoundedLayers"
    """Those with windows or states."""
    LATENT_LAYERS = "LatentLayers"
    """Those with multi-head latent attention."""
    ENCODERS = "Encoders"
    """Those that take more than text."""
    EXPERTS = "Experts"
    """Mixtures of experts."""
    UNTOLD_EXPERTS = "UntoldExperts"
    """Those of which nothing tells what is an expert: described by numbers alone."""


UNBOUNDED: Final = sys.maxsize
"""More bytes than any device has."""


@dataclass(frozen=True, slots=True)
class Uncounted:
    """Something of the spec that moves memory by an amount that the arithmetic does not know."""

    reason: str
    """What it is and does, as a sentence without its end: ``spec.engine.args[0]: --enable-lora adds ...``."""
    takes: bool = False
    """It can take memory of the device: the layout may not fit although the arithmetic says so."""
    frees_bytes: int = 0
    """It can leave this much more of each device at most: a layout that is short by less may fit."""
    concerns: Concerns = Concerns.EVERY_MODEL


@dataclass(frozen=True, slots=True)
class EngineTraits:
    """What planning must know of an engine and its version. Made by ``engines``, read by ``plan``.

    ``kv_element_bytes`` maps each name that ``quantization.kvCache`` may hold to bytes per element (``bf16`` 2,
    ``fp8`` 1).
    """

    name: str
    version: str | None
    fraction_of: FractionOf
    default_memory_fraction: Decimal
    default_max_sequences: int
    kv_element_bytes: Mapping[str, Decimal]
    default_kv_dtype: str
    has_queue_limit: bool
    supports_pipeline: bool
    supports_tensor: bool
    context_is_shared: bool
    """True where ``maxLength`` bounds each sequence and the KV cache is one pool; False where slots divide it
    (llama.cpp)."""
    block_tokens: int
    """The KV cache is handed out in blocks of this many tokens; capacity is rounded down to it."""
    kv_cache_step_bytes: int = 1
    """An explicit KV cache can be told to the engine in multiples of this (1 GiB where it takes whole GiB only)."""
    default_batched_tokens: tuple[tuple[int, int], ...] = ((0, 2048),)
    """Tokens that one step computes unless told otherwise, as (device memory of at least so many bytes, tokens),
    ascending. The activations of a step are sized by it."""
    shares_memory: bool = True
    """Its processes exchange data through ``/dev/shm``."""
    splits_layers: bool = False
    """Its layers may lie partly in the memory of the container, where the input embeddings always are (llama.cpp)."""
    host_overhead_bytes: int = 2**30
    """Memory that its own processes take in the container of a CPU engine, weights and KV cache aside."""
    captures_graphs: bool = True
    """It captures CUDA graphs unless a field says otherwise."""
    windows: Windows = Windows.BOUNDED
    kv_in_container: bool = False
    """The KV cache of layers on the GPU lies in the memory of the container all the same (llama.cpp)."""
    expert_layers_in_container: int = 0
    """The experts of this many first layers lie in the memory of the container (llama.cpp)."""
    offloaded_weight_bytes: int = 0
    """Weights that each rank keeps in the memory of the container at most."""
    shared_cache_bytes: int = 0
    """Part of ``/dev/shm`` that holds KV cache which left the GPUs."""
    uncounted: tuple[Uncounted, ...] = ()


@dataclass(frozen=True, slots=True)
class RankMemory:
    """Memory of one rank of a pipeline stage, in bytes. All tensor ranks of a stage are alike."""

    stage: int
    layers: int
    weight_bytes: int
    activation_bytes: int
    graph_bytes: int
    overhead_bytes: int
    """The driver's context and the buffers of collective communication."""
    kv_bytes_per_token: int
    kv_bytes_per_sequence: int
    """Bytes that a sequence holds whatever its length (sliding windows when full, state-space layers)."""
    budget_bytes: int | None
    """What the device offers to the engine: memory x fraction; None where the device is unknown."""
    kv_bytes: int | None
    """What is left of the budget for the KV cache; negative when the rest alone does not fit."""
    kv_tokens: int | None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A layout that would fit, as field values that a user can copy."""

    fields: Mapping[str, str]
    summary: str


@dataclass(frozen=True, slots=True)
class Layout:
    """One replica over its devices. Bytes are bytes, lengths are tokens, times are seconds.

    ``None`` means unknown, never zero. ``reasons`` explains the verdict; ``faults`` holds contradictions that no
    cluster could cure; ``origins`` says for each input where it came from: ``spec.accelerator.memory``, a node's label.
    """

    placement: Placement
    pods_per_replica: int
    gpus_per_pod: int
    resource_name: str | None
    tensor: int
    pipeline: int
    max_length: int | None
    max_sequences: int
    max_queued: int | None
    gpu_layers: int | None
    memory_fraction: Decimal
    kv_dtype: str
    weight_bytes: int | None
    """Of the whole model, as it lies in device memory."""
    kv_cache_bytes: int | None
    """An explicit size for the KV cache, rendered where the engine would otherwise take too much (CPU engines)."""
    kv_tokens: int | None
    max_concurrency: Decimal | None
    """``kv_tokens / max_length``: how many sequences of full length fit at once."""
    shm_bytes: int
    memory_request_bytes: int
    """Memory of the engine container, ``/dev/shm`` and loader included."""
    cpu_request_millicores: int
    startup_budget_seconds: int
    ranks: tuple[RankMemory, ...] = ()
    verdict: Verdict = Verdict.UNKNOWN
    reasons: tuple[str, ...] = ()
    short_by_bytes: int | None = None
    """Per rank, what is missing; None unless the verdict is TooSmall."""
    suggestions: tuple[Suggestion, ...] = ()
    faults: tuple[Fault, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)

    @property
    def weight_bytes_per_rank(self) -> int | None:
        """The largest over the stages, in bytes; None where the model is unknown."""
        return max((rank.weight_bytes for rank in self.ranks), default=None)

    @property
    def kv_bytes_per_token_per_rank(self) -> int | None:
        """The largest over the stages, in bytes; None where the model is unknown."""
        return max((rank.kv_bytes_per_token for rank in self.ranks), default=None)
