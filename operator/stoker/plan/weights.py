"""How many bytes the weights of a stage take on one rank."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from stoker.facts.model import LayerParameters, ModelFacts
from stoker.facts.quantization import GGUF_BITS, GGUF_TIED_EMBEDDING_BITS, METHODS, Method, Scope, method_of
from stoker.plan.stages import Stage, cut

NATIVE_BITS: Final = 16
"""Engines load unquantized weights in 16 bits, float32 checkpoints too."""


@dataclass(frozen=True, slots=True)
class WeightFormat:
    """How the weights lie in memory: the bits of each part of a model."""

    name: str
    divided_bits: Fraction
    expert_bits: Fraction
    embedding_bits: Fraction
    kept_bits: Fraction
    scale: Fraction
    """What the source states of the whole model, over what its dimensions give."""


def ceil_div(value: int, divisor: int) -> int:
    """Return ``value / divisor`` rounded up."""
    return -(-value // divisor)


def gguf_format(facts: ModelFacts, gguf: str) -> WeightFormat:
    """Return the format of a GGUF file of the type ``gguf`` (``Q4_K_M``): one average width for all weights."""
    bits = Fraction(GGUF_BITS[gguf])
    embedding = max(bits, Fraction(GGUF_TIED_EMBEDDING_BITS)) if facts.tied else bits
    return _scaled(facts, WeightFormat(gguf, bits, bits, embedding, bits, Fraction(1)))


def method_format(facts: ModelFacts, wanted: str | None) -> WeightFormat:
    """Return the format that an engine holds the weights in: as the checkpoint has them, else as ``wanted``."""
    stored = method_of(facts.checkpoint) if facts.checkpoint else None
    asked = METHODS.get(wanted) if wanted else None
    name = facts.checkpoint.method if facts.checkpoint else facts.native_dtype
    native = _scaled(facts, _format_of(name, stored))
    if facts.checkpoint or asked is None or wanted is None:
        return native
    return replace(_format_of(wanted, asked), scale=native.scale)


def _format_of(name: str, method: Method | None) -> WeightFormat:
    native = Fraction(NATIVE_BITS)
    bits = Fraction(method.bits) if method else native
    divided = native if method and method.scope is Scope.EXPERTS else bits
    return WeightFormat(name, divided, bits, native, native, Fraction(1))


def _scaled(facts: ModelFacts, form: WeightFormat) -> WeightFormat:
    """Fit the sum of the parts to what the source states: the size of the checkpoint, else its parameter count."""
    if facts.weight_bytes is not None:
        computed = sum(stage_weight_bytes(stage, form, 1) for stage in cut(facts, 1))
        scale = Fraction(facts.weight_bytes, computed or 1)
    else:
        scale = Fraction(facts.parameter_count, facts.computed_parameters or 1)
    return replace(form, scale=scale)


def stage_weight_bytes(stage: Stage, form: WeightFormat, tensor: int) -> int:
    """Return the bytes of a stage's weights on one of its ``tensor`` ranks."""
    outer = stage.embedding_parameters + stage.head_parameters
    bits = form.embedding_bits * ceil_div(outer, tensor) + NATIVE_BITS * ceil_div(stage.encoder_parameters, tensor)
    bits += sum((count * _layer_bits(layer.parameters, form, tensor) for layer, count in stage.groups), Fraction(0))
    total = bits * form.scale
    return ceil_div(total.numerator, total.denominator * 8)


def expert_weight_bytes(parameters: int, form: WeightFormat) -> int:
    """Return the bytes of ``parameters`` of routed experts."""
    total = form.expert_bits * parameters * form.scale
    return ceil_div(total.numerator, total.denominator * 8)


def _layer_bits(part: LayerParameters, form: WeightFormat, tensor: int) -> Fraction:
    divided = ceil_div(part.divided, tensor) + part.whole
    return form.divided_bits * divided + form.expert_bits * ceil_div(part.experts, tensor) + form.kept_bits * part.kept
