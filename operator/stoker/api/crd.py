"""From the models to the CustomResourceDefinition: structural schemas, rules, subresources, printer columns."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, starmap
from typing import Any

from pydantic import BaseModel

from stoker import __version__
from stoker.api.cel import raw
from stoker.api.inferenceservice import CATEGORY, GROUP, KIND, PLURAL, SHORT_NAME, VERSION, InferenceServiceSpec
from stoker.api.quantities import INT_OR_STRING
from stoker.api.references import EFFECT_KEY, KIND_KEY
from stoker.api.status import InferenceServiceStatus
from stoker.api.types import EXAMPLES

NAME = f"{PLURAL}.{GROUP}"
"""Name of the CustomResourceDefinition."""

VERSION_LABEL = "app.kubernetes.io/version"
"""Label of the CustomResourceDefinition: the version of Stoker that it was made by."""

Schema = dict[str, Any]

_CONDITION = '.status.conditions[?(@.type=="{}")].{}'
_COLUMNS: tuple[tuple[str, str, str, int, str], ...] = (
    ("Ready", "string", _CONDITION.format("Ready", "status"), 0, "Whether the newest revision serves in full."),
    ("Model", "string", ".spec.model.source", 0, "Where the model comes from."),
    ("Replicas", "integer", ".status.replicas", 0, "Number of pods."),
    ("GPUs", "integer", ".status.gpus", 0, "GPUs held or waited for."),
    ("Age", "date", ".metadata.creationTimestamp", 0, "Time since the object was made."),
    ("Engine", "string", ".spec.engine.name", 1, "The engine."),
    ("URL", "string", ".status.url", 1, "Address inside the cluster."),
    ("Reason", "string", _CONDITION.format("Ready", "reason"), 1, "Why it is ready or not."),
)
_SELECTABLE = (".spec.model.source", ".spec.engine.name")


@cache
def inference_service_crd() -> Mapping[str, Any]:
    """Return the CustomResourceDefinition of InferenceServices."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME, "labels": {VERSION_LABEL: __version__}},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": KIND,
                "listKind": f"{KIND}List",
                "plural": PLURAL,
                "singular": KIND.lower(),
                "shortNames": [SHORT_NAME],
                "categories": [CATEGORY],
            },
            "scope": "Namespaced",
            "versions": [_version()],
        },
    }


def _version() -> Schema:
    return {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _bare(object_schema())},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [_column(*column) for column in _COLUMNS],
        "selectableFields": [{"jsonPath": path} for path in _SELECTABLE],
    }


def _column(name: str, kind: str, path: str, priority: int, description: str) -> Schema:
    column: Schema = {"name": name, "type": kind, "jsonPath": path, "description": description}
    return {**column, "priority": priority} if priority else column


def object_schema() -> Schema:
    """Return the schema of the whole object, with the effects of references still in it (``EFFECT_KEY``)."""
    status = structural_schema(InferenceServiceStatus)
    return {
        "description": "One model, declared as it shall be served.",
        "type": "object",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "Version of the schema.", "maxLength": 64},
            "kind": {"type": "string", "description": "Kind of the object.", "maxLength": 64},
            "metadata": {"type": "object"},
            "spec": structural_schema(InferenceServiceSpec),
            # Until the operator has looked at an object, no reader may take it for finished.
            "status": {**status, "default": {"observedGeneration": -1}},
        },
    }


def structural_schema(model: type[BaseModel]) -> Schema:
    """Return a model's schema as Kubernetes wants it: one tree, without references, nulls, or titles."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    return _structural(schema, schema.get("$defs", {}))


def _structural(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    plain = _resolved(schema, definitions)
    result: Schema = {key: plain[key] for key in _KEPT if key in plain}
    if "description" in result:
        result["description"] = " ".join(str(result["description"]).split())
    if result.get("default") is None:
        result.pop("default", None)
    _below(result, plain, lambda part: _structural(part, definitions))
    return _with_list_type(_with_format(result))


_KEPT = (
    "description", "type", "enum", "default", "format", "pattern", "minLength", "maxLength", "minimum", "maximum",
    "minItems", "maxItems", "maxProperties", "required", "x-kubernetes-list-type", "x-kubernetes-list-map-keys",
    "x-kubernetes-validations", INT_OR_STRING, EFFECT_KEY, KIND_KEY,
)  # fmt: skip


def _resolved(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``schema`` with its reference followed and its null dropped; what stands beside them wins."""
    if "anyOf" in schema:
        inner = next(part for part in schema["anyOf"] if part.get("type") != "null")
        return {**_resolved(inner, definitions), **{key: schema[key] for key in schema if key != "anyOf"}}
    if "$ref" in schema:
        target = definitions[schema["$ref"].rpartition("/")[2]]
        return {**target, **{key: schema[key] for key in schema if key != "$ref"}}
    return schema


def _below(result: Schema, schema: Mapping[str, Any], convert: Callable[[Mapping[str, Any]], Schema]) -> None:
    if "properties" in schema:
        result["properties"] = {name: convert(part) for name, part in schema["properties"].items()}
    if isinstance(schema.get("additionalProperties"), Mapping):
        result["additionalProperties"] = convert(schema["additionalProperties"])
    if "items" in schema:
        result["items"] = convert(schema["items"])


def _with_format(schema: Schema) -> Schema:
    if schema.get("type") != "integer" or "format" in schema:
        return schema
    return {**schema, "format": "int32" if schema.get("maximum", 2**31) < 2**31 else "int64"}


def _with_list_type(schema: Schema) -> Schema:
    if schema.get("type") != "array":
        return schema
    return {"x-kubernetes-list-type": "atomic", **schema}


