"""A model described by numbers in the object itself (``spec.model.facts.inline``)."""

from __future__ import annotations

from typing import Final

from stoker.api.model import ModelNumbers
from stoker.facts.model import CacheKind, FactsError, Layer, LayerCache, LayerParameters, ModelFacts

_TYPICAL_STEP_WIDTH: Final = 11
"""Values that a layer computes per token in between, over the hidden size: 3 x 3.5 in llamas."""


def facts_from_numbers(numbers: ModelNumbers) -> ModelFacts:
    """Return the facts that the numbers give; every layer is taken to weigh the same.

    Raises :class:`~stoker.facts.model.FactsError` where the numbers contradict each other.
    """
    embedding = (numbers.vocabulary_size or 0) * numbers.hidden_size
    count = numbers.parameter_count or (numbers.weight_bytes or 0) // 2
    body = count - 2 * embedding
    if numbers.parameter_count is not None and body <= 0:
        raise FactsError(f"parameterCount {count} is less than the embeddings alone take ({2 * embedding})")
    parameters = LayerParameters(divided=max(body, numbers.layers) // numbers.layers)
    return ModelFacts(
        model_type="",
        hidden_size=numbers.hidden_size,
        attention_heads=numbers.attention_heads,
        kv_heads=None if numbers.kv_lora_rank else numbers.kv_heads or numbers.attention_heads,
        layers=_layers(numbers, parameters),
        embedding_parameters=embedding,
        head_parameters=embedding,
        encoder_parameters=0,
        step_width=_TYPICAL_STEP_WIDTH * numbers.hidden_size,
        vocabulary_size=numbers.vocabulary_size,
        native_dtype="bfloat16",
        max_length=numbers.max_context_length,
        known_parameters=numbers.parameter_count,
        weight_bytes=numbers.weight_bytes,
    )


def _layers(numbers: ModelNumbers, parameters: LayerParameters) -> tuple[Layer, ...]:
    """Equal layers are one object."""
    made: dict[LayerCache, Layer] = {}
    return tuple(made.setdefault(cache, Layer(cache, parameters)) for cache in _caches(numbers))


def _caches(numbers: ModelNumbers) -> list[LayerCache]:
    if numbers.kv_lora_rank:
        values = numbers.kv_lora_rank + (numbers.rope_head_dim or 0)
        return [LayerCache(CacheKind.LATENT, 1, values, latent_rank=numbers.kv_lora_rank)] * numbers.layers
    heads, dim = numbers.kv_heads or numbers.attention_heads, _head_dim(numbers)
    if numbers.attention_heads % heads:
        raise FactsError(f"kvHeads {heads} does not divide attentionHeads {numbers.attention_heads}")
    full = LayerCache(CacheKind.FULL, heads, 2 * dim)
    if not numbers.sliding_window or not numbers.sliding_window_layers:
        return [full] * numbers.layers
    window = LayerCache(CacheKind.WINDOW, heads, 2 * dim, numbers.sliding_window)
    return [window if _is_windowed(index, numbers) else full for index in range(numbers.layers)]


def _head_dim(numbers: ModelNumbers) -> int:
    if numbers.head_dim is None and numbers.hidden_size % numbers.attention_heads:
        raise FactsError(f"attentionHeads {numbers.attention_heads} does not divide hiddenSize; set headDim")
    return numbers.head_dim or numbers.hidden_size // numbers.attention_heads


def _is_windowed(index: int, numbers: ModelNumbers) -> bool:
    """Whether a layer sees the window only, with such layers spread evenly over the model."""
    share = numbers.sliding_window_layers or 0
    return (index + 1) * share // numbers.layers > index * share // numbers.layers
