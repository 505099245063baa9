"""Every spelling of an argument of ``vllm serve``.

vLLM's parser is argparse with additions: underscores in long options, ``--option=value``, dotted keys of JSON options
(``--compilation-config.cudagraph_mode NONE``), unique beginnings of options, ``-O3``, values glued to one-letter
options (``-qfp8``). Seen on vLLM 0.32: ``--hos x`` sets the host and ``-t 4`` the tensor size. ``-O.key`` is a key of
``--compilation-config`` to vLLM 0.12, and to 0.20 a level of optimization of that name, which does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stoker.engines.arguments import Argument
from stoker.engines.options import FLAG, MANY, ONE, OPTIONAL, Option, OptionTable
from stoker.engines.versions import Version
from stoker.engines.vllm_table import knows_every_option

_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
_MODEL = "is no option, and vLLM would take it for a model"
_ONE_ITEM = "holds an option and its value in one item"
_TWO_ITEMS = "write option and value as two items"
_LEVEL_OPTION = "--optimization-level"
_LEVELS = frozenset("0123")
_DOTTED_LEVEL_KNOWN_UNTIL, _DOTTED_LEVEL_GONE_SINCE = Version(0, 13), Version(0, 20)


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What the head of an item may mean, as pairs of spelling and option; ``exact``: the version has the spelling."""

    pairs: tuple[tuple[str, Option], ...]
    exact: bool
    glued: str | None = None


def read_arguments(args: Sequence[str], table: OptionTable, version: Version | None) -> tuple[Argument, ...]:
    """Return what the items of ``engine.args`` mean to vLLM. Nothing is refused here."""
    return tuple(_scan(args, table, version))


def _scan(args: Sequence[str], table: OptionTable, version: Version | None) -> Iterator[Argument]:
    index = 0
    while index < len(args):
        argument, used = _read(args, index, table, version)
        yield argument
        index += used


def _read(args: Sequence[str], index: int, table: OptionTable, version: Version | None) -> tuple[Argument, int]:
    """Return the argument at ``index`` and how many items it takes."""
    text = args[index]
    if not _is_option(text) or text == "--":
        return Argument(index, text, problem=_MODEL, remedy="remove it, or write it after its option"), 1
    head, equals, given = text.partition("=")
    head, *tail = head.split(maxsplit=1) or [head]
    head, keys = _split_keys(head)
    meaning = _meaning(head, keys, table, version)
    options = tuple(dict.fromkeys(option.name for _, option in meaning.pairs))
    accepted = _accepted(meaning, version) if knows_every_option(version) else None
    if head == "-O" and keys:
        accepted = _takes_dotted_level(version)
    if tail:
        return Argument(index, text, options, accepted, keys, tuple(tail), _ONE_ITEM, _TWO_ITEMS), 1
    glued = given if equals else meaning.glued
    values, problem = _values(args, index, meaning, dotted=bool(keys), glued=glued)
    used = 1 + (len(values) if glued is None else 0)
    if options == (_LEVEL_OPTION,) and problem is None and values[0] not in _LEVELS:
        return Argument(index, text, options, accepted, keys, values, "takes a level from 0 to 3", "write -O2"), used
    return Argument(index, text, options, accepted, keys, values, problem, _TWO_ITEMS), used


def _is_option(text: str) -> bool:
    return len(text) > 1 and text.startswith("-") and not _NEGATIVE_NUMBER.fullmatch(text)


def _split_keys(head: str) -> tuple[str, tuple[str, ...]]:
    """Return the option's name with dashes, and its dotted keys."""
    if not head.startswith("--"):
        name, *keys = head.split(".")
        return name, tuple(keys)
    name, *keys = head.removesuffix("+").split(".")
    return "--" + name[2:].replace("_", "-"), tuple(keys)


def _takes_dotted_level(version: Version | None) -> bool | None:
    if version is None or _DOTTED_LEVEL_KNOWN_UNTIL <= version < _DOTTED_LEVEL_GONE_SINCE:
        return None
    return version < _DOTTED_LEVEL_KNOWN_UNTIL


def _meaning(head: str, keys: tuple[str, ...], table: OptionTable, version: Version | None) -> _Meaning:
    """Return what ``head`` may mean: the option of that name where this version has it, else all that it begins.

    A name of another version is a beginning here: before 0.24 ``-dc`` was short for ``-dcp``.
    """
    if head == "-O" and keys:
        either = ("--compilation-config", _LEVEL_OPTION)
        return _Meaning(tuple(("-O", table.options[name]) for name in either), exact=True)
    named = tuple((head, option) for option in table.by_spelling.get(head, ()))
    if any(option.accepts(head, version) for _, option in named):
        return _Meaning(named, exact=True)
    if head.startswith("--"):
        begun = tuple(pair for pair in table.beginning_with(head) if pair not in named)
        return _Meaning((*named, *begun), exact=False)
    short = _short(head, table)
    return replace(short, pairs=(*named, *(pair for pair in short.pairs if pair not in named)))


def _short(head: str, table: OptionTable) -> _Meaning:
    if head.startswith("-O"):
        return _Meaning(((_LEVEL_OPTION, table.options[_LEVEL_OPTION]),), True, head[2:] or None)
    letter = table.by_spelling.get(head[:2]) if len(head) > 2 else None
    if letter:
        return _Meaning(tuple((head[:2], option) for option in letter), True, head[2:])
    begun = tuple((s, o) for s, o in table.beginning_with(head) if not s.startswith("--"))
    if begun:
        return _Meaning(begun, exact=False)
    # "-tp4": no parser takes it, but it is plain what was meant.
    longest = max((s for s in table.by_spelling if not s.startswith("--") and head.startswith(s)), key=len, default="")
    return _Meaning(tuple((head, option) for option in table.by_spelling.get(longest, ())), exact=False, glued="")


def _accepted(meaning: _Meaning, version: Version | None) -> bool:
    known = {
        option.name
        for spelling, option in meaning.pairs
        if spelling in option.spellings and option.accepts(spelling, version)
    }
    return bool(known) if meaning.exact else len(known) == 1


def _values(
    args: Sequence[str], index: int, meaning: _Meaning, *, dotted: bool, glued: str | None
) -> tuple[tuple[str, ...], str | None]:
    """Return the values of an option, and what is wrong with them."""
    if glued is not None:
        return (glued,), None
    if dotted:  # vLLM takes the next item whatever it looks like
        return tuple(args[index + 1 : index + 2]), None if index + 1 < len(args) else "needs a value"
    takes = {option.takes for _, option in meaning.pairs} or {MANY}
    follow = tuple(_following(args, index + 1))
    if takes == {FLAG}:
        return (), None
    if takes == {ONE}:
        return follow[:1], None if follow else "needs a value"
    return (follow[:1] if takes == {OPTIONAL} else follow), None


def _following(args: Sequence[str], start: int) -> Iterator[str]:
    for text in args[start:]:
        if _is_option(text):
            return
        yield text
