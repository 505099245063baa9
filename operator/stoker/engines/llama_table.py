"""What llama-server knows: ``stoker/facts/llama_cpp.json``, read once.

The options were read from llama.cpp's own parser at two builds. A build between them may or may not have what only one
of the two has; later builds may have more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from stoker.engines.options import Option, OptionTable, option_table
from stoker.engines.spans import Span, read_span
from stoker.engines.versions import Build

OLDEST = Build(9093, 0)
"""The oldest build whose options are known."""
NEWEST = Build(11434, 0)
"""The newest build whose options are known."""


@cache
def llama_options() -> OptionTable:
    """Return the options of ``llama-server``."""
    document = json.loads(resources.files("stoker.facts").joinpath("llama_cpp.json").read_bytes())
    return option_table({name: _option(name, entry) for name, entry in document["options"].items()})


def accepts(option: Option, spelling: str, build: Build | None) -> bool | None:
    """Return whether ``build`` takes the spelling; None where that is not known."""
    if build is None:
        return None
    if option.span == Span() and option.spellings[spelling] == Span():
        return True if build <= NEWEST else None
    return option.accepts(spelling, build) if build in {OLDEST, NEWEST} else None


def _option(name: str, entry: Mapping[str, Any]) -> Option:
    spellings = {name: Span(), **{spelling: read_span(span) for spelling, span in entry.get("also", {}).items()}}
    return Option(name, str(entry.get("takes", 1)), read_span(entry), spellings)
