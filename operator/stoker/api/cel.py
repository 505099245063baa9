"""Validation rules, each written twice and said once.

A rule stands beside the model that it guards: as a CEL expression, which the API server runs at admission, and as a
Python predicate, which the command line and the operator run. The contract test of the API applies both to the same
objects and requires the same answer.
"""

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

    @property
    def message(self) -> str:
        """The text that the API server shows: problem and remedy."""
        return f"{self.problem}; {self.remedy}"

    def fault(self, path: str) -> Fault:
        """Return the rule's fault for a model that stands at ``path``."""
        return Fault(join(path, *self.field.split(".")) if self.field else path, self.problem, self.remedy)

    def to_schema(self) -> dict[str, str]:
        """Return the rule as an entry of ``x-kubernetes-validations``."""
        entry = {"rule": self.expression, "message": self.message, "reason": "FieldValueInvalid"}
        return {**entry, "fieldPath": "." + self.field} if self.field else entry


def exactly_one_of(*fields: str) -> str:
    """Return the CEL expression "exactly one of these fields is present"."""
    return f"[{', '.join(f'has(self.{field})' for field in fields)}].filter(x, x).size() == 1"


def at_most_one_of(*fields: str) -> str:
    """Return the CEL expression "no two of these fields are present"."""
    return f"[{', '.join(f'has(self.{field})' for field in fields)}].filter(x, x).size() <= 1"


def raw(pattern: str) -> str:
    """Return a regular expression as a CEL string: raw, since CEL knows no ``\\.`` in others."""
    return f"r'{pattern}'"


def quoted(words: tuple[str, ...]) -> str:
    """Return words as a CEL list of strings."""
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"
