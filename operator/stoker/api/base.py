"""The base of every model of the API."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from stoker.api.cel import Rule
from stoker.api.faults import Fault, join


def add_to_schema(schema: JsonSchemaValue, extra: Mapping[str, Any]) -> JsonSchemaValue:
    """Return ``schema``, or the part of it that is not null, with ``extra``."""
    if "anyOf" not in schema:
        return {**schema, **extra}
    return {**schema, "anyOf": [{**part, **extra} if part.get("type") != "null" else part for part in schema["anyOf"]]}


@dataclass(frozen=True, slots=True)
class ListMap:
    """Marks a list of objects as a map by ``key``: keys are unique, and each item is merged on its own."""

    key: str

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Say so in the structural schema."""
        return add_to_schema(handler(core), {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [self.key]})


class ApiModel(BaseModel):
    """A frozen object of the API: snake_case in Python, camelCase in JSON, unknown fields refused.

    ``RULES`` hold across fields; ``parse`` and the API server check them, a bare constructor does not.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        use_attribute_docstrings=True,
    )
    RULES: ClassVar[tuple[Rule, ...]] = ()
    SPARES_OLD: ClassVar[bool] = False
    """Whether an object that broke a rule of this model before, under an older schema, may be written elsewhere."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Return the model's schema with its rules."""
        schema = handler.resolve_ref_schema(handler(core))
        if cls.RULES:
            schema["x-kubernetes-validations"] = [rule.to_schema(spares_old=cls.SPARES_OLD) for rule in cls.RULES]
        return schema

    def to_json(self) -> dict[str, Any]:
        """Return the object as the JSON that it came from: camelCase, absent fields left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


def json_name(model: type[BaseModel], field: str) -> str:
    """Return the JSON name of a model's field."""
    return model.model_fields[field].alias or field


def broken_rules(model: ApiModel, path: str, unknown: Collection[str] = ()) -> list[Fault]:
    """Return the faults of every broken rule of ``model`` and of all models below it.

    Rules that look at a field of ``unknown`` (paths), or at what holds one, are passed over.
    """
    rules = (rule for rule in model.RULES if not any(_looks_at(rule, path, field) for field in unknown))
    faults = [rule.fault(path) for rule in rules if not rule.holds(model)]
    faults += _repeated_keys(model, path)
    for step, child in _children(model):
        faults += broken_rules(child, join(path, *step), unknown)
    return faults


def _looks_at(rule: Rule, path: str, field: str) -> bool:
    return any(f"{field}.".startswith(f"{join(path, read)}.") for read in rule.reads)


def _children(model: ApiModel) -> Iterator[tuple[tuple[str | int, ...], ApiModel]]:
    for field in type(model).model_fields:
        name, value = json_name(type(model), field), getattr(model, field)
        if isinstance(value, ApiModel):
            yield (name,), value
        elif isinstance(value, tuple):
            yield from (((name, i), item) for i, item in enumerate(value) if isinstance(item, ApiModel))


def _repeated_keys(model: ApiModel, path: str) -> Iterator[Fault]:
    for field, info in type(model).model_fields.items():
        for key in (mark.key for mark in info.metadata if isinstance(mark, ListMap)):
            seen: set[object] = set()
            for index, item in enumerate(getattr(model, field) or ()):
                value = getattr(item, key)
                if value in seen:
                    where = join(path, json_name(type(model), field), index, key)
                    yield Fault(where, f"{value!r} is listed twice", f"list each {key} once")
                seen.add(value)
