"""Files that people hand in, read with bounds: what cannot be read comes back as one fault, never as a traceback.

YAML is read as Kubernetes reads it (``stoker.cli.scalars``), and JSON as JSON; a key that stands twice is a fault.
Nesting, the number of values and what aliases expand to are bounded before anything is built.
"""

import errno
import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from stoker.api.faults import Fault, join
from stoker.api.quantities import MAX_INTEGER
from stoker.cli.scalars import Loader

MAX_DEPTH: Final = 64
MAX_VALUES: Final = 1_000_000
MAX_DIGITS: Final = 100
"""Longest number: Python writes no number out that has thousands of them."""
MEBIBYTE: Final = 2**20


class UnusableError(Exception):
    """A file cannot be used; ``faults`` says why."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(map(str, faults)))
        self.faults = faults


def read_text(name: str, limit_bytes: int) -> str:
    """Return the text of a file, ``-`` being standard input. Raises ``UnusableError``."""
    if not name:
        raise UnusableError(Fault("file", "has an empty name", "name a readable file, or -"))
    try:
        data = _read(name, limit_bytes)
    except OSError as error:
        problem = (error.strerror or type(error).__name__).lower()
        raise UnusableError(Fault("file", f"cannot be read: {problem}", "name a readable file, or -")) from None
    except ValueError:
        raise UnusableError(Fault("file", "is no name of a file", "name a readable file, or -")) from None
    if len(data) > limit_bytes:
        remedy = f"give at most {limit_bytes // MEBIBYTE} MiB"
        raise UnusableError(Fault("file", "is too large", remedy))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnusableError(Fault("file", f"is not UTF-8 text (byte {error.start})", "save it as UTF-8")) from None


def yaml_documents(text: str) -> list[Any]:
    """Return the documents of a YAML or JSON text, empty ones left out. Raises ``UnusableError``."""
    documents = _json_documents(text)
    if documents is None:
        documents = _yaml_documents(text)
    for document in documents:
        _check_json(document)
    return [_whole(document) for document in documents]


def _whole(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a document whose whole numbers are integers, as kubectl sends them: ``8e9`` and ``1.0`` are two."""
    if isinstance(value, dict):
        return {key: _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= MAX_INTEGER
    return int(value) if is_whole else value


def _json_documents(text: str) -> list[Any] | None:
    """Return the document of a JSON text; None for what is YAML, or has a fault that the YAML reader tells better.

    Not all JSON is YAML (a character beyond 16 bits is two escapes), and a list of nodes is read ten times faster. It
    has no aliases, so the size of its file bounds what it holds.
    """
    if not text.lstrip().startswith("{"):
        return None
    try:
        return [json.loads(text, object_pairs_hook=_unique)]
    except (ValueError, RecursionError):
        return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _yaml_documents(text: str) -> list[Any]:
    try:
        _check_events(text)
        nodes = [node for node in yaml.compose_all(text, Loader) if node is not None]
        faults = [fault for node in nodes for fault in _duplicate_keys(node, "")]
        if faults:
            raise UnusableError(*faults)
        return [document for document in yaml.load_all(text, Loader) if document is not None]
    except yaml.YAMLError as error:
        raise UnusableError(_broken(error, text)) from None
    except (ValueError, OverflowError) as error:
        raise UnusableError(Fault("document", f"holds a value that cannot be read: {error}", "correct it")) from None


def _read(name: str, limit_bytes: int) -> bytes:
    if name == "-":
        if sys.stdin is None:  # it was closed when the program began
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return sys.stdin.buffer.read(limit_bytes + 1)
    with Path(name).open("rb") as file:
        return file.read(limit_bytes + 1)


def _check_events(text: str) -> None:
    """Bound nesting and values, aliases expanded, before anything recurses over the document."""
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []
    values = 0
    for event in yaml.parse(text, Loader):
        if isinstance(event, yaml.DocumentStartEvent):
            sizes = {}
        elif isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, values))
            values += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            _remember(sizes, anchor, values - before)
        elif isinstance(event, yaml.AliasEvent):
            values += _expanded(sizes, event.anchor)
        elif isinstance(event, yaml.ScalarEvent):
            _remember(sizes, event.anchor, 1)
            values += 1
        _check_bounds(len(open_nodes), values)


def _remember(sizes: dict[str, int], anchor: str | None, size: int) -> None:
    if anchor is not None:
        sizes[anchor] = size


def _expanded(sizes: dict[str, int], anchor: str | None) -> int:
    if anchor is None or anchor not in sizes:
        problem = f"the alias *{anchor} stands inside its own anchor, or before it"
        raise UnusableError(Fault("document", problem, "write the value out"))
    return sizes[anchor]


def _check_bounds(depth: int, values: int) -> None:
    if depth > MAX_DEPTH:
        raise UnusableError(Fault("document", "is nested too deeply", f"nest at most {MAX_DEPTH} levels"))
    if values > MAX_VALUES:
        raise UnusableError(Fault("document", "holds too many values, aliases expanded", f"keep to {MAX_VALUES}"))


def _duplicate_keys(node: yaml.Node, path: str) -> Iterator[Fault]:
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield from _duplicate_keys(item, join(path, index))
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value) if isinstance(key, yaml.ScalarNode) else "?"
            if name in seen and name != "<<":
                where = f"line {key.start_mark.line + 1}"
                yield Fault(join(path, name), f"stands twice in the same object ({where})", "keep one of the two")
            seen.add(name)
            yield from _duplicate_keys(value, join(path, name))


def _broken(error: yaml.YAMLError, text: str) -> Fault:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = f"broken YAML: {getattr(error, 'problem', None) or getattr(error, 'reason', None) or error}"
    if mark is None:
        return Fault("document", problem, "correct the YAML")
    line = (text.splitlines() or [""])[min(mark.line, len(text.splitlines()) - 1)]
    has_tab = "\t" in line[: len(line) - len(line.lstrip())]
    remedy = "indent with spaces, not with tabs" if has_tab else "correct the YAML there"
    return Fault(f"line {mark.line + 1}, column {mark.column + 1}", problem, remedy)


def _check_json(value: object, path: str = "", depth: int = 1) -> None:
    """Require what JSON can hold, nested within bounds: other keys, dates, bytes and sets come from YAML's own tags."""
    if isinstance(value, dict | list):
        _check_bounds(depth, 0)
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                remedy = f'write it in quotes: "{key}"'
                raise UnusableError(Fault(join(path, str(key)), "the key is no string", remedy))
            _check_text(key, path)
            _check_json(item, join(path, key), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_json(item, join(path, index), depth + 1)
    elif isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, int | float) and (problem := _number_problem(value)):
        raise UnusableError(Fault(path or "document", problem, "write another number"))
    elif value is not None and not isinstance(value, str | bool | int | float):
        problem = f"is a YAML {type(value).__name__}, which Kubernetes does not know"
        raise UnusableError(Fault(path or "document", problem, "write a string, in quotes"))


def _check_text(text: str, path: str) -> None:
    """JSON can escape halves of a character, which no text can hold."""
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise UnusableError(
            Fault(path or "document", "holds half of a character", "write both of its escapes, or none")
        )


def _number_problem(value: float) -> str | None:
    if isinstance(value, int):
        return f"is a number of more than {MAX_DIGITS} digits" if abs(value) >= 10**MAX_DIGITS else None
    return None if math.isfinite(value) else "is no number that JSON can hold"
