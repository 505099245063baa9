"""Quantities as people write them: ``2``, ``500m``, ``64Gi``, ``1e9`` (``resource.Quantity`` of Kubernetes).

YAML makes an integer of an unquoted ``2`` and a text of ``64Gi``; every API of Kubernetes takes both. A structural
schema can say "integer or string" and nothing wider, so an unquoted ``0.5`` is refused.
"""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

from stoker.api.cel import raw

INT_OR_STRING: Final = "x-kubernetes-int-or-string"
"""Marks a schema of both types, in place of ``type``."""

MALFORMED, WRONG_TYPE = "quantity", "quantity_type"
"""Types of the pydantic errors of a text that is no quantity, with its ``remedy``, and of what is no text."""

QUANTITY_PATTERN: Final = r"^[+]?([0-9]+[.]?[0-9]*|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][-+]?[0-9]{1,2})?$"
"""Quantities that are not negative. Kubernetes takes longer exponents, and a unit alone for 0; no person means them."""

_SUFFIX: Final = QUANTITY_PATTERN[QUANTITY_PATTERN.index("([KMG") :]
POSITIVE_PATTERN: Final = rf"^[+]?(0*[1-9][0-9]*[.]?[0-9]*|0*[.]0*[1-9][0-9]*){_SUFFIX}"
"""Quantities above 0."""

MAX_LENGTH: Final = 32
"""Longest text of a quantity, in characters."""

MAX_INTEGER: Final = 2**53
"""Beyond it JSON's numbers are not whole any more (``IsFloat64AJSONInteger`` of the API server)."""

_SUFFIXES: Final = {
    "": Decimal(1),
    "m": Decimal("1e-3"),
    "u": Decimal("1e-6"),
    "n": Decimal("1e-9"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}
_LARGEST_FIRST: Final = (*(f"{unit}i" for unit in reversed("KMGTPE")), *reversed("kMGTPE"), "", "m", "u", "n")
_BILLIONTH: Final = Decimal("1e-9")
_EXACT: Final = Context(prec=200)
"""More digits than the longest quantity has."""


def quantity_value(text: str) -> Decimal:
    """Return a quantity as a number, exactly. Raises ``ValueError`` where it is none."""
    if len(text) > MAX_LENGTH or not re.fullmatch(QUANTITY_PATTERN, text):
        raise ValueError(f"{text[:MAX_LENGTH]!r} is no quantity")
    number = text.rstrip("KMGTPEikmun")
    return _EXACT.multiply(Decimal(number), _SUFFIXES[text[len(number) :]])


@lru_cache(maxsize=1024)
def normal_quantity(text: str) -> str:
    """Return the one spelling of a quantity's value: with the largest unit that leaves it whole, a binary one first.

    ``1024Mi`` and ``1073741824`` are ``1Gi``, ``0.5`` is ``500m``. Kubernetes rounds up to billionths. Raises
    ``ValueError`` where it is no quantity.
    """
    value = quantity_value(text).quantize(_BILLIONTH, ROUND_CEILING, _EXACT)
    amounts = ((_EXACT.divide(value, _SUFFIXES[unit]), unit) for unit in _LARGEST_FIRST)
    return next((f"{int(amount)}{unit}" for amount, unit in amounts if value and amount == int(amount)), "0")


def as_text(value: object) -> str | None:
    """Return a string, or a JSON number that is whole, however it is written, as text; None for anything else."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_INTEGER:
        return str(int(value))
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None


class _Text(ABC):
    """Annotates a string that may be written as an integer too."""

    __slots__ = ()

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:  # noqa: ANN401 - pydantic's protocol
        """Read an integer or a string."""
        return core_schema.no_info_plain_validator_function(
            self.validate, serialization=core_schema.plain_serializer_function_ser_schema(str)
        )

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Return the structural schema."""
        return self.to_schema()

    @abstractmethod
    def validate(self, value: object) -> str:
        """Return a value as the text that stands for it. Raises ``PydanticCustomError`` where it may not be one."""

    @abstractmethod
    def to_schema(self) -> JsonSchemaValue:
        """Return the structural schema."""


@dataclass(frozen=True, slots=True)
class Between(_Text):
    """Annotates a string with the quantities that it may be: from ``least`` to ``most``. Integers become strings."""

    least: str
    most: str
    remedy: str

    def to_schema(self) -> JsonSchemaValue:
        """Return the structural schema. Its rule is cheap even where the API server takes the string for unbounded."""
        low, high = quantity_value(self.least), quantity_value(self.most)
        text = (
            f"self.matches({raw(QUANTITY_PATTERN)}) && !quantity(self).isLessThan(quantity('{self.least}')) && "
            f"!quantity(self).isGreaterThan(quantity('{self.most}'))"
        )
        rule = f"type(self) == string ? {text} : self >= {max(int(low), 1)} && self <= {int(high)}"
        entry = {"rule": rule, "message": f"is malformed; {self.remedy}", "reason": "FieldValueInvalid"}
        return {INT_OR_STRING: True, "maxLength": MAX_LENGTH, "x-kubernetes-validations": [entry]}

    def read(self, text: str) -> Decimal:
        """Return the value of a quantity. Raises ``ValueError`` where it is none, or not between the bounds."""
        try:
            value = quantity_value(text)
        except ValueError as error:
            raise ValueError(f"{error}; {self.remedy}") from None
        if not quantity_value(self.least) <= value <= quantity_value(self.most):
            raise ValueError(f"{text!r} is out of range; {self.remedy}")
        return value

    def validate(self, value: object) -> str:
        """Return a value as its text."""
        text = _text_of(value)
        try:
            self.read(text)
        except ValueError:
            raise PydanticCustomError(MALFORMED, "no such quantity", {"remedy": self.remedy}) from None
        return text


@dataclass(frozen=True, slots=True)
class Unit(_Text):
    """Annotates a string with a pattern of units, of which integers are 0 and 1. Integers become strings."""

    pattern: str
    remedy: str

    def to_schema(self) -> JsonSchemaValue:
        """Return the structural schema."""
        return unit_schema(self.pattern)

    def validate(self, value: object) -> str:
        """Return a value as its text."""
        text = _text_of(value)
        is_unit = re.fullmatch(self.pattern, text) if isinstance(value, str) else text in {"0", "1"}
        if not is_unit:
            raise PydanticCustomError(MALFORMED, "no such unit", {"remedy": self.remedy})
        return text


def quantity_schema(least: int) -> dict[str, Any]:
    """Return the structural schema of a quantity of Kubernetes' own types, from 0 on; above it where ``least`` is 1."""
    pattern = POSITIVE_PATTERN if least else QUANTITY_PATTERN
    return {INT_OR_STRING: True, "maxLength": MAX_LENGTH, "pattern": pattern, "minimum": least, "maximum": MAX_INTEGER}


def unit_schema(pattern: str) -> dict[str, Any]:
    """Return the structural schema of a unit."""
    return {INT_OR_STRING: True, "maxLength": 2 * MAX_LENGTH, "pattern": pattern, "minimum": 0, "maximum": 1}


def _text_of(value: object) -> str:
    text = as_text(value)
    if text is None:
        raise PydanticCustomError(WRONG_TYPE, "neither an integer nor a string")
    return text
