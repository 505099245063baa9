"""Rules over those parts of a document that have their shape, so that a person reads every fault in one round."""

from collections.abc import Iterable, Mapping, Set
from itertools import takewhile
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from stoker.api.base import broken_rules
from stoker.api.faults import Fault, join
from stoker.api.inferenceservice import InferenceService

Steps = tuple[str, ...]

MAX_ROUNDS: Final = 8
"""How often something is taken away until the rest has its shape; a document is hardly deeper."""

MAX_FIELDS: Final = 64
"""How many malformed fields are taken away at once. A person has enough to read then."""

_STAND_INS: Final[Mapping[Steps, Any]] = {
    ("spec", "model"): {"source": "hf://owner/name"},
    ("spec", "model", "source"): "hf://owner/name",
    ("spec", "engine"): {"name": "vllm"},
    ("spec", "engine", "name"): "vllm",
}
"""What stands in for fields without which there is no spec. No rule that looks at one of them is run."""


def faults_of_the_rest(document: Mapping[str, Any], details: Iterable[ErrorDetails]) -> list[Fault]:
    """Return the faults of rules that read nothing of what ``details`` are about.

    What is malformed is taken away, and with it whatever needs it. Where that is the whole spec, nothing is returned:
    those faults are told in the next round.
    """
    taken: set[Steps] = set()
    for _ in range(MAX_ROUNDS):
        fields = {_field(detail) for detail in details}
        if len(fields) > MAX_FIELDS or not all(field[1:] for field in fields):  # the spec itself, or more
            return []
        taken |= fields
        document = _without(document, fields)
        try:
            service = InferenceService.model_validate(document, by_alias=True, by_name=False)
        except ValidationError as error:
            details = error.errors(include_url=False)
        else:
            return broken_rules(service, "", tuple(join("", *field) for field in taken))
    return []


def _field(detail: ErrorDetails) -> Steps:
    """Return the field to take away: the list as a whole for one of its items, the object for what it lacks."""
    steps = tuple(str(step) for step in takewhile(lambda step: isinstance(step, str), detail["loc"]))
    is_lacking = detail["type"] == "missing" and len(steps) == len(detail["loc"]) and steps not in _STAND_INS
    return steps[:-1] if is_lacking else steps


def _without(value: Any, fields: Set[Steps], here: Steps = ()) -> Any:  # noqa: ANN401 - any JSON
    """Return a document without these fields, or with what stands in for them; in one pass, however many they are."""
    if not isinstance(value, Mapping):
        return value
    kept = {key: _without(below, fields, (*here, key)) for key, below in value.items() if (*here, key) not in fields}
    return kept | {field[-1]: _STAND_INS[field] for field in fields & _STAND_INS.keys() if field[:-1] == here}
