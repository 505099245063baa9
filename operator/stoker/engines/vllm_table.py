"""What each version of vLLM knows: ``stoker/facts/vllm.json``, read once.

The file holds one entry per option, quantization method and type of the KV cache, with the first minor version that has
it and the first without it. It was read from the parsers of vLLM 0.12 to 0.33, every minor version; later versions are
taken to be like the newest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from stoker.engines.options import Option, OptionTable, option_table
from stoker.engines.spans import Span, read_span
from stoker.engines.versions import Version

OLDEST = Version(0, 12)
"""The oldest version whose options are known."""
NEWEST = Version(0, 33)
"""The newest minor version whose options are known."""


@cache
def _facts() -> Mapping[str, Any]:
    document: Mapping[str, Any] = json.loads(resources.files("stoker.facts").joinpath("vllm.json").read_bytes())
    return document


@cache
def vllm_options() -> OptionTable:
    """Return the options of ``vllm serve``."""
    return option_table({name: _option(name, entry) for name, entry in _facts()["options"].items()})


def knows_every_option(version: Version | None) -> bool:
    """Return whether the table has all options of that version, so that any other is a mistake."""
    return version is not None and OLDEST <= version < Version(NEWEST.major, NEWEST.minor + 1)


@cache
def quantization_methods() -> Mapping[str, Span]:
    """Return the names that ``--quantization`` takes."""
    return {name: read_span(entry) for name, entry in _facts()["quantization_methods"].items()}


@cache
def kv_cache_dtypes() -> Mapping[str, Span]:
    """Return the names that ``--kv-cache-dtype`` takes."""
    return {name: read_span(entry) for name, entry in _facts()["kv_cache_dtypes"].items()}


def _option(name: str, entry: Mapping[str, Any]) -> Option:
    spellings = {name: Span()}
    if entry.get("negated"):
        spellings["--no-" + name.removeprefix("--")] = Span()
    for spelling, since in entry.get("also", {}).items():
        spellings[spelling] = read_span({"since": since})
    return Option(name, str(entry.get("takes", 1)), read_span(entry), spellings)
