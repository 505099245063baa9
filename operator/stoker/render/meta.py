"""Metadata of children, and the hash by which an unchanged child is known."""

from collections.abc import Mapping
from typing import Any

from stoker.render.canonical import digest
from stoker.render.identity import ServiceIdentity
from stoker.render.labels import APPLIED_HASH, child_labels


def child_meta(service: ServiceIdentity, engine: str, name: str) -> dict[str, Any]:
    """Return the metadata of a child: name, labels of ours, the owner. Nothing is copied from the service (N14)."""
    meta: dict[str, Any] = {
        "name": name,
        "namespace": service.namespace,
        "labels": child_labels(service.name, engine),
    }
    owners = service.owner_references()
    return {**meta, "ownerReferences": owners} if owners else meta


def with_applied_hash(child: Mapping[str, Any]) -> dict[str, Any]:
    """Return the child with the annotation that holds the hash of everything else in it."""
    meta = child["metadata"]
    annotations = {**meta.get("annotations", {}), APPLIED_HASH: digest(child)}
    return {**child, "metadata": {**meta, "annotations": annotations}}


def applied_hash(child: Mapping[str, Any]) -> str:
    """Return the hash that a rendered child carries."""
    return str(child["metadata"]["annotations"][APPLIED_HASH])


def tidy(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return what a user wrote in one order and without nulls: a null in an apply would own the field."""
    if isinstance(value, Mapping):
        return {key: tidy(value[key]) for key in sorted(value) if value[key] is not None}
    if isinstance(value, list | tuple):
        return [tidy(item) for item in value]
    return value
