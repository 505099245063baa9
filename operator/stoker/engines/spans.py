"""In which versions of an engine something exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stoker.engines.versions import Build, Version, parse_build, parse_version


@dataclass(frozen=True, slots=True)
class Span:
    """Exists since ``since`` and until before ``until``; None: all along."""

    since: Version | None = None
    until: Version | None = None

    def covers(self, version: Version | None) -> bool:
        """Return whether it exists in ``version``. An unknown version (None) has only what every version has."""
        if version is None:
            return self.since is None and self.until is None
        return (self.since is None or version >= self.since) and (self.until is None or version < self.until)

    def __str__(self) -> str:
        since = f"since {self.since.short()}" if self.since else ""
        until = f"before {self.until.short()}" if self.until else ""
        return " and ".join(part for part in (since, until) if part) or "in every version"


def read_span(entry: Mapping[str, object]) -> Span:
    """Return the span of a table's entry (``since`` and ``until``, each ``major.minor``, or a build as ``b11434``)."""
    return Span(_read(entry.get("since")), _read(entry.get("until")))


def _read(text: object) -> Version | None:
    if not isinstance(text, str):
        return None
    build = parse_build(text)
    return Build(build, 0) if build is not None else parse_version(text)
