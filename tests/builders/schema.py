"""The leaves of the API's schema, and small values for any of them."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from stoker.api.crd import object_schema
from stoker.api.quantities import INT_OR_STRING
from stoker.api.types import DIVISOR_PATTERN, FILE_FIELD_PATTERN, NFS_PATH_PATTERN, RESOURCE_FIELD_PATTERN

Schema = Mapping[str, Any]
Steps = tuple[str, ...]

ITEM, ENTRY = "[]", "{}"
"""Steps into the items of a list and the entries of a map."""

KEY = "storage"
"""The key of a map's entry: a claim must ask for storage, and labels may be named anything."""


BESIDE: Mapping[str, Mapping[str, Any]] = {
    "tolerations[].operator": {"key": "k"},
    "tolerations[].value": {"key": "k"},
    "tolerations[].effect": {"key": "k"},
    "tolerations[].tolerationSeconds": {"key": "k", "effect": "NoExecute"},
    "matchExpressions[].key": {"operator": "Exists"},
    "matchExpressions[].operator": {"values": ["v"]},
    "matchExpressions[].values": {"operator": "Exists"},
    "matchExpressions[].values[]": {"operator": "In"},
    "matchFields[].key": {"operator": "In", "values": ["v"]},
    "matchFields[].operator": {"key": "metadata.name", "values": ["v"]},
    "matchFields[].values[]": {"key": "metadata.name", "operator": "In"},
    "matchLabelKeys[]": {"labelSelector": {}},
    "mismatchLabelKeys[]": {"labelSelector": {}},
    "Profile.localhostProfile": {"type": "Localhost"},
    "downwardAPI.items[].path": {"fieldRef": {"fieldPath": "metadata.name"}},
    "downwardAPI.items[].mode": {"fieldRef": {"fieldPath": "metadata.name"}},
}
"""What must stand beside a field of Kubernetes' own types, by the end of its path."""

_CHOSEN: Mapping[str, tuple[str, str]] = {
    "matchExpressions[].operator": ("In", "NotIn"),
    "matchFields[].operator": ("In", "NotIn"),
    "matchFields[].key": ("metadata.name", "metadata.name"),
}
"""Values of fields whose choice depends on another field."""

Found = TypeVar("Found")


def _by_end(table: Mapping[str, Found], name: str) -> Found | None:
    return next((found for end, found in table.items() if name.endswith(end)), None)


def spec_schema() -> Schema:
    """The schema of `spec`."""
    found: Schema = object_schema()["properties"]["spec"]
    return found


def leaves(schema: Schema, path: Steps = ()) -> Iterator[Steps]:
    """Every field that holds a value rather than further fields."""
    below = dict(children(schema))
    if not below:
        yield path
    for step, inner in below.items():
        yield from leaves(inner, (*path, step))


def children(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """The fields below a schema."""
    yield from schema.get("properties", {}).items()
    if schema.get("type") == "array":
        yield ITEM, schema["items"]
    if isinstance(schema.get("additionalProperties"), Mapping):
        yield ENTRY, schema["additionalProperties"]


def at(schema: Schema, path: Steps) -> Schema:
    """The schema of a field."""
    for step in path:
        schema = dict(children(schema))[step]
    return schema


def sample(schema: Schema, path: Steps, leaf: object) -> Any:
    """The smallest value of a schema that holds `leaf` at `path`, required fields and those of `BESIDE` filled in."""
    return _sample(schema, path, leaf, _by_end(BESIDE, dotted(path)) or {})


def _sample(schema: Schema, path: Steps, leaf: object, beside: Schema) -> Any:
    if not path:
        return leaf
    step, rest = path[0], path[1:]
    if step == ITEM:
        return [_sample(schema["items"], rest, leaf, beside)]
    if step == ENTRY:
        return {KEY: _sample(schema["additionalProperties"], rest, leaf, beside)}
    properties = schema.get("properties", {})
    filled = {name: filler(properties[name]) for name in schema.get("required", ()) if name != step}
    siblings = beside if rest in ((), (ITEM,)) else {}
    return {**filled, **siblings, step: _sample(properties[step], rest, leaf, beside)}


def filler(schema: Schema) -> Any:
    """Some value of a schema."""
    kind = schema.get("type")
    if "additionalProperties" in schema:
        return {KEY: filler(schema["additionalProperties"])}
    if kind == "object":
        return {name: filler(schema["properties"][name]) for name in schema.get("required", ())}
    if kind == "array":
        return [filler(schema["items"])] * schema.get("minItems", 0)
    return two_values(schema)[0]


def two_values(schema: Schema, name: str = "") -> tuple[Any, Any]:
    """Two values of the leaf `name` that differ, where it has more than one."""
    if chosen := _by_end(_CHOSEN, name):
        return chosen
    if "enum" in schema:
        return schema["enum"][0], schema["enum"][-1]
    if INT_OR_STRING in schema:
        return (1, "1m") if schema.get("pattern") == DIVISOR_PATTERN else ("1", "2Gi")
    if schema["type"] == "boolean":
        return False, True
    if schema["type"] == "integer":
        low = max(schema.get("minimum", 0), 1)
        return low, low + 1
    return _BY_PATTERN.get(schema["pattern"], ("1", "2")) if "pattern" in schema else ("a", "b")


_BY_PATTERN = {
    FILE_FIELD_PATTERN: ("metadata.name", "metadata.uid"),
    RESOURCE_FIELD_PATTERN: ("limits.cpu", "limits.memory"),
    NFS_PATH_PATTERN: ("/a", "/b"),
}


def dotted(path: Steps) -> str:
    """`pod.env[].name`, as people write it."""
    return ".".join(path).replace(".[]", "[]").replace(".{}", "{}")
