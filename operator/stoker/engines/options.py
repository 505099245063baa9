"""The options of an engine's command line, as a table: names, other spellings, number of values, versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from stoker.engines.spans import Span
from stoker.engines.versions import Version

FLAG, ONE, TWO, MANY, OPTIONAL = "0", "1", "2", "+", "?"
"""How many values follow an option."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option. ``spellings`` holds every way to write it, its name included, each with its own span."""

    name: str
    takes: str
    span: Span
    spellings: Mapping[str, Span]

    def accepts(self, spelling: str, version: Version | None) -> bool:
        """Return whether that version takes this spelling."""
        return self.span.covers(version) and self.spellings[spelling].covers(version)


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The options of one engine. Two options may share a spelling where its meaning changed between versions."""

    options: Mapping[str, Option]
    by_spelling: Mapping[str, tuple[Option, ...]] = field(default_factory=dict)

    def has(self, name: str, version: Version | None) -> bool:
        """Return whether that version has the option; for an unknown version (None) whether every version has it."""
        return self.options[name].span.covers(version)

    def beginning_with(self, prefix: str) -> Iterator[tuple[str, Option]]:
        """Yield every spelling that begins with ``prefix``, with its option."""
        for spelling, options in self.by_spelling.items():
            if spelling.startswith(prefix):
                yield from ((spelling, option) for option in options)


def option_table(options: Mapping[str, Option]) -> OptionTable:
    """Return the table with its index of spellings."""
    index: dict[str, tuple[Option, ...]] = {}
    for option in options.values():
        for spelling in option.spellings:
            index[spelling] = (*index.get(spelling, ()), option)
    return OptionTable(options, index)
