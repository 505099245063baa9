"""What planning must know of a model: the size of its parts, and what each layer keeps for a sequence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class FactsProblem:
    """One thing that is wrong with a model's description; an empty ``key`` is the whole of it."""

    key: str
    problem: str
    remedy: str


class FactsError(ValueError):
    """A model's description cannot be used. The message is a sentence for people that names every key in ``problems``;
    an empty remedy there means that another description is needed, and beside a key that no config.json will be one."""

    def __init__(self, problem: str, key: str = "", remedy: str = "") -> None:
        super().__init__(f"{key} {problem}" if key else problem)
        self.problems: tuple[FactsProblem, ...] = (FactsProblem(key, problem, remedy),)

    @classmethod
    def of_all(cls, errors: Iterable[FactsError]) -> FactsError:
        """Return several errors as one, each of their problems once."""
        problems = tuple(dict.fromkeys(problem for error in errors for problem in error.problems))
        found = cls(", ".join(f"{it.key} {it.problem}".strip() for it in problems))
        found.problems = problems
        return found


class CacheKind(StrEnum):
    """What a layer keeps of the tokens that it has seen."""

    FULL = "Full"
    """Keys and values of every token."""
    WINDOW = "Window"
    """Keys and values of the last ``window_tokens``."""
    CHUNK = "Chunk"
    """Keys and values of the chunk of ``window_tokens`` that is being read."""
    LATENT = "Latent"
    """One compressed vector for every token (multi-head latent attention)."""
    STATE = "State"
    """A state of fixed size (state-space and linear-attention layers)."""
    NOTHING = "Nothing"
    """Nothing: a layer without attention, or one that shares the cache of another."""


@dataclass(frozen=True, slots=True)
class LayerCache:
    """What one layer keeps for one sequence.

    Per token it keeps ``heads`` units of ``values_per_head`` values; only whole units can be divided over ranks, so the
    single unit of a latent layer lies on every rank. ``state_bytes`` is kept whatever the length.
    """

    kind: CacheKind
    heads: int = 0
    values_per_head: int = 0
    """Key and value together: 2 x head_dim; rank and positional part together for latent layers."""
    window_tokens: int = 0
    latent_rank: int = 0
    """The compressed part of ``values_per_head`` of a latent layer; the rest is positional."""
    index_bytes: int = 0
    """Bytes per token of the index that sparse attention keeps beside the cache, on every rank."""
    state_bytes: int = 0

    @property
    def is_bounded(self) -> bool:
        """Whether a sequence stops growing here at some length."""
        return self.kind in {CacheKind.WINDOW, CacheKind.CHUNK}

    @property
    def grows(self) -> bool:
        """Whether every further token of a sequence takes memory here."""
        return self.kind in {CacheKind.FULL, CacheKind.LATENT}


@dataclass(frozen=True, slots=True)
class LayerParameters:
    """The parameters of one layer, by what parallelism and quantization do to them."""

    divided: int = 0
    """Matrices that tensor parallelism divides and quantization shrinks."""
    experts: int = 0
    """Matrices of routed experts: as ``divided``, but some methods shrink only these."""
    whole: int = 0
    """Matrices that every rank holds whole (the down-projections of latent attention)."""
    kept: int = 0
    """Norms and routers: whole on every rank, never quantized."""

    @property
    def total(self) -> int:
        """All parameters of the layer."""
        return self.divided + self.experts + self.whole + self.kept


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: what it weighs and what it keeps."""

    cache: LayerCache
    parameters: LayerParameters


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How the weights of a repository are quantized (``quantization_config`` of its config.json)."""

    method: str
    """The method's name as the checkpoint has it: ``fp8``, ``awq``, ``compressed-tensors``."""
    bits: Decimal | None = None
    """Bits per quantized weight, scales included; None where the method alone does not say it."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """One model. Counts are of parameters, widths of values; ``None`` means that the source does not say it."""

    model_type: str
    hidden_size: int
    attention_heads: int
    kv_heads: int | None
    """Key-value heads of its attention layers; None for latent attention, which has none."""
    layers: tuple[Layer, ...]
    embedding_parameters: int
    """The table of input embeddings."""
    head_parameters: int
    """The output projection; 0 where it is the embedding table (tied)."""
    encoder_parameters: int
    """Vision and audio towers, in front of the first layer."""
    step_width: int
    """Values that the widest part of a layer computes per token, beside the hidden state; sizes the activations."""
    vocabulary_size: int | None
    native_dtype: str
    """The type of its weights and, unless told otherwise, of its KV cache: ``bfloat16``, ``float16``, ``float32``."""
    max_length: int | None = None
    """Longest sequence that it was made for, in tokens."""
    known_parameters: int | None = None
    """Its parameter count where the source states it."""
    weight_bytes: int | None = None
    """The size of its checkpoint where the source states it."""
    checkpoint: Checkpoint | None = None
    """None: the weights are in ``native_dtype``."""

    @property
    def computed_parameters(self) -> int:
        """The sum of the parts, as far as the source names them."""
        parts = self.embedding_parameters + self.head_parameters + self.encoder_parameters
        return parts + sum(layer.parameters.total for layer in self.layers)

    @property
    def parameter_count(self) -> int:
        """Parameters of the whole model."""
        return self.known_parameters or self.computed_parameters

    @property
    def tied(self) -> bool:
        """Whether the output projection is the embedding table."""
        return self.head_parameters == 0


@dataclass(frozen=True, slots=True)
class UnknownFacts:
    """A model of which nothing is known, and why, in a sentence for people."""

    reason: str
