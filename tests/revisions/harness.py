"""Revisions as releases wrote them, to be replayed by every later one (N6).

`tests/revisions/<version>/<case>.yaml` holds two documents: an InferenceService and the ControllerRevision that the
operator of that version stored for it. `make revisions` writes them for the present version, at its release; a folder
of an earlier version is never written again.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Stored:
    """One service and the revision that a release stored for it."""

    file: Path
    service: dict[str, Any]
    revision: dict[str, Any]


def versions() -> list[str]:
    """The releases whose revisions are kept."""
    return sorted(path.name for path in ROOT.iterdir() if path.is_dir() and any(path.glob("*.yaml")))


def stored() -> list[Stored]:
    """The revisions of all releases."""
    return [_read(file) for version in versions() for file in sorted((ROOT / version).glob("*.yaml"))]


def _read(file: Path) -> Stored:
    service, revision = yaml.safe_load_all(file.read_text(encoding="utf-8"))
    return Stored(file, service, revision)
