"""The objects that services name, read one by one in the service's own namespace (N20), and read again in time.

Secrets are neither listed nor watched. What is kept of one is a salted digest of the keys that its variables take; what
only has to exist is asked for its metadata alone.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import logging
import random
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stoker.kube.cache import ServiceKey
from stoker.kube.client import Client
from stoker.kube.errors import ApiError, NotFound
from stoker.kube.naming import Named, named_objects
from stoker.kube.queue import WorkQueue
from stoker.kube.resources import REFERENCES
from stoker.plan.snapshot import ReferenceView

FRESH_SECONDS = 15.0
"""How long what was read serves further reconciles of the same generation."""

MISSING_SECONDS = 5.0
"""The same where an object is missing or could not be read: somebody may be about to create it."""

AGAIN_SECONDS = 60.0
"""How often it is read again without any reason."""

DIGEST_ROUNDS = 10_000
MAX_DIGESTS = 20_000
READERS = 4

log = logging.getLogger("stoker.references")


@dataclass(frozen=True, slots=True)
class _Read:
    generation: int
    at: float
    views: tuple[ReferenceView, ...]
    named: tuple[Named, ...]
    uid: str

    @property
    def fresh_seconds(self) -> float:
        return FRESH_SECONDS if all(view.exists for view in self.views) else MISSING_SECONDS


class ReferenceReader:
    """Reads and remembers the references of services. ``on_change`` is told of a service whose references changed.

    Only who leads reads: the others have no use for what they would read, and no claim to Secrets.
    """

    def __init__(
        self, client: Client, on_change: Callable[[ServiceKey], None], leads: Callable[[], bool] = lambda: True
    ) -> None:
        self._client = client
        self._on_change = on_change
        self._leads = leads
        self._read: dict[ServiceKey, _Read] = {}
        self._digests: OrderedDict[tuple[object, ...], str] = OrderedDict()
        self._again = WorkQueue()

    async def of(self, key: ServiceKey, service: Mapping[str, Any]) -> tuple[ReferenceView, ...]:
        """Return the references of a service, at most ``FRESH_SECONDS`` old, or ``MISSING_SECONDS``."""
        generation, uid = service["metadata"].get("generation", 0), service["metadata"]["uid"]
        known = self._read.get(key)
        is_same = known is not None and (known.uid, known.generation) == (uid, generation)
        if known and is_same and _now() - known.at < known.fresh_seconds:
            return known.views
        named = named_objects(service.get("spec") or {})
        if not named:
            self.forget(key)
            return ()
        return await self._read_now(key, named, uid, generation)

    def forget(self, key: ServiceKey) -> None:
        """Forget a service that is gone."""
        self._read.pop(key, None)

    async def run(self) -> None:
        """Read everything again from time to time, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(READERS):
                group.create_task(self._reader())

    async def _reader(self) -> None:
        while True:
            key = await self._again.take()
            try:
                await self._read_again(key)  # type: ignore[arg-type]
            except Exception:
                log.exception("references could not be read again", extra={"key": key})
            finally:
                self._again.done(key)

    async def _read_again(self, key: ServiceKey) -> None:
        known = self._read.get(key)
        if known is None:
            return
        if not self._leads():
            self.forget(key)  # read anew for the first reconcile when the lead comes back
            return
        views = await self._views(key, known.named, known.uid)
        if self._read.get(key) is not known:
            return  # the service went meanwhile, or was read for its new spec
        self._keep(key, replace(known, at=_now(), views=views))
        if views != known.views:
            self._on_change(key)

    async def _read_now(
        self, key: ServiceKey, named: tuple[Named, ...], uid: str, generation: int
    ) -> tuple[ReferenceView, ...]:
        views = await self._views(key, named, uid)
        self._keep(key, _Read(generation, _now(), views, named, uid))
        return views

    async def _views(self, key: ServiceKey, named: tuple[Named, ...], uid: str) -> tuple[ReferenceView, ...]:
        return tuple([await self._view(each, key[0], uid) for each in named])

    def _keep(self, key: ServiceKey, read: _Read) -> None:
        self._read[key] = read
        self._again.add_after(key, AGAIN_SECONDS * random.uniform(0.8, 1.2))  # noqa: S311 - spreads load, no secret

    async def _view(self, named: Named, namespace: str, service_uid: str) -> ReferenceView:
        resource = REFERENCES[named.kind]
        read = self._client.get if named.needs_content else self._client.get_metadata
        exists: bool | None = True
        raw: Mapping[str, Any] = {}
        problem = None
        try:
            raw = await read(resource, namespace, named.name)
        except NotFound:
            exists = False
        except ApiError as error:
            exists, problem = None, error.message
        return ReferenceView(
            kind=named.kind,
            name=named.name,
            field_path=named.field_path,
            exists=exists,
            digest=self._digest(named, raw, service_uid) if raw and named.keys else None,
            data=_texts(raw) if raw and named.reads and named.kind == "ConfigMap" else None,
            problem=problem,
            optional=named.optional,
        )

    def _digest(self, named: Named, raw: Mapping[str, Any], service_uid: str) -> str:
        version = (service_uid, named.kind, named.name, named.keys, raw["metadata"]["resourceVersion"])
        known = self._digests.get(version)
        if known is None:
            known = salted_digest(raw, named.keys, f"{service_uid}/{named.kind}/{named.name}")
            self._digests[version] = known
            if len(self._digests) > MAX_DIGESTS:
                self._digests.popitem(last=False)
        return known


def salted_digest(raw: Mapping[str, Any], keys: tuple[str, ...], salt: str) -> str:
    """Return a digest of some keys of a Secret or ConfigMap.

    It is slow and salted: revisions can be read by more people than Secrets, and a short secret could otherwise be
    found by trying.
    """
    content = b"".join(_framed(key, _value(raw, key)) for key in keys)
    return hashlib.pbkdf2_hmac("sha256", content, salt.encode(), DIGEST_ROUNDS, 16).hex()


def _framed(key: str, value: bytes | None) -> bytes:
    size = -1 if value is None else len(value)
    return f"{len(key)}:{key}={size}:".encode() + (value or b"")


def _value(raw: Mapping[str, Any], key: str) -> bytes | None:
    data, binary = raw.get("data") or {}, raw.get("binaryData") or {}
    if key in binary:
        return str(binary[key]).encode()
    if key not in data:
        return None
    try:
        return base64.b64decode(data[key]) if raw.get("kind") == "Secret" else str(data[key]).encode()
    except (binascii.Error, ValueError):
        return str(data[key]).encode()


def _texts(raw: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in (raw.get("data") or {}).items()}


def _now() -> float:
    return asyncio.get_running_loop().time()
