"""From what a person wrote to an InferenceService, or to all that is wrong with it."""

from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from stoker.api.base import broken_rules
from stoker.api.embedded import ERROR_TYPE, faults_of
from stoker.api.faults import Fault, join
from stoker.api.inferenceservice import InferenceService
from stoker.api.structural import json_type, unknown_field
from stoker.api.types import EXAMPLES

MAX_FAULTS = 50
"""Most faults that one object gets."""


def parse_inference_service(raw: object) -> InferenceService | list[Fault]:
    """Return the InferenceService that ``raw``, a decoded JSON or YAML document, describes, or its faults.

    Never raises: whatever ``raw`` is, what is wrong with it comes back as faults, sorted by path.
    """
    if not isinstance(raw, Mapping):
        return [Fault("", f"is {json_type(raw)}, not an object", "write an InferenceService")]
    try:
        service = InferenceService.model_validate(raw, by_alias=True, by_name=False)
    except ValidationError as error:
        details = error.errors(include_url=False)
        return sorted({fault for detail in details for fault in _faults(detail)})[:MAX_FAULTS]
    return sorted(broken_rules(service, ""))[:MAX_FAULTS] or service


def _faults(error: ErrorDetails) -> Iterator[Fault]:
    path = join("", *error["loc"])
    if error["type"] == ERROR_TYPE:
        yield from faults_of(error["ctx"], path)
    elif error["type"] == "extra_forbidden":
        *parents, name = error["loc"]
        yield unknown_field(str(name), _fields_at(tuple(parents)), join("", *parents))
    else:
        yield Fault(path, *_problem_and_remedy(error))


def _problem_and_remedy(error: ErrorDetails) -> tuple[str, str]:
    kind, context, value = error["type"], error.get("ctx", {}), error["input"]
    if kind == "missing" or value is None:
        return "is missing", "add it"
    if kind in _BY_TYPE:
        article = _BY_TYPE[kind]
        hint = f'write it in quotes: "{value}"' if article == "a string" else f"write {article}"
        return f"must be {article}, not {json_type(value)}", hint
    if kind == "string_pattern_mismatch":
        return f"{_shown(value)} is malformed", EXAMPLES.get(context["pattern"], f"match {context['pattern']}")
    if kind in {"enum", "literal_error"}:
        return f"{_shown(value)} is no choice here", f"write {context['expected']}"
    return f"{_shown(value)}: {error['msg'].lower()}", _BOUNDS.get(kind, "correct it").format(**context)


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
    "greater_than_equal": "write at least {ge}",
    "less_than_equal": "write at most {le}",
    "too_long": "keep it to {max_length} entries",
    "too_short": "give at least {min_length}",
    "string_too_long": "keep it to {max_length} characters",
    "string_too_short": "write at least {min_length} character",
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
