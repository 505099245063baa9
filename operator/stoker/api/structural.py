"""A small check of JSON values against structural schemas, in the words of ``Fault``.

It knows the part of OpenAPI that the embedded Kubernetes types use: type, properties, required, additionalProperties,
items, enum, pattern and bounds; and the rules of ``stoker.api.embedded_rules``. A null stands for an absent field, as
the API server reads it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from stoker.api.embedded_rules import broken_rules
from stoker.api.faults import Fault, join
from stoker.api.quantities import INT_OR_STRING, as_text
from stoker.api.types import EXAMPLES

Schema = Mapping[str, Any]


def check(schema: Schema, value: object, path: str) -> Iterator[Fault]:
    """Yield what is wrong with ``value``, which stands at ``path``, by ``schema``."""
    if schema.get(INT_OR_STRING):
        yield from _check_quantity(schema, value, path)
        return
    kind = schema["type"]
    if not _is_of_type(kind, value):
        yield Fault(path, f"must be {_article(kind)}, not {json_type(value)}", f"write {_article(kind)}")
        return
    yield from _CHECKS[kind](schema, value, path)


def unknown_field(name: str, known: tuple[str, ...], path: str) -> Fault:
    """Return the fault of a field that does not exist, with the nearest that does."""
    near = get_close_matches(name, known, n=1, cutoff=0.6) or [one for one in known if one.lower() == name.lower()]
    remedy = f"did you mean {near[0]}?" if near else f"remove it; the fields here are {', '.join(known)}"
    return Fault(join(path, name), "there is no such field", remedy, "UnknownField")


def json_type(value: object) -> str:
    """Return the name of a value's JSON type, with its article."""
    names = {
        dict: "an object",
        list: "a list",
        str: "a string",
        bool: "a boolean",
        int: "an integer",
        float: "a number",
    }
    return "null" if value is None else names.get(type(value), type(value).__name__)


def _article(kind: str) -> str:
    return {"array": "a list", "integer": "an integer", "object": "an object"}.get(kind, f"a {kind}")


def _is_of_type(kind: str, value: object) -> bool:
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    types: dict[str, type] = {"object": Mapping, "array": list, "string": str, "boolean": bool}
    return isinstance(value, types[kind])


def _check_object(schema: Schema, value: Any, path: str) -> Iterator[Fault]:  # noqa: ANN401 - any JSON
    faults = list(_faults_of_shape(schema, value, path))
    yield from faults or (rule.fault(path) for rule in broken_rules(schema, value))


def _faults_of_shape(schema: Schema, value: Any, path: str) -> Iterator[Fault]:  # noqa: ANN401 - any JSON
    known: Mapping[str, Schema] = schema.get("properties", {})
    extra = schema.get("additionalProperties")
    if len(value) > schema.get("maxProperties", len(value)):
        yield Fault(path, f"has {len(value)} entries", f"keep it to {schema['maxProperties']}")
    for name in schema.get("required", ()):
        if value.get(name) is None:
            yield Fault(join(path, name), "is missing", "add it")
    for name, item in value.items():
        inner = known.get(name, extra)
        if inner is None:
            yield unknown_field(str(name), tuple(known), path)
        elif item is not None:
            yield from check(inner, item, join(path, str(name)))


def _check_array(schema: Schema, value: Any, path: str) -> Iterator[Fault]:  # noqa: ANN401 - any JSON
    if len(value) > schema.get("maxItems", len(value)):
        yield Fault(path, f"has {len(value)} items", f"keep it to {schema['maxItems']}")
    if len(value) < schema.get("minItems", 0):
        yield Fault(path, "has too few items", f"list at least {schema['minItems']}")
    for index, item in enumerate(value):
        yield from check(schema["items"], item, join(path, index))


def _check_string(schema: Schema, value: Any, path: str) -> Iterator[Fault]:  # noqa: ANN401 - any JSON
    if "enum" in schema and value not in schema["enum"]:
        yield Fault(
            path, f"{value[:64]!r} is no choice here", f"write one of {', '.join(filter(None, schema['enum']))}"
        )
    if len(value) < schema.get("minLength", 0):
        yield Fault(path, "is too short", f"write at least {schema['minLength']} characters")
    if len(value) > schema.get("maxLength", len(value)):
        yield Fault(path, "is too long", f"keep it to {schema['maxLength']} characters")
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        remedy = EXAMPLES.get(schema["pattern"], f"match {schema['pattern']}")
        yield Fault(path, f"{value[:64]!r} is malformed", remedy)


def wrong_type_of_quantity(value: object) -> tuple[str, str]:
    """Return what is wrong with a value that is neither an integer nor a string, and what would be right."""
    remedy = f'write it in quotes: "{value}"' if isinstance(value, float) else 'write a quantity such as 1 or "500m"'
    return f"must be an integer or a string, not {json_type(value)}", remedy


def _check_quantity(schema: Schema, value: object, path: str) -> Iterator[Fault]:
    text = as_text(value)
    if text is None:
        yield Fault(path, *wrong_type_of_quantity(value))
    elif isinstance(value, str):
        yield from _check_string(schema, value, path)
    else:
        yield from _check_integer(schema, int(text), path)


def _check_integer(schema: Schema, value: Any, path: str) -> Iterator[Fault]:  # noqa: ANN401 - any JSON
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    if not low <= value <= high:
        yield Fault(path, f"{value} is out of range", f"write a number from {low} to {high}")


def _check_boolean(schema: Schema, value: Any, path: str) -> Iterator[Fault]:  # noqa: ANN401 - any JSON
    yield from ()


_CHECKS: Mapping[str, Callable[[Schema, Any, str], Iterator[Fault]]] = {
    "object": _check_object,
    "array": _check_array,
    "string": _check_string,
    "integer": _check_integer,
    "boolean": _check_boolean,
}
