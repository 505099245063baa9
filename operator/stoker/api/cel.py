"""Validation rules, each written twice and said once.

A rule stands beside the model that it guards: as a CEL expression, which the API server runs at admission, and as a
Python predicate, which the command line and the operator run. The contract test of the API applies both to the same
objects and requires the same answer.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stoker.api.faults import Fault, join


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule over a model: what is right, and what a person reads when it is not.

    ``field`` is the dotted JSON path, below the model, of the field that the message is about; empty means the model
    itself. ``expression`` is CEL over ``self``, true for a good object; ``holds`` is the same in Python.
    """

    field: str
    problem: str
    remedy: str
    expression: str
    holds: Callable[[Any], bool]
    unchanged: str | None = None
    """CEL over ``self`` and ``oldSelf.value()``: nothing that the rule reads has changed. For rules that are too dear
    to be run on the old object, whose strings the API server takes for unbounded."""

    @property
    def message(self) -> str:
        """The text that the API server shows: problem and remedy."""
        return f"{self.problem}; {self.remedy}"

    @property
    def reads(self) -> frozenset[str]:
        """The fields of the model that the rule looks at, by their JSON names."""
        return frozenset(re.findall(r"\bself\.(\w+)", self.expression))

    def fault(self, path: str) -> Fault:
        """Return the rule's fault for a model that stands at ``path``."""
        return Fault(join(path, *self.field.split(".")) if self.field else path, self.problem, self.remedy)

    def to_schema(self, *, spares_old: bool = False) -> dict[str, Any]:
        """Return the rule as an entry of ``x-kubernetes-validations``.

        ``spares_old``: an object that broke the rule before may be written. The API server spares what did not change,
        but the smallest thing that it compares is what a rule stands beside, and any change of the spec changes that.
        """
        entry: dict[str, Any] = {"rule": self.expression, "message": self.message, "reason": "FieldValueInvalid"}
        if spares_old:
            before = self.unchanged or f"!({_of_old(self.expression)})"
            entry["rule"] = f"({self.expression}) || (oldSelf.hasValue() && {before})"
            entry["optionalOldSelf"] = True
        return {**entry, "fieldPath": "." + self.field} if self.field else entry


def _of_old(expression: str) -> str:
    """Return an expression over ``self`` as one over the object as it was before a write."""
    return re.sub(r"\bself\b", "oldSelf.value()", expression)


def exactly_one_of(*fields: str) -> str:
    """Return the CEL expression "exactly one of these fields is present"."""
    return f"[{', '.join(f'has(self.{field})' for field in fields)}].filter(x, x).size() == 1"


def raw(pattern: str) -> str:
    """Return a regular expression as a CEL string: raw, since CEL knows no ``\\.`` in others."""
    quote = '"' if "'" in pattern else "'"
    return f"r{quote}{pattern}{quote}"


def quoted(words: tuple[str, ...]) -> str:
    """Return words as a CEL list of strings."""
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"
