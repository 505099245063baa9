"""One reconcile: key -> Snapshot -> decision -> writes -> status.

Everything that is decided is decided by ``stoker.reconcile.decide``, which is pure. What is done here: reading what the
cache does not hold, writing in the right order, and remembering what went wrong so that the next Snapshot tells of it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from stoker.controller.metrics import Metrics
from stoker.controller.writing import status_delay
from stoker.kube.apply import ChildWriter, Outcome, Result
from stoker.kube.cache import Cache, ServiceKey
from stoker.kube.client import Client
from stoker.kube.discovery import Discovery
from stoker.kube.errors import ApiError, Conflict, NotFound, NotLeader
from stoker.kube.events import EventPoster
from stoker.kube.held import FRESH_SECONDS, REPLACING_SECONDS, ForeignHeld
from stoker.kube.ledger import Ledger
from stoker.kube.logs import LogReader
from stoker.kube.references import ReferenceReader
from stoker.kube.resources import CHILDREN, DEPLOYMENT, INFERENCE_SERVICE
from stoker.kube.snapshot import Owner, Surroundings, assemble, pods_of
from stoker.kube.views import STATUS_MANAGER, ServiceEntry, object_ref
from stoker.plan.counts import added
from stoker.plan.snapshot import ObjectRef, ReferenceView, Snapshot
from stoker.reconcile.decide import decide
from stoker.reconcile.decision import Decision
from stoker.reconcile.settings import Settings

RESYNC_SECONDS = 1800.0
"""How often a service is looked at without any reason."""

FOREIGN_SECONDS = 10.0
"""How often an object that stands in the way is looked at: no watch shows it."""

WAITING_SECONDS = 60.0
"""How often a service is looked at whose pods find no place: the status tells what is free, and no watch does."""

SOON_SECONDS = 0.5
NAMESPACE_TERMINATING = "NamespaceTerminating"

References = tuple[ReferenceView, ...]
Write = Callable[[Mapping[str, Any], Owner], Awaitable[Outcome]]
T = TypeVar("T")

log = logging.getLogger("stoker.reconcile")


@dataclass(slots=True)
class Memory:
    """What is remembered of one service between reconciles. Losing it costs nothing but time."""

    uid: str
    foreign: tuple[ObjectRef, ...] = ()
    failures: dict[str, str] = field(default_factory=dict)
    status_written_at: float = float("-inf")


@dataclass(frozen=True, slots=True)
class Parts:
    """What a reconciler works with."""

    client: Client
    cache: Cache
    writer: ChildWriter
    ledger: Ledger
    references: ReferenceReader
    logs: LogReader
    foreign_held: ForeignHeld
    discovery: Discovery
    events: EventPoster
    metrics: Metrics
    settings: Settings
    clock: Callable[[], float]
    nodes_are_known: bool
    """Whether the nodes are watched: a role may leave them out."""


@dataclass(slots=True)
class Attempt:
    """What became of the writes of one pass."""

    failures: dict[str, str] = field(default_factory=dict)
    foreign: list[ObjectRef] = field(default_factory=list)
    error: ApiError | None = None
    look_again: bool = False
    namespace_ends: bool = False


class Reconciler:
    """Brings services about, one key at a time per key."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._memories: dict[ServiceKey, Memory] = {}

    async def reconcile(self, key: ServiceKey) -> float | None:
        """Bring one service about. Returns after how many seconds it wants to be looked at again. Raises ApiError."""
        entry = self._parts.cache.service(key)
        if entry is None or entry.deleting:
            self.forget(key)
            return None  # its children go with it, by their owner references (N5)
        memory = self._memory(key, entry)
        await self._look_at_foreign(memory)
        return await self._bring_about(key, entry, memory)

    async def _bring_about(self, key: ServiceKey, entry: ServiceEntry, memory: Memory) -> float | None:
        """Decide, write, and say so in the status."""
        snapshot, decision = await self._decide(key, entry, memory)
        attempt = await self._write(entry, decision)
        known = (memory.failures, memory.foreign)
        memory.failures = attempt.failures
        memory.foreign = _joined(memory.foreign, attempt.foreign)
        if (memory.failures, memory.foreign) != known:
            # The writes showed what the decision could not know: the status shall tell of it within this reconcile.
            snapshot, decision = await self._decide(key, entry, memory)
        delays = [RESYNC_SECONDS * random.uniform(0.8, 1.2), decision.requeue_after_seconds]  # noqa: S311
        delays.append(await self._write_status(key, entry, memory, snapshot, decision))
        if attempt.error is not None:
            raise attempt.error
        if memory.foreign:
            delays.append(FOREIGN_SECONDS)
        if _waits(self._parts.cache, entry):
            delays.append(WAITING_SECONDS)
        if attempt.look_again:
            delays.append(SOON_SECONDS)
        if attempt.namespace_ends:
            delays.append(FOREIGN_SECONDS)
        return min(delay for delay in delays if delay is not None)

    # ---- reading ----------------------------------------------------------------------------------------------------

    async def _decide(self, key: ServiceKey, entry: ServiceEntry, memory: Memory) -> tuple[Snapshot, Decision]:
        parts = self._parts
        service = entry.stored()
        references = await parts.references.of(key, service)
        waits = _waits(parts.cache, entry)
        if waits:
            await parts.foreign_held.refresh()  # the status tells what is free
        replaces = bool(parts.cache.children[DEPLOYMENT.kind].of(entry.uid))
        max_age_seconds = REPLACING_SECONDS if replaces else FRESH_SECONDS
        is_fresh = parts.foreign_held.is_fresh(max_age_seconds)
        knows_held = waits or (is_fresh and not _is_observed(service))
        snapshot = self._snapshot(key, entry, memory, references, knows_held)
        decision = decide(snapshot, parts.settings)
        if decision.create_revision is not None and not (knows_held and is_fresh):
            # Else only a new revision depends on what is free, so only then it is worth the asking.
            await parts.foreign_held.refresh(max_age_seconds)
            snapshot = self._snapshot(key, entry, memory, references, True)
            decision = decide(snapshot, parts.settings)
        return snapshot, decision

    def _snapshot(
        self, key: ServiceKey, entry: ServiceEntry, memory: Memory, references: References, with_held: bool
    ) -> Snapshot:
        parts = self._parts
        pods = tuple(parts.logs.complete(key, pod) for pod in pods_of(parts.cache, entry))
        held = added(parts.cache.held, parts.foreign_held.last) if with_held else {}
        around = Surroundings(
            now=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            references=references,
            held=held,
            held_is_known=parts.foreign_held.is_known,
            foreign=memory.foreign,
            failures=memory.failures,
            nodes_are_known=parts.nodes_are_known,
            crd_outdated=parts.discovery.capabilities.crd_outdated,
        )
        return assemble(parts.cache, entry, pods, around)

    async def _look_at_foreign(self, memory: Memory) -> None:
        """Look again at what stood in the way: it may be gone, or be ours by now."""
        still: list[ObjectRef] = []
        for ref in memory.foreign:
            try:
                raw = await self._parts.client.get(CHILDREN[ref.kind], ref.namespace, ref.name)
            except NotFound:
                continue
            found = object_ref(ref.kind, raw)
            if found.controller_uid != memory.uid:
                still.append(found)
        memory.foreign = tuple(still)

    # ---- writing ----------------------------------------------------------------------------------------------------

    async def _write(self, entry: ServiceEntry, decision: Decision) -> Attempt:
        """Write the revision, then what pods need, then the Deployment, then remove what is surplus."""
        attempt, owner = Attempt(), Owner(entry.uid, entry.name)
        if decision.create_revision is not None:
            stored = await self._one(attempt, decision.create_revision, self._parts.writer.ensure_revision, owner)
            if stored is not Result.CREATED:
                return attempt  # nothing runs that is not stored
        first = [child for child in decision.apply if child["kind"] != "Deployment"]
        last = [child for child in decision.apply if child["kind"] == "Deployment"]
        for children in (first, last):
            if attempt.foreign or attempt.namespace_ends:
                break  # engines that no Service reaches would only hold GPUs
            await _all_of(self._one(attempt, child, self._parts.writer.ensure, owner) for child in children)
        for ref in decision.delete:
            await self._guarded(attempt, f"{ref.kind}/{ref.name}", self._parts.writer.delete(ref))
        return attempt

    async def _one(self, attempt: Attempt, manifest: Mapping[str, Any], write: Write, owner: Owner) -> Result | None:
        """Write one object; a failure is noted, and there is no result."""
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        outcome = await self._guarded(attempt, f"{kind}/{name}", write(manifest, owner))
        result = outcome.result if outcome is not None else None
        self._parts.metrics.children.labels(kind, result or "failed").inc()
        if outcome is not None and outcome.foreign is not None:
            attempt.foreign.append(outcome.foreign)
        if result is not Result.UNCHANGED:
            attempt.look_again = True  # most writes are followed by events that queue the service sooner; not all are
        return result

    async def _guarded(self, attempt: Attempt, what: str, writing: Awaitable[T]) -> T | None:
        """Await a write; a failure is noted for the status, and the other children are written all the same."""
        try:
            return await writing
        except NotLeader:
            raise
        except ApiError as problem:
            if NAMESPACE_TERMINATING in problem.causes:
                attempt.namespace_ends = True  # the service goes with it: there is nothing to tell, and nothing to try
                return None
            attempt.failures[what] = problem.message
            attempt.error = attempt.error or problem
            return None

    async def _write_status(
        self, key: ServiceKey, entry: ServiceEntry, memory: Memory, snapshot: Snapshot, decision: Decision
    ) -> float | None:
        """Write the status when it is worth it. Returns when to look again, where it has to wait."""
        if decision.status is None:
            return None
        now = self._parts.clock()
        stored = snapshot.service.get("status") or {}
        delay = status_delay(stored, decision.status, now - memory.status_written_at)
        if delay is None or delay > 0:
            return delay
        metadata = {
            "namespace": entry.namespace,
            "name": entry.name,
            "uid": entry.uid,
            "resourceVersion": entry.resource_version,
        }
        body = {
            "apiVersion": INFERENCE_SERVICE.api_version,
            "kind": INFERENCE_SERVICE.kind,
            "metadata": metadata,
            "spec": snapshot.service.get("spec"),
            "status": decision.status,
        }
        try:
            with self._parts.ledger.writing(INFERENCE_SERVICE.kind, entry.namespace, entry.name):
                raw = await self._parts.client.update(
                    INFERENCE_SERVICE,
                    entry.namespace,
                    body,
                    STATUS_MANAGER,
                    subresource="status",
                    # An older CRD may lack a field of the status: the rest of it shall be told all the same.
                    drop_unknown=snapshot.crd_outdated is not None and snapshot.crd_outdated.field is not None,
                )
                self._parts.ledger.book(INFERENCE_SERVICE.kind, raw)
        except NotFound:
            return SOON_SECONDS
        except Conflict:
            await self._refresh(key)
            return 0.0
        memory.status_written_at = now
        await self._parts.events.post(snapshot.service, decision.events)
        return None

    async def _refresh(self, key: ServiceKey) -> None:
        """Read the service anew: somebody has written it since."""
        try:
            self._parts.cache.put("InferenceService", await self._parts.client.get(INFERENCE_SERVICE, *key))
        except NotFound:
            return

    # ---- memory -----------------------------------------------------------------------------------------------------

    def _memory(self, key: ServiceKey, entry: ServiceEntry) -> Memory:
        memory = self._memories.get(key)
        if memory is None or memory.uid != entry.uid:
            memory = self._memories[key] = Memory(entry.uid)
        return memory

    def forget(self, key: ServiceKey) -> None:
        """Forget what is remembered of a service that is gone."""
        self._memories.pop(key, None)
        self._parts.references.forget(key)


def _waits(cache: Cache, entry: ServiceEntry) -> bool:
    """Return whether a pod of a service has found no node."""
    return any(pod.unschedulable_message for pod in pods_of(cache, entry))


def _is_observed(service: Mapping[str, Any]) -> bool:
    """Return whether the last status was computed for this generation: then a new revision is unlikely."""
    observed = (service.get("status") or {}).get("observedGeneration")
    return bool(observed == service["metadata"].get("generation"))


async def _all_of(writes: Iterable[Awaitable[object]]) -> None:
    """Await writes that are made side by side. What one of them raises is raised when all have ended.

    A write that went on alone would meet that of the next reconcile.
    """
    for end in await asyncio.gather(*writes, return_exceptions=True):
        if isinstance(end, BaseException):
            raise end


def _joined(known: tuple[ObjectRef, ...], more: list[ObjectRef]) -> tuple[ObjectRef, ...]:
    by_name = {(ref.kind, ref.name): ref for ref in (*known, *more)}
    return tuple(by_name[name] for name in sorted(by_name))
