"""Who of several operators writes: a Lease in the cluster, and a deadline on our own clock.

The holder renews every 2 s and counts as leader for 6 s after the start of its last successful renewal, measured on a
monotonic clock. The others take the Lease over 10 s after they have last seen it change, measured on theirs. The 4 s
between the two bound what a holder may still have on its way when it is replaced. Source of the protocol: client-go's
leaderelection package.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum, auto
from typing import Any

from stoker.kube.client import Client
from stoker.kube.errors import AlreadyExists, ApiError, Conflict, NotFound, NotLeader
from stoker.kube.resources import LEASE

LEASE_SECONDS = 10
RENEW_DEADLINE_SECONDS = 6.0
RETRY_SECONDS = 2.0
LEASE_MANAGER = "stoker-lease"

log = logging.getLogger("stoker.lease")


class Step(Enum):
    """What to do about the Lease as it was last seen."""

    CREATE = auto()
    RENEW = auto()
    TAKE_OVER = auto()
    WAIT = auto()


@dataclass(slots=True)
class LeaseState:
    """What one candidate knows. No clock of its own: ``now`` is in seconds of a monotonic clock."""

    identity: str
    renewed_at: float | None = None
    """Start of our last successful renewal; None while somebody else holds the Lease."""
    seen: tuple[str, str] | None = None
    """Holder and renew time as last seen."""
    seen_at: float = 0.0

    def observe(self, lease: Mapping[str, Any] | None, now: float) -> Step:
        """Take note of the stored Lease and say what to do."""
        if lease is None:
            self.renewed_at = None
            return Step.CREATE
        spec = lease.get("spec") or {}
        seen = (str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or ""))
        if seen != self.seen:
            self.seen, self.seen_at = seen, now
        if seen[0] == self.identity:
            return Step.RENEW
        self.renewed_at = None
        duration = float(spec.get("leaseDurationSeconds") or LEASE_SECONDS)
        return Step.TAKE_OVER if not seen[0] or now - self.seen_at > duration else Step.WAIT

    def renewed(self, started_at: float) -> None:
        """Note a renewal that succeeded."""
        self.renewed_at = started_at

    def lost(self) -> None:
        """Note that somebody else holds the Lease, or that it was given back."""
        self.renewed_at = None

    def leads(self, now: float) -> bool:
        """Return whether we may write now."""
        return self.renewed_at is not None and now - self.renewed_at < RENEW_DEADLINE_SECONDS

    def remaining_seconds(self, now: float) -> float:
        """Return how long a write may take from now on. Raises NotLeader when none may begin."""
        if self.renewed_at is None or not self.leads(now):
            raise NotLeader("this operator does not hold the Lease")
        return self.renewed_at + LEASE_SECONDS - now


class Elector:
    """Keeps one candidate in the election, and tells when leadership begins and ends."""

    def __init__(self, client: Client, namespace: str, name: str, identity: str) -> None:
        self._client = client
        self._namespace, self._name = namespace, name
        self.state = LeaseState(identity)
        self.on_change: Callable[[bool], None] = lambda leads: None
        self.led = False
        """Whether ``on_change`` was last told that leadership has begun. A renewal that is late does not end it:
        nothing may be written for a while, and what happens in that while must not be missed."""

    def leads(self) -> bool:
        """Return whether we may write now."""
        return self.state.leads(_now())

    def remaining_seconds(self) -> float:
        """Return how long a write may take. Raises NotLeader. This is the gate of the client."""
        return self.state.remaining_seconds(_now())

    async def run(self) -> None:
        """Take part in the election until cancelled."""
        while True:
            try:
                async with asyncio.timeout(RENEW_DEADLINE_SECONDS - RETRY_SECONDS):
                    await self.step()
            except (ApiError, TimeoutError) as problem:
                log.warning("the Lease could not be renewed", extra={"problem": str(problem) or "timeout"})
            self._announce()
            await asyncio.sleep(RETRY_SECONDS)

    async def step(self) -> None:
        """Read the Lease once and do what it asks for. Raises ApiError."""
        started = _now()
        lease = await self._read()
        action = self.state.observe(lease, _now())
        if action is Step.WAIT:
            return
        try:
            await self._claim(lease, action)
        except (AlreadyExists, Conflict):
            self.state.lost()
            return
        self.state.renewed(started)

    async def release(self) -> None:
        """Give the Lease back, if it is ours, so that another candidate need not wait. Never raises."""
        if self.state.renewed_at is None:
            return
        self.state.lost()
        self._announce()
        try:
            async with asyncio.timeout(2.0):
                lease = await self._read()
                if lease is not None and lease["spec"].get("holderIdentity") == self.state.identity:
                    spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": _timestamp()}
                    await self._client.update(LEASE, self._namespace, {**lease, "spec": spec}, LEASE_MANAGER)
        except (ApiError, TimeoutError) as problem:
            log.warning("the Lease could not be given back", extra={"problem": str(problem) or "timeout"})

    def _announce(self) -> None:
        leads = self.leads()
        if leads != self.led:
            self.led = leads
            log.info("leadership begins" if leads else "leadership ends", extra={"identity": self.state.identity})
            self.on_change(leads)

    async def _read(self) -> dict[str, Any] | None:
        try:
            return await self._client.get(LEASE, self._namespace, self._name)
        except NotFound:
            return None

    async def _claim(self, lease: Mapping[str, Any] | None, action: Step) -> None:
        now = _timestamp()
        old = (lease or {}).get("spec") or {}
        spec = {
            "holderIdentity": self.state.identity,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": now,
            "acquireTime": old.get("acquireTime", now) if action is Step.RENEW else now,
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + (action is Step.TAKE_OVER),
        }
        if lease is None:
            metadata = {"name": self._name, "namespace": self._namespace}
            body = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}
            await self._client.create(LEASE, self._namespace, body, LEASE_MANAGER)
        else:
            await self._client.update(LEASE, self._namespace, {**lease, "spec": spec}, LEASE_MANAGER)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _timestamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
