"""Who owns which field: pure functions over ``metadata.managedFields``.

A field set is nested: ``f:name`` for a field, ``k:{...}`` for an item of a list that is a map, ``v:value`` for an
item of a list that is a set, ``.`` for the node itself; an empty set is a leaf, such as an atomic list. Source: the
structured-merge-diff library and "Server-Side Apply" in the Kubernetes documentation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

FieldSet = Mapping[str, Any]

IDENTITY = frozenset(
    {"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"}
)
"""Fields of ``metadata`` that no manager owns."""


def owned_fields(managed: Sequence[Mapping[str, Any]], manager: str) -> FieldSet:
    """Return all fields that a manager owns in the object itself (not in a subresource), by apply or by update."""
    return _union(entry.get("fieldsV1") or {} for entry in managed if _is_of(entry, manager))


def others_fields(managed: Sequence[Mapping[str, Any]], manager: str) -> FieldSet:
    """Return all fields that anybody else owns."""
    return _union(entry.get("fieldsV1") or {} for entry in managed if entry.get("manager") != manager)


def ownership_digest(managed: Sequence[Mapping[str, Any]], manager: str) -> str:
    """Return a digest of what a manager owns. It changes as soon as anybody takes or removes one of its fields."""
    text = json.dumps([entry.get("fieldsV1") for entry in managed if _is_of(entry, manager)], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


def covers(owned: FieldSet, others: FieldSet, manifest: Mapping[str, Any]) -> bool:
    """Return whether every field of a manifest is owned.

    A value that the API types leave out when it is zero (``false``, ``0``, an empty list) never enters the field set of
    a create; it counts as owned unless somebody else owns that field.
    """
    body = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind", "metadata")}
    metadata = {key: value for key, value in manifest["metadata"].items() if key not in IDENTITY}
    return _covers_mapping(owned, others, {**body, "metadata": metadata})


def as_apply_entries(managed: Sequence[Mapping[str, Any]], manager: str) -> list[dict[str, Any]] | None:
    """Return managed fields in which a manager's ``Update`` entry has become an ``Apply`` entry.

    None when it has no such entry: nothing is left to hand over. Without the hand-over a later apply of the same
    manager removes nothing, since the two entries are separate owners.
    """
    updates = [entry for entry in managed if _is_of(entry, manager) and entry.get("operation") == "Update"]
    if not updates:
        return None
    mine = [entry for entry in managed if _is_of(entry, manager)]
    fields = _union(entry.get("fieldsV1") or {} for entry in mine)
    merged = {**mine[-1], "operation": "Apply", "fieldsV1": fields}
    return [dict(entry) for entry in managed if not _is_of(entry, manager)] + [merged]


def _is_of(entry: Mapping[str, Any], manager: str) -> bool:
    return entry.get("manager") == manager and not entry.get("subresource")


def _union(sets: Iterable[FieldSet]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for fields in sets:
        _merge(result, fields)
    return result


def _merge(target: dict[str, Any], fields: FieldSet) -> None:
    for key, nested in fields.items():
        _merge(target.setdefault(key, {}), nested)


def _covers_mapping(owned: FieldSet, others: FieldSet, value: Mapping[str, Any]) -> bool:
    return all(
        _covers_value(owned.get(f"f:{key}"), others.get(f"f:{key}"), nested)
        for key, nested in value.items()
        if nested is not None
    )


def _covers_value(owned: FieldSet | None, others: FieldSet | None, value: Any) -> bool:  # noqa: ANN401 - any JSON
    if owned is None:
        return others is None and _is_zero(value)
    if not owned:
        # A leaf, such as an atomic list; or a list or map of which others hold all the items that are left.
        return not (value and others and isinstance(value, Mapping | list | tuple))
    if isinstance(value, Mapping):
        return _covers_mapping(owned, others or {}, value)
    if isinstance(value, list | tuple):
        return all(_covers_item(owned, others or {}, item) for item in value)
    return True


def _covers_item(owned: FieldSet, others: FieldSet, item: Any) -> bool:  # noqa: ANN401 - any JSON
    if not isinstance(item, Mapping):
        return f"v:{json.dumps(item)}" in owned
    for key, nested in owned.items():
        if key.startswith("k:") and _matches(json.loads(key[2:]), item):
            return not nested or _covers_mapping(nested, others.get(key) or {}, item)
    return False


def _matches(identity: Mapping[str, Any], item: Mapping[str, Any]) -> bool:
    """Return whether a list item has this identity; a part that the item leaves out was defaulted by the API server."""
    return all(item.get(key, value) == value for key, value in identity.items())


def _is_zero(value: Any) -> bool:  # noqa: ANN401 - any JSON
    return value in (False, 0, "", [], {})
