"""The engines of this release, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from stoker.engines.interface import Engine
from stoker.engines.llama_cpp import LlamaCpp
from stoker.engines.vllm import Vllm

_ENGINES: Final[Mapping[str, Engine]] = {engine.name: engine for engine in (Vllm(), LlamaCpp())}


def get_engine(name: str) -> Engine:
    """Return the engine of that name. Raises ``KeyError`` for a name that the schema does not know."""
    return _ENGINES[name]
