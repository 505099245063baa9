"""Which objects a service names: pure functions over the stored spec.

The spec may be malformed, since older schemas let other things pass: whatever has not the expected shape names nothing,
and the parser of the spec says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stoker.api.faults import join

MAX_REFERENCES = 256
"""More than any spec names that the schema takes; one of an older schema that names more is told so by the parser."""


@dataclass(frozen=True, slots=True)
class Named:
    """One object that a service names. ``keys``: those whose content rolls the pods; ``reads``: planning reads it."""

    kind: str
    name: str
    field_path: str
    optional: bool = False
    keys: tuple[str, ...] = ()
    reads: bool = False

    @property
    def needs_content(self) -> bool:
        """Whether more than its existence counts."""
        return self.reads or bool(self.keys)


def named_objects(spec: Mapping[str, Any]) -> tuple[Named, ...]:
    """Return what a spec names: one entry per object for variables (their keys joined), one per field otherwise."""
    found = [*_of_model(_mapping(spec.get("model"))), *_of_pod(_mapping(spec.get("pod")))]
    return tuple(found[:MAX_REFERENCES])


def _of_model(model: Mapping[str, Any]) -> Iterator[Named]:
    source = _text(model.get("source"))
    if source.startswith("pvc://"):
        yield from _one("PersistentVolumeClaim", source.removeprefix("pvc://").split("/")[0], "spec.model.source")
    yield from _one("Secret", model.get("credentialsSecret"), "spec.model.credentialsSecret")
    facts = _mapping(model.get("facts"))
    yield from _one("ConfigMap", facts.get("configMapName"), "spec.model.facts.configMapName", reads=True)


def _of_pod(pod: Mapping[str, Any]) -> Iterator[Named]:
    yield from _of_env(_items(pod.get("env")))
    for index, volume in _items(pod.get("volumes")):
        yield from _of_volume(volume, join("spec.pod.volumes", index))
    for index, secret in _items(pod.get("imagePullSecrets")):
        yield from _one("Secret", secret.get("name"), join("spec.pod.imagePullSecrets", index, "name"))
    yield from _one("ServiceAccount", pod.get("serviceAccountName"), "spec.pod.serviceAccountName")


def _of_env(variables: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[Named]:
    """Yield one entry per object: its digest covers every key that a variable takes from it."""
    joined: dict[tuple[str, str], Named] = {}
    for index, variable in variables:
        for kind, source in (("Secret", "secretKeyRef"), ("ConfigMap", "configMapKeyRef")):
            selector = _mapping(_mapping(variable.get("valueFrom")).get(source))
            path = join("spec.pod.env", index, "valueFrom", source, "name")
            for named in _one(kind, selector.get("name"), path, optional=selector.get("optional") is True):
                joined[kind, named.name] = _joined(joined.get((kind, named.name)), named, _text(selector.get("key")))
    yield from joined.values()


def _joined(known: Named | None, new: Named, key: str) -> Named:
    if known is None:
        return Named(new.kind, new.name, new.field_path, new.optional, (key,))
    keys = tuple(sorted({*known.keys, key}))
    return Named(known.kind, known.name, known.field_path, known.optional and new.optional, keys)


def _of_volume(volume: Mapping[str, Any], path: str) -> Iterator[Named]:
    claim = _mapping(volume.get("persistentVolumeClaim"))
    yield from _one("PersistentVolumeClaim", claim.get("claimName"), f"{path}.persistentVolumeClaim.claimName")
    yield from _of_source("Secret", _mapping(volume.get("secret")), "secretName", f"{path}.secret")
    yield from _of_source("ConfigMap", _mapping(volume.get("configMap")), "name", f"{path}.configMap")
    for index, source in _items(_mapping(volume.get("projected")).get("sources")):
        inner = join(path, "projected", "sources", index)
        yield from _of_source("Secret", _mapping(source.get("secret")), "name", f"{inner}.secret")
        yield from _of_source("ConfigMap", _mapping(source.get("configMap")), "name", f"{inner}.configMap")


def _of_source(kind: str, source: Mapping[str, Any], field: str, path: str) -> Iterator[Named]:
    yield from _one(kind, source.get(field), f"{path}.{field}", optional=source.get("optional") is True)


def _one(kind: str, name: object, path: str, *, optional: bool = False, reads: bool = False) -> Iterator[Named]:
    if isinstance(name, str) and name:
        yield Named(kind, name, path, optional, (), reads)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the objects of a list with their places in it: a field is named by its place, as the API server does."""
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if isinstance(item, Mapping):
            yield index, item


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
