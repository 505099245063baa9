"""Writing children: created first, applied later, and never what is not ours (N22).

The first creation is a create: a plain apply adopts whatever stands under that name. Every later apply carries the
uid of the object that was seen, so that the API server refuses it when the object is another one or is gone. A child
whose hash is the rendered one and whose fields are all still ours is not sent.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stoker.kube.cache import Cache
from stoker.kube.client import Client
from stoker.kube.errors import AlreadyExists, Conflict, Invalid, NotFound
from stoker.kube.ledger import Ledger
from stoker.kube.ownership import as_apply_entries, covers, others_fields, owned_fields
from stoker.kube.resources import CHILDREN, CONTROLLER_REVISION
from stoker.kube.snapshot import Owner, seen_by
from stoker.kube.views import CHILD_MANAGER, ChildEntry, child_entry
from stoker.plan.snapshot import ObjectRef
from stoker.render.meta import applied_hash

HAND_OVER_ATTEMPTS = 4
UID_FIELD = "metadata.uid"


class Result(StrEnum):
    """What became of one child."""

    CREATED = "created"
    APPLIED = "applied"
    UNCHANGED = "unchanged"
    FOREIGN = "foreign"
    """An object that the service does not control stands under that name; nothing was written."""
    TERMINATING = "terminating"
    """The object of before is on its way out; it is created anew when it is gone."""
    STALE = "stale"
    """It changed or went while it was worked on; look again."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result, and the foreign object where there is one."""

    result: Result
    foreign: ObjectRef | None = None


