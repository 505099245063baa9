"""kopf wiring, and nothing else: each handler passes an object on.

There are index handlers, since kopf lets no event handler run before everything that is indexed has been listed once,
and event handlers for what ends. None of them writes to an object: no annotation, no finalizer, no progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

import kopf

from stoker.kube.resources import INFERENCE_SERVICE, Resource


class Sink(Protocol):
    """Where the watch streams lead to."""

    def seen(self, kind: str, raw: Mapping[str, Any]) -> None:
        """An object was listed, added or modified."""

    def gone(self, kind: str, raw: Mapping[str, Any]) -> None:
        """An object was deleted, or no longer matches what is watched."""

    def complete(self) -> None:
        """Everything has been listed once."""

    async def start(self) -> None:
        """Begin to work."""

    async def stop(self) -> None:
        """End, in time for the grace period of a pod."""

    def problems(self) -> list[str]:
        """Return what makes this process unfit to go on."""

    async def connection(self) -> kopf.ConnectionInfo:
        """Return where the API server is and who we are to it, read anew."""


class NoMemo:
    """One and the same for every object: kopf keeps a copy per object."""

    def __copy__(self) -> NoMemo:
        """Return itself."""
        return self


def build_registry(sink: Sink, resources: Iterable[Resource]) -> kopf.OperatorRegistry:
    """Return the handlers that lead the streams of these kinds to a sink."""
    registry = kopf.OperatorRegistry()
    for resource in resources:
        _wire(registry, sink, resource)
    _wire_lifecycle(registry, sink)
    return registry


def _wire(registry: kopf.OperatorRegistry, sink: Sink, resource: Resource) -> None:
    where = (resource.group, resource.version, resource.plural)
    deleted: Callable[..., bool] = _is_deletion

    @kopf.index(*where, id=f"index-{resource.plural}", registry=registry)
    async def seen(body: kopf.Body, **_: object) -> None:
        sink.seen(resource.kind, dict(body))

    @kopf.on.event(*where, id=f"gone-{resource.plural}", registry=registry, when=deleted)
    async def gone(body: kopf.Body, **_: object) -> None:
        sink.gone(resource.kind, dict(body))

    if resource is INFERENCE_SERVICE:

        @kopf.on.event(*where, id="complete", registry=registry)
        async def complete(**_: object) -> None:
            sink.complete()


def _is_deletion(type: str | None = None, **_: object) -> bool:  # noqa: A002 - kopf's own word
    return type == "DELETED"


def _wire_lifecycle(registry: kopf.OperatorRegistry, sink: Sink) -> None:
    @kopf.on.login(registry=registry)
    async def login(**_: object) -> kopf.ConnectionInfo:
        return await sink.connection()

    @kopf.on.startup(registry=registry)
    async def start(**_: object) -> None:
        await sink.start()

    @kopf.on.cleanup(registry=registry)
    async def stop(**_: object) -> None:
        await sink.stop()

    @kopf.on.probe(registry=registry, id="problems", errors=kopf.ErrorsMode.PERMANENT)
    async def problems(**_: object) -> str:
        found = sink.problems()
        if found:
            raise kopf.PermanentError("; ".join(found))
        return "none"
