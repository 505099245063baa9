"""The units in which a variable or a file tells a resource of the engine's container."""

import re
from collections.abc import Callable
from typing import Any, Final

from stoker.api.cel import Rule
from stoker.api.quantities import as_text

_IS_CPU: Final = "self.resource.endsWith('.cpu')"
_IS_NONE: Final = "!has(self.divisor) || type(self.divisor) == int || self.divisor.startsWith('0')"
"""The only integers are 0 and 1, and 1 is a unit of everything."""
_OF_CPU: Final = (
    "self.divisor.endsWith('m') || self.divisor == '1' || (self.divisor.startsWith('1.') && self.divisor.endsWith('0'))"
)
_OF_BYTES: Final = "!self.divisor.endsWith('m') || self.divisor == '1000m'"


def divisor_rules(where: str, resource: Callable[[Any], str], divisor: Callable[[Any], object]) -> tuple[Rule, Rule]:
    """Return the rules over ``divisor``, well formed as it is, of a resource that is told in ``where``.

    The unit must be one of the resource (``validateContainerResourceDivisor`` of Kubernetes). ``resource`` and
    ``divisor`` read the fields of an object.
    """
    return (
        Rule(
            field="divisor",
            problem=f"{where} tells CPU in cores or in thousandths of a core",
            remedy='write "1" or 1m',
            expression=f"!{_IS_CPU} || {_IS_NONE} || {_OF_CPU}",
            holds=lambda it: not _is_cpu(resource(it)) or _is_of_cpu(as_text(divisor(it)) or "0"),
        ),
        Rule(
            field="divisor",
            problem=f"{where} tells bytes in no thousandths",
            remedy='write "1", or a multiple such as 1Mi',
            expression=f"{_IS_CPU} || {_IS_NONE} || {_OF_BYTES}",
            holds=lambda it: _is_cpu(resource(it)) or _is_of_bytes(as_text(divisor(it)) or "0"),
        ),
    )


def _is_cpu(resource: str) -> bool:
    return resource.endswith(".cpu")


def _is_of_cpu(divisor: str) -> bool:
    return divisor.startswith("0") or divisor.endswith("m") or bool(re.fullmatch("1([.]0+)?", divisor))


def _is_of_bytes(divisor: str) -> bool:
    return divisor.startswith("0") or not divisor.endswith("m") or divisor == "1000m"
