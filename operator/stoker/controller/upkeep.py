"""What runs beside the reconciles: overdue writes, missed deletions, the lag of the event loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Any

from stoker.kube.cache import Cache
from stoker.kube.client import Client, Selection
from stoker.kube.errors import ApiError
from stoker.kube.expectations import Expectation, Expectations
from stoker.kube.resources import Resource

CHECK_SECONDS = 5.0
SWEEP_SECONDS = 600.0
LAG_SECONDS = 1.0

log = logging.getLogger("stoker.upkeep")

Tell = Callable[[str, dict[str, Any]], object]


class Upkeep:
    """Keeps the cache true where a watch stream failed to.

    ``selections`` says for each kind what is watched, ``namespaces`` where (empty: everywhere). ``seen`` is told of
    what was read, ``gone`` of what is no more. What was read is still owed by the stream: a stream that stays silent
    is found by that.
    """

    def __init__(
        self,
        client: Client,
        cache: Cache,
        expectations: Expectations,
        selections: Iterable[tuple[Resource, str]],
        namespaces: tuple[str, ...] = (),
    ) -> None:
        self._client = client
        self._cache = cache
        self._expectations = expectations
        self._selections = {resource.kind: (resource, labels) for resource, labels in selections}
        self._namespaces = namespaces
        self._asked: set[str] = set()
        self.seen: Tell = lambda kind, raw: None
        self.gone: Tell = lambda kind, raw: None
        self.loop_lag_seconds = 0.0

    async def check_expectations(self) -> None:
        """Read what our own writes made where the watch has not shown it in time, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            overdue = dict(self._expectations.overdue(_now()))
            self._asked &= overdue.keys()
            for uid, owed in overdue.items():
                if uid not in self._asked:
                    self._asked.add(uid)
                    await self._read(uid, owed)

    async def measure_lag(self) -> None:
        """Measure how late the event loop is, until cancelled."""
        while True:
            before = _now()
            await asyncio.sleep(LAG_SECONDS)
            self.loop_lag_seconds = max(0.0, _now() - before - LAG_SECONDS)

    async def sweep_forever(self) -> None:
        """Compare the cache with what is stored, from time to time, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for kind in self._selections:
                try:
                    await self.sweep(kind)
                except ApiError as problem:
                    log.info("a sweep failed", extra={"kind": kind, "problem": problem.message})

    async def sweep(self, kind: str) -> int:
        """Forget objects of a kind that are gone without the watch having said so. Returns how many there were.

        kopf lists anew after a watch has expired, and an object that was deleted in between is not in that list.
        Raises ApiError.
        """
        resource, labels = self._selections[kind]
        shelf = self._cache.shelf(kind)
        before = set(shelf.versions())
        stored: set[str] = set()
        wanted = Selection(labels=labels, metadata_only=True)
        for namespace in (self._namespaces if resource.namespaced else ()) or (None,):
            async for page in self._client.pages(resource, namespace, wanted):
                stored.update(item["metadata"]["uid"] for item in page)
        suspects = [uid for uid in before - stored if shelf.get(uid) is not None]
        for uid in suspects:
            namespace, name = shelf.name_of(uid)
            await self._verify(resource, uid, namespace, name)
        return len(suspects)

    async def _verify(self, resource: Resource, uid: str, namespace: str, name: str) -> None:
        """Ask once more, for this object alone: it may have lost its label, or the watch may just have been late."""
        found: list[dict[str, Any]] = []
        # A list of one: pods and nodes may be listed and not got.
        async for page in self._client.pages(resource, namespace or None, Selection(fields=f"metadata.name={name}")):
            found += [raw for raw in page if raw["metadata"]["uid"] == uid]
        for raw in found:
            self.seen(resource.kind, raw)
        if not found:
            log.warning("a deletion was missed", extra={"kind": resource.kind, "namespace": namespace, "object": name})
            self.gone(resource.kind, {"metadata": {"uid": uid, "namespace": namespace, "name": name}})

    async def _read(self, uid: str, owed: Expectation) -> None:
        resource, _ = self._selections[owed.kind]
        try:
            await self._verify(resource, uid, owed.namespace, owed.name)
        except ApiError as problem:
            log.info("an overdue object could not be read", extra={"kind": owed.kind, "problem": problem.message})


def _now() -> float:
    return asyncio.get_running_loop().time()
