"""Typed and bounded reading of JSON that others wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Never

from stoker.facts.model import FactsError

MAX_CONFIG_BYTES = 1024 * 1024
MAX_INDEX_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 40


def parse_json_object(text: str, name: str, max_bytes: int = MAX_CONFIG_BYTES) -> Mapping[str, Any]:
    """Return the JSON object that ``text`` holds; ``name`` says which file it is.

    Raises :class:`FactsError` where it is too large, too deep, holds NaN or Infinity, or is no JSON object.
    """
    if len(text) > max_bytes or len(text.encode(errors="replace")) > max_bytes:
        raise FactsError(f"{name} is larger than {max_bytes} bytes")
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except FactsError as error:
        raise FactsError(f"{name} {error}") from None
    except (ValueError, RecursionError) as error:
        raise FactsError(f"{name} is no JSON: {_cause(error)}") from None
    if not isinstance(document, dict):
        raise FactsError(f"{name} holds {kind_of(document)}, not an object")
    if _is_deeper(document, MAX_DEPTH):
        raise FactsError(f"{name} is nested deeper than {MAX_DEPTH} levels")
    return document


def _refuse_constant(constant: str) -> Never:
    raise FactsError(f"holds {constant}, which is no number")


def _cause(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.lower()} at line {error.lineno}, column {error.colno}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else "a number in it is too long"


def _is_deeper(document: object, levels: int) -> bool:
    layer: list[object] = [document]
    for _ in range(levels):
        layer = [child for value in layer for child in _children(value)]
        if not layer:
            return False
    return True


def _children(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def kind_of(value: object) -> str:
    """Return what kind of JSON a value is, in words."""
    if isinstance(value, bool):
        return "true or false"
    kinds = {str: "a string", int: "an integer", float: "a fractional number", list: "a list", dict: "an object"}
    return "null" if value is None else kinds.get(type(value), "something else")


def all_told(*readings: Callable[[], object]) -> None:
    """Run readings that do not need each other; raise what all of them find wrong as one :class:`FactsError`."""
    errors: list[FactsError] = []
    for reading in readings:
        try:
            reading()
        except FactsError as error:
            errors.append(error)
    if errors:
        raise FactsError.of_all(errors)


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads one object of a config.json. A key that holds null counts as absent."""

    values: Mapping[str, Any]
    where: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.values, Mapping):
            where = self.where or "config.json"
            raise FactsError(f"is {kind_of(self.values)}, not an object", where, "write an object")

    def has(self, *keys: str) -> bool:
        """Return whether any of the keys holds a value."""
        return any(self.values.get(key) is not None for key in keys)

    def find(self, *keys: str, minimum: int = 1, maximum: int) -> int | None:
        """Return the integer under the first of the keys that holds a value; None where none does."""
        for key in keys:
            if (value := self.values.get(key)) is not None:
                return self._bounded(key, value, minimum, maximum)
        return None

    def integer(self, *keys: str, minimum: int = 1, maximum: int) -> int:
        """Return the integer under the first of the keys that holds a value; it must be there."""
        value = self.find(*keys, minimum=minimum, maximum=maximum)
        if value is None:
            raise self.missing(keys[0])
        return value

    def integers(self, *wanted: tuple[tuple[str, ...], int]) -> list[int]:
        """Return an integer for each (keys, maximum), as :meth:`integer` does; all that is wrong is told at once."""
        found: list[int] = []
        all_told(*(partial(self._append, found, *keys, maximum=maximum) for keys, maximum in wanted))
        return found

    def _append(self, found: list[int], *keys: str, maximum: int) -> None:
        found.append(self.integer(*keys, maximum=maximum))

    def flag(self, key: str, default: bool) -> bool:
        """Return a true or false."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, bool):
            raise FactsError(f"is {kind_of(value)}, not true or false", self.path(key), "write true or false")
        return default if value is None else value

    def text(self, *keys: str) -> str | None:
        """Return the short string under the first of the keys that holds a value."""
        for key in keys:
            value = self.values.get(key)
            if isinstance(value, str) and len(value) <= 256:
                return value
            if value is not None:
                raise FactsError(f"is {kind_of(value)}, not a short string", self.path(key), "write a short string")
        return None

    def factor(self, key: str) -> float | None:
        """Return a positive number of at most 1000."""
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1000:
            problem, remedy = "is no number above 0 and up to 1000", "write one such as 2.0"
            raise FactsError(problem, self.path(key), remedy)
        return float(value)

    def listing(self, key: str, maximum: int) -> list[Any] | None:
        """Return a list of at most ``maximum`` items."""
        value = self.values.get(key)
        if value is not None and (not isinstance(value, list) or len(value) > maximum):
            problem = f"is no list of at most {maximum} items"
            raise FactsError(problem, self.path(key), "write a list with an item for each layer")
        return value

    def child(self, key: str) -> Reader | None:
        """Return a reader of the object under ``key``."""
        value = self.values.get(key)
        return None if value is None else Reader(value, self.path(key))

    def missing(self, key: str, beside: str = "") -> FactsError:
        """Return the error of a key that must be there; ``beside`` says why it must."""
        return FactsError(f"is missing{beside}", self.path(key), "add it, as the model's repository has it")

    def name_of(self, *keys: str) -> str:
        """Return where the first of the keys that holds a value is, for messages; the first where none does."""
        return self.path(next((key for key in keys if self.has(key)), keys[0]))

    def path(self, key: str) -> str:
        """Return where a key is, for messages."""
        return f"{self.where}.{key}" if self.where else key

    def _bounded(self, key: str, value: object, minimum: int, maximum: int) -> int:
        remedy = f"write an integer from {minimum} to {maximum}"
        if isinstance(value, bool) or not isinstance(value, int):
            raise FactsError(f"is {kind_of(value)}, not an integer", self.path(key), remedy)
        if not minimum <= value <= maximum:
            shown = value if abs(value) < 10**20 else "a number of more than 20 digits"
            raise FactsError(f"is {shown}, outside {minimum} to {maximum}", self.path(key), remedy)
        return value
