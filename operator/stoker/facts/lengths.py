"""The longest sequence that a model was made for."""

from __future__ import annotations

from typing import Final

from stoker.facts.model import FactsError
from stoker.facts.reading import Reader
from stoker.facts.shape import MAX_TOKENS

_LENGTH_KEYS: Final = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
_SCALED_ALREADY: Final = frozenset(["su", "longrope", "llama3", "default", "mrope", "deepseek_llama_scaling"])
_SCALES_ORIGINAL: Final = frozenset(["yarn", "deepseek_yarn"])


def max_length(reader: Reader) -> int | None:
    """Return the longest sequence that a model takes, in tokens; None where its config.json does not say it.

    Scaled positions count where the configuration asks for them, as vLLM does; where its versions differ, the longer.
    """
    stated = [found for key in _LENGTH_KEYS if (found := reader.find(key, maximum=MAX_TOKENS))]
    if (length := reader.find("model_max_length", maximum=MAX_TOKENS) or min(stated, default=None)) is None:
        return None
    scaling = _scaling(reader)
    kind = scaling.text("rope_type", "type") or "default"
    factor = scaling.factor("factor") or 1.0
    if kind in _SCALED_ALREADY:
        return length
    if kind in _SCALES_ORIGINAL:
        original = scaling.find("original_max_position_embeddings", maximum=MAX_TOKENS) or length
        return max(length, int(original * factor))
    if length * factor < 1:
        problem = f"leaves no token of the {length} that the model was made for"
        raise FactsError(problem, scaling.path("factor"), "write a larger one")
    return int(length * factor)


def _scaling(reader: Reader) -> Reader:
    """How positions are scaled; nothing where the stated length includes it (Gemma-3) or kinds of layers differ."""
    scaling = reader.child("rope_scaling") or reader.child("rope_parameters") or Reader({})
    includes_it = "gemma3" in (reader.text("model_type") or "")
    return Reader({}) if includes_it or scaling.has("full_attention", "sliding_attention") else scaling
