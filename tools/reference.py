"""``docs/api.md``: every field of the objects with its meaning, unit, bounds, and the effect of a reference."""

from collections.abc import Iterator, Mapping
from typing import Any

from stoker.api.crd import object_schema
from stoker.api.inferenceservice import API_VERSION, KIND
from stoker.api.quantities import INT_OR_STRING
from stoker.api.references import EFFECT_KEY, KIND_KEY
from stoker.api.types import EXAMPLES
from stoker.api.volumes import VOLUME_SOURCES

HEAD = f"""<!-- Generated from operator/stoker/api by `make generate`; changes here are lost. -->
# API reference

`{API_VERSION}`, kind `{KIND}`, short name `infsvc`. JSON is camelCase; time stamps are RFC 3339. Quantities are written
as everywhere in Kubernetes (`2`, `500m`, `64Gi`, `1e9`), whole numbers with or without quotes. A fraction needs
quotes, as in `"0.5"`: unquoted, YAML makes a number of it that no custom resource can take. Only `spec.replicas` has a
default in the schema; what "absent" means for any other field is said with it.
`kubectl explain infsvc.spec --recursive` shows the same tree.

"""

_OPAQUE = {f"volumes[].{source}" for source in VOLUME_SOURCES} | {
    "affinity",
    "tolerations[]",
    "topologySpreadConstraints[]",
    "securityContext",
}
"""Kubernetes' own types, documented by Kubernetes."""


def api_reference() -> str:
    """Return ``docs/api.md``."""
    schema = object_schema()["properties"]
    parts = [HEAD, "## spec\n\n", *_table("spec", schema["spec"])]
    parts += ["\n## References\n\n", REFERENCES_HEAD, *_references("spec", schema["spec"])]
    parts += ["\n## Rules\n\n", RULES_HEAD, *_rules("spec", schema["spec"])]
    parts += ["\n## status\n\n", *_table("status", schema["status"])]
    return "".join(parts)


REFERENCES_HEAD = """Each reference to another object has one declared effect when that object changes. A change is
noticed within a minute, the creation of one that was missing within 10 seconds.

| field | refers to | effect |
|---|---|---|
"""
RULES_HEAD = """The API server checks these at admission, besides each field's type, bounds and choices, and the form
of every field of Kubernetes' own types; `stoker plan` and `stoker render` say the same without one. Of a few malformed
fields the API server shows the pattern in place of these words.

| field | message |
|---|---|
"""


def _table(path: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield "| field | type | meaning |\n|---|---|---|\n"
    for where, part, required in _fields(path, schema):
        name = f"`{where}`" + (" (required)" if required else "")
        kind = _kind(part) + (f"; default {part['default']}" if "default" in part else "")
        yield f"| {name} | {_cell(kind)} | {_cell(part.get('description', ''))} |\n"


def _fields(path: str, schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Yield every field below ``schema`` with its path, not going into Kubernetes' own types."""
    for name, part in schema.get("properties", {}).items():
        where = f"{path}.{name}"
        yield where, part, name in schema.get("required", ())
        items = part.get("items", {})
        inner = (f"{where}[]", items) if items else (where, part)
        if not _is_opaque(inner[0]):
            yield from _fields(*inner)


def _is_opaque(path: str) -> bool:
    return path.removeprefix("spec.pod.") in _OPAQUE and path.startswith("spec.pod.")


def _kind(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get(INT_OR_STRING):
        return "integer or string"
    if schema["type"] == "array":
        return f"list of {_kind(schema['items'])}, at most {schema['maxItems']}"
    if "additionalProperties" in schema:
        return f"map of {_kind(schema['additionalProperties'])}, at most {schema['maxProperties']}"
    if schema["type"] == "integer" and "minimum" in schema:
        return f"integer, {schema['minimum']} to {schema['maximum']}"
    return str(schema["type"])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def _references(path: str, schema: Mapping[str, Any]) -> Iterator[str]:
    for where, part, _ in _fields(path, schema):
        if EFFECT_KEY in part:
            yield f"| `{where}` | {part[KIND_KEY]} | {part[EFFECT_KEY]} |\n"


def _rules(path: str, schema: Mapping[str, Any], *, is_of_kubernetes: bool = False) -> Iterator[str]:
    """Yield the rules of an object and of all below it, those of Kubernetes' own types among them."""
    is_of_kubernetes = is_of_kubernetes or _is_opaque(path)
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"| `{path}{rule.get('fieldPath', '')}` | {_cell(rule['message'])} |\n"
    example = EXAMPLES.get(schema.get("pattern", ""))
    if example and not is_of_kubernetes:
        yield f"| `{path}` | is malformed; {_cell(example)} |\n"
    for name, part in schema.get("properties", {}).items():
        yield from _rules(f"{path}.{name}", part, is_of_kubernetes=is_of_kubernetes)
    if "items" in schema:
        yield from _rules(f"{path}[]", schema["items"], is_of_kubernetes=is_of_kubernetes)
    if "additionalProperties" in schema:
        yield from _rules(f"{path}.*", schema["additionalProperties"], is_of_kubernetes=is_of_kubernetes)
