"""From what a person wrote to an InferenceService, or to all that is wrong with it."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from stoker.api.base import broken_rules
from stoker.api.embedded import ERROR_TYPE, faults_of
from stoker.api.faults import Fault, join
from stoker.api.inferenceservice import InferenceService
from stoker.api.quantities import MALFORMED, WRONG_TYPE
from stoker.api.remainder import faults_of_the_rest
from stoker.api.structural import json_type, unknown_field, wrong_type_of_quantity
from stoker.api.types import EXAMPLES

MAX_FAULTS = 50
"""Most faults that one object gets."""

MAX_DEPTH = 32
"""Levels of nesting that a document may have; an InferenceService has less than 20."""


def parse_inference_service(raw: object) -> InferenceService | list[Fault]:
    """Return the InferenceService that ``raw``, a decoded JSON or YAML document, describes, or its faults.

    Never raises: whatever ``raw`` is, what is wrong with it comes back as faults, sorted by path.
    """
    if not isinstance(raw, Mapping):
        return [Fault("", f"is {json_type(raw)}, not an object", "write an InferenceService")]
    if _depth_exceeds(raw, MAX_DEPTH):
        return [Fault("", f"is nested more than {MAX_DEPTH} levels deep", "write an InferenceService")]
    document = _without_nulls(raw)
    try:
        service = InferenceService.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        details = sorted(error.errors(include_url=False), key=lambda detail: join("", *detail["loc"]))
        # A fault is made with care, suggestions and all: not for each of a hundred thousand unknown fields.
        told = set(islice((fault for detail in details for fault in _faults(detail)), 2 * MAX_FAULTS))
        return sorted(told.union(faults_of_the_rest(document, details)))[:MAX_FAULTS]
    return sorted(broken_rules(service, ""))[:MAX_FAULTS] or service


def _depth_exceeds(value: object, limit: int) -> bool:
    """Whether a document is nested deeper than any object of ours, so that nothing below may recurse into it."""
    level = [value]
    for _ in range(limit):
        inner = (item.values() if isinstance(item, Mapping) else item for item in level if isinstance(item, _NESTING))
        level = [item for items in inner for item in items if isinstance(item, _NESTING)]
    return bool(level)


_NESTING = (Mapping, list, tuple)


def _without_nulls(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a document without the fields that are null, as the API server stores it: they stand for absent ones."""
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _faults(error: ErrorDetails) -> Iterator[Fault]:
    path = join("", *error["loc"])
    if error["type"] == ERROR_TYPE:
        yield from faults_of(error["ctx"], path)
    elif error["type"] == "extra_forbidden":
        *parents, name = error["loc"]
        yield unknown_field(str(name), _fields_at(tuple(parents)), join("", *parents))
    elif not _counts_bad_items(error):
        yield Fault(path, *_problem_and_remedy(error))


def _counts_bad_items(error: ErrorDetails) -> bool:
    """Whether a list is called too short only because its items have faults, which are told themselves."""
    return error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]


def _problem_and_remedy(error: ErrorDetails) -> tuple[str, str]:
    kind, context, value = error["type"], error.get("ctx", {}), error["input"]
    if kind == "missing" or value is None:
        return "is missing", "add it"
    if kind == WRONG_TYPE or kind in _BY_TYPE:
        return _wrong_type(kind, value)
    if kind in {MALFORMED, "string_pattern_mismatch"}:
        return f"{_shown(value)} is malformed", context.get("remedy") or EXAMPLES[context["pattern"]]
    if kind in {"enum", "literal_error"}:
        return f"{_shown(value)} is no choice here", f"write {context['expected']}"
    if kind in _BOUNDS:
        problem, remedy = _BOUNDS[kind]
        size = len(value) if hasattr(value, "__len__") else 0
        return problem.format(value=_shown(value), size=size), remedy.format(**context)
    return f"{_shown(value)}: {error['msg'].lower()}", "correct it"


def _wrong_type(kind: str, value: object) -> tuple[str, str]:
    if kind == WRONG_TYPE:
        return wrong_type_of_quantity(value)
    article = _BY_TYPE[kind]
    hint = f'write it in quotes: "{value}"' if article == "a string" else f"write {article}"
    return f"must be {article}, not {json_type(value)}", hint


_BY_TYPE = {
    "string_type": "a string",
    "int_type": "an integer",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "mapping_type": "an object",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
_BOUNDS = {
    "greater_than_equal": ("{value} is too small", "write at least {ge}"),
    "less_than_equal": ("{value} is too large", "write at most {le}"),
    "too_long": ("has more entries than are possible", "keep it to {max_length} entries"),
    "too_short": ("has {size} entries", "give at least {min_length}"),
    "string_too_long": ("has {size} characters", "keep it to {max_length} characters"),
    "string_too_short": ("has {size} characters", "write at least {min_length}"),
}


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _fields_at(steps: tuple[str | int, ...]) -> tuple[str, ...]:
    model: Any = InferenceService
    for step in steps:
        if isinstance(step, str):
            model = next((_model_of(info.annotation) for name, info in _fields(model) if name == step), model)
    return tuple(name for name, _ in _fields(model))


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    return ((info.alias or field, info) for field, info in model.model_fields.items())


def _model_of(annotation: Any) -> Any:  # noqa: ANN401 - any type
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_of(part))), None)
