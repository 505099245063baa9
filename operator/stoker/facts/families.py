"""Models that are known by the name of their repository, so that nobody need look up their dimensions.

``families.json`` holds, for the repositories of each model, the keys of its config.json that planning reads. It lists
repositories by their full name: a model that merely sounds alike is not taken for another.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from stoker.facts.config import facts_from_config
from stoker.facts.model import ModelFacts


@cache
def _configs() -> Mapping[str, Mapping[str, Any]]:
    rows = json.loads(files("stoker.facts").joinpath("families.json").read_text(encoding="utf-8"))
    return {name.lower(): row["config"] for row in rows for name in row["repositories"]}


def known_model(repository: str) -> ModelFacts | None:
    """Return the facts of a repository on the Hub (``owner/name``, in any case); None where it is not in the table."""
    name = repository.lower()
    return _facts(name) if name in _configs() else None


@cache
def _facts(name: str) -> ModelFacts:
    return facts_from_config(_configs()[name])


def known_repositories() -> tuple[str, ...]:
    """Return the repositories of the table, in lower case and sorted."""
    return tuple(sorted(_configs()))