def _bare(schema: Mapping[str, Any], times: int = 1) -> Schema:
    """Return ``schema`` as the API server takes it: the effects of references moved into the descriptions.

    ``times`` is how often an object may hold what ``schema`` describes.
    """
    result = _worded({key: value for key, value in schema.items() if key not in {EFFECT_KEY, KIND_KEY}}, times)
    if EFFECT_KEY in schema:
        result["description"] = f"{schema['description']} Effect: {schema[EFFECT_KEY]}."
    entries: int = schema.get("maxItems", schema.get("maxProperties", 1))
    _below(result, schema, lambda part: _bare(part, times * entries))
    return result


_DEAREST = 1_000_000
"""Most that the rule of one pattern may cost, as the API server reckons it: of 10 million that a rule may cost, and of
100 million for all of them. Patterns of strings in lists of lists cost more."""


def _cost(pattern: str, max_length: int, times: int) -> float:
    """Return what a rule costs that matches strings up to ``times`` for one object (``matches`` of CEL's cost model).

    A character takes up to 4 bytes, of which each costs a tenth; each character of the pattern, a quarter.
    """
    return times * (4 * max_length * 0.1) * (len(pattern) * 0.25)


def _worded(schema: Schema, times: int) -> Schema:
    """Return the schema of a string with a rule in place of its pattern: of that, people would be shown the text.

    Quantities keep theirs, as every API of Kubernetes has them.
    """
    pattern = schema.get("pattern", "")
    if pattern not in EXAMPLES or INT_OR_STRING in schema or _cost(pattern, schema["maxLength"], times) > _DEAREST:
        return schema
    message = f"is malformed; {EXAMPLES[pattern]}"
    rule = {"rule": f"self.matches({raw(pattern)})", "message": message, "reason": "FieldValueInvalid"}
    return {**{key: value for key, value in schema.items() if key != "pattern"}, "x-kubernetes-validations": [rule]}


@dataclass(frozen=True, slots=True)
class SchemaGap:
    """What a served CustomResourceDefinition lacks of our own; of each kind the first that was found."""

    field: str | None = None
    """A field, which is pruned silently from what users apply and refused in what the operator writes."""
    check: str | None = None
    """A rule, a bound or a default: what users apply is judged and completed as by another version."""

    def __str__(self) -> str:
        """Return the worse of the two: without a field, what is written is lost."""
        return self.field or self.check or ""


def schema_gap(served: Mapping[str, Any]) -> SchemaGap | None:
    """Return what the served CustomResourceDefinition lacks; None where it has it all.

    Rules are told apart by their expressions, bounds and defaults by their values, so that those of another version
    count as lacking. Where the CustomResourceDefinition is of a newer version than ours, they are the better ones, and
    only fields count. One whose version is not known is compared in full.
    """
    for version in served.get("spec", {}).get("versions", ()):
        if version.get("name") == VERSION:
            pairs = tuple(_pairs(_bare(object_schema()), version.get("schema", {}).get("openAPIV3Schema", {})))
            field = next((path for path, _, theirs in pairs if theirs is None), None)
            check = None if _is_newer(served) else next(chain.from_iterable(starmap(_missing_checks, pairs)), None)
            return SchemaGap(field, check) if field or check else None
    return SchemaGap(f"version {VERSION}")


_RELEASE = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?![0-9])")
"""The numbers of a version; those of a pre-release are of the release that it precedes."""


def _is_newer(served: Mapping[str, Any]) -> bool:
    """Return whether a CustomResourceDefinition is of a newer version than ours; False where it names none."""
    labels = served.get("metadata", {}).get("labels") or {}
    theirs, ours = _RELEASE.match(labels.get(VERSION_LABEL, "")), _RELEASE.match(__version__)
    return theirs is not None and ours is not None and _numbers(theirs) > _numbers(ours)


def _numbers(version: re.Match[str]) -> tuple[int, ...]:
    return tuple(int(number) for number in version.groups())


_Pair = tuple[str, Mapping[str, Any], Mapping[str, Any] | None]


def _pairs(ours: Mapping[str, Any], theirs: Mapping[str, Any] | None, path: str = "") -> Iterator[_Pair]:
    """Yield every part of our schema with its path, beside theirs; None where they have none."""
    yield path, ours, theirs
    if theirs is None:
        return
    for name, part in ours.get("properties", {}).items():
        yield from _pairs(part, theirs.get("properties", {}).get(name), f"{path}.{name}" if path else name)
    for inner, sign in (("items", "[]"), ("additionalProperties", ".*")):
        if inner in ours:
            yield from _pairs(ours[inner], theirs.get(inner, {}), f"{path}{sign}")


def _missing_checks(path: str, ours: Mapping[str, Any], theirs: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield each rule, bound and default of one part that the served schema lacks, or has with another value."""
    if theirs is None:
        return
    known = {rule["rule"] for rule in theirs.get(_RULES, ())}
    at = path or "the object"
    lacking = (rule for rule in ours.get(_RULES, ()) if rule["rule"] not in known)
    yield from (f"a rule of {at}{rule.get('fieldPath', '')}" for rule in lacking)
    for key in _COMPARED:
        if _plain(ours.get(key)) != _plain(theirs.get(key)):
            yield f"the default of {at}" if key == "default" else f"a rule of {at}"


def _plain(value: object) -> object:
    """Return a keyword's value without what says nothing: the order of choices and of names."""
    return frozenset(value) if isinstance(value, list) else value


_RULES = "x-kubernetes-validations"
_COMPARED = tuple(key for key in _KEPT if key not in {"description", _RULES, EFFECT_KEY, KIND_KEY})