class ChildWriter:
    """Writes the children of services, and books what it wrote.

    Methods raise the ApiErrors of the client, apart from those that an Outcome expresses.
    """

    def __init__(self, client: Client, cache: Cache, ledger: Ledger) -> None:
        self._client = client
        self._cache = cache
        self._ledger = ledger

    async def ensure(self, manifest: Mapping[str, Any], owner: Owner) -> Outcome:
        """Bring one child to what was rendered."""
        metadata = manifest["metadata"]
        known = self._cache.children[manifest["kind"]].named(metadata["namespace"], metadata["name"])
        with self._ledger.writing(manifest["kind"], metadata["namespace"], metadata["name"]):
            if known is None:
                return await self._create(manifest, owner)
            return await self._bring(manifest, known, owner)

    async def ensure_revision(self, manifest: Mapping[str, Any], owner: Owner) -> Outcome:
        """Store a revision. Its data is immutable: one that stands and is ours is the same one."""
        metadata = manifest["metadata"]
        try:
            raw = await self._client.create(CONTROLLER_REVISION, metadata["namespace"], manifest, CHILD_MANAGER)
        except AlreadyExists:
            try:
                raw = await self._client.get(CONTROLLER_REVISION, metadata["namespace"], metadata["name"])
            except NotFound:
                return Outcome(Result.STALE)
            ref = seen_by(owner, child_entry("ControllerRevision", raw))
            if ref.controller_uid != owner.uid:
                return Outcome(Result.FOREIGN, ref)
            if ref.terminating:
                return Outcome(Result.TERMINATING)
        self._ledger.book("ControllerRevision", raw)
        return Outcome(Result.CREATED)

    async def delete(self, ref: ObjectRef) -> None:
        """Delete an object of ours, in the background, only while it is the one that was seen."""
        # Gone, or another one stands there already: either way this one is no more.
        with contextlib.suppress(NotFound, Conflict):
            await self._client.delete(CHILDREN[ref.kind], ref.namespace, ref.name, uid=ref.uid)
        self._ledger.forget(ref.kind, ref.uid)

    async def _create(self, manifest: Mapping[str, Any], owner: Owner) -> Outcome:
        kind, metadata = manifest["kind"], manifest["metadata"]
        try:
            raw = await self._client.create(CHILDREN[kind], metadata["namespace"], manifest, CHILD_MANAGER)
        except AlreadyExists:
            return await self._meet(manifest, owner)
        self._book(kind, raw)
        return Outcome(Result.CREATED)

    async def _meet(self, manifest: Mapping[str, Any], owner: Owner) -> Outcome:
        """Look at the object that stands in the way: one of ours that the watch does not show, or a foreign one."""
        kind, metadata = manifest["kind"], manifest["metadata"]
        try:
            raw = await self._client.get(CHILDREN[kind], metadata["namespace"], metadata["name"])
        except NotFound:
            return Outcome(Result.STALE)
        known = child_entry(kind, raw)
        ref = seen_by(owner, known)
        if ref.controller_uid != owner.uid:
            return Outcome(Result.FOREIGN, ref)  # not kept: no watch would tell when it goes
        self._cache.put(kind, raw)
        return await self._bring(manifest, known, owner)

    async def _bring(self, manifest: Mapping[str, Any], known: ChildEntry, owner: Owner) -> Outcome:
        ref = seen_by(owner, known)
        if ref.controller_uid != owner.uid:
            return Outcome(Result.FOREIGN, ref)
        if ref.terminating:
            return Outcome(Result.TERMINATING)
        if self._is_unchanged(manifest, known):
            return Outcome(Result.UNCHANGED)
        try:
            await self._hand_over_patiently(known.ref)
            raw = await self._apply(manifest, known.ref)
        except (Conflict, NotFound, Invalid) as problem:
            if isinstance(problem, Invalid) and UID_FIELD not in problem.fields:
                raise
            await self._refresh(known.ref)
            return Outcome(Result.STALE)
        self._book(known.ref.kind, raw)
        return Outcome(Result.APPLIED)

    async def _apply(self, manifest: Mapping[str, Any], ref: ObjectRef) -> dict[str, Any]:
        """Apply; where list items of others make the outcome invalid, overwrite the lists as a whole.

        An apply adds our items beside theirs: two ports of one name, for example, which no Service may have.
        """
        resource, body = CHILDREN[ref.kind], {**manifest, "metadata": {**manifest["metadata"], "uid": ref.uid}}
        try:
            return await self._client.apply(resource, ref.namespace, body, CHILD_MANAGER)
        except Invalid as problem:
            if UID_FIELD in problem.fields:
                raise
        return await self._client.merge_patch(resource, ref.namespace, ref.name, body, CHILD_MANAGER)

    def _is_unchanged(self, manifest: Mapping[str, Any], known: ChildEntry) -> bool:
        if known.ref.applied_hash != applied_hash(manifest):
            return False
        if known.managed is None:
            return True
        managed = known.managed.unpack()
        if not covers(owned_fields(managed, CHILD_MANAGER), others_fields(managed, CHILD_MANAGER), manifest):
            return False
        self._cache.children[known.ref.kind].replace(known.uid, known.verified())
        return True

    async def _hand_over_patiently(self, ref: ObjectRef) -> None:
        """Hand over; the object's controller may write its status at any moment, so a conflict is tried again."""
        for _ in range(HAND_OVER_ATTEMPTS - 1):
            with contextlib.suppress(Conflict):
                return await self._hand_over(ref)
        return await self._hand_over(ref)

    async def _hand_over(self, ref: ObjectRef) -> None:
        """Turn our ``Update`` entry, left by the create, into an ``Apply`` entry: else an apply removes nothing."""
        raw = await self._client.get(CHILDREN[ref.kind], ref.namespace, ref.name)
        if raw["metadata"]["uid"] != ref.uid:
            raise NotFound(f"{ref.kind} {ref.name} is gone, and another one stands under its name")
        entries = as_apply_entries(raw["metadata"].get("managedFields") or [], CHILD_MANAGER)
        if entries is None:
            return
        operations: list[Mapping[str, Any]] = [
            {"op": "replace", "path": "/metadata/managedFields", "value": entries},
            # A replaced resourceVersion is a precondition: the patch fails with a conflict when the object has moved
            # on, or is another one.
            {"op": "replace", "path": "/metadata/resourceVersion", "value": raw["metadata"]["resourceVersion"]},
        ]
        handed = await self._client.json_patch(CHILDREN[ref.kind], ref.namespace, ref.name, operations, CHILD_MANAGER)
        self._ledger.book(ref.kind, handed)

    async def _refresh(self, ref: ObjectRef) -> None:
        """Read an object whose state was not what the cache said."""
        try:
            raw = await self._client.get(CHILDREN[ref.kind], ref.namespace, ref.name)
        except NotFound:
            self._ledger.forget(ref.kind, ref.uid)
            return
        if raw["metadata"]["uid"] != ref.uid:
            self._ledger.forget(ref.kind, ref.uid)
        self._cache.put(ref.kind, raw)

    def _book(self, kind: str, raw: Mapping[str, Any]) -> None:
        """Book a child that was just written: we own all that we sent."""
        self._ledger.book(kind, raw)
        metadata, shelf = raw["metadata"], self._cache.children[kind]
        entry = shelf.get(metadata["uid"])
        if entry is not None and entry.ref.resource_version == metadata["resourceVersion"]:
            shelf.replace(metadata["uid"], entry.verified())
