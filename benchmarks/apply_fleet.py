"""How long a fleet of services takes to come about, side by side with a client that writes the same bodies.

``python -m benchmarks.apply_fleet [N ...]`` prints a table and writes it into ``docs/performance.md``. Each run has a
control plane of its own, with nodes that kwok plays.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import fleet
from benchmarks.report import publish
from clusters.controlplane import ControlPlane, Options
from clusters.identities import User
from stoker.kube.client import Client
from tests.builders.cluster import install_crd
from tests.builders.nodes import node

USER = "operator-under-test"
GPUS_PER_NODE = 100
SETTLE_SECONDS = 15.0
IDLE_SECONDS = 60.0
CHANGES = 7
CALM_CHECKS = 5
CALM_CPU_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Measured:
    """One size of the fleet. Seconds are wall-clock unless they say CPU."""

    services: int
    bare_seconds: float
    bare_cpu_seconds: float
    bare_change_seconds: float
    operator_seconds: float
    ready_seconds: float
    writes: dict[str, int]
    idle_writes: int
    cpu_seconds: float
    idle_cpu_seconds: float
    resident_before_bytes: int
    resident_bytes: int
    children: int
    change_seconds: float
    restart_writes: int
    restart_lists: int


@asynccontextmanager
async def a_plane(services: int) -> AsyncIterator[ControlPlane]:
    """Start a control plane with room for a fleet."""
    plane = ControlPlane(options=Options(users=(User(USER, ("system:masters",)),)))
    await asyncio.to_thread(plane.start)
    try:
        fleet.prefer(os.getpid(), *(record.pid for record in plane.processes.records()))
        install_crd(plane)
        plane.kubectl("create", "namespace", fleet.NAMESPACE)
        for index in range(services // GPUS_PER_NODE + 1):
            body = node(f"node-{index}", cpu="10000", memory="100Ti", pods="200").gpus(GPUS_PER_NODE).build()
            plane.kubectl("create", "-f", "-", stdin=json.dumps(body))
        await asyncio.sleep(5.0)
        yield plane
    finally:
        await asyncio.to_thread(plane.stop)


@dataclass(frozen=True, slots=True)
class Bare:
    """What the bare client took: for the fleet, and for a change to one of it (median). In seconds."""

    seconds: float
    cpu_seconds: float
    change_seconds: float


async def measure_bare(services: int) -> Bare:
    """Measure the bare client."""
    async with a_plane(services) as plane, fleet.a_client(plane.kubeconfig) as client:
        before = fleet.usage(os.getpid()).cpu_seconds
        seconds = await fleet.apply_bare(client, services)
        cpu_seconds = fleet.usage(os.getpid()).cpu_seconds - before
        await asyncio.sleep(SETTLE_SECONDS)
        return Bare(seconds, cpu_seconds, await median_change(fleet.change_one_bare, client))


async def median_change(change: Callable[[Client, int], Awaitable[float]], client: Client) -> float:
    """Return the median of some changes, each to another service, one after the other."""
    return statistics.median([await change(client, index) for index in range(CHANGES)])


@dataclass(frozen=True, slots=True)
class Restart:
    """What a new process of the operator asks of the API server where everything is as it should be."""

    writes: int
    lists: int


async def measure(services: int) -> Measured:
    """Measure one size of the fleet."""
    bare = await measure_bare(services)
    async with a_plane(services) as plane, fleet.a_client(plane.kubeconfig) as client:
        return await measure_operator(services, bare, plane, client)


async def measure_operator(services: int, bare: Bare, plane: ControlPlane, client: Client) -> Measured:
    """Measure one process while the fleet comes about, idles and changes in part; then the one that takes over."""
    async with fleet.an_operator(plane, USER, log_of(services)) as pid:
        await asyncio.sleep(SETTLE_SECONDS)
        before = fleet.usage(pid)
        start = time.monotonic()
        operator_seconds = await fleet.apply_services(client, services)
        children = await fleet.count_children(client)
        await fleet.until_ready(client, services)
        ready_seconds = time.monotonic() - start
        await asyncio.sleep(SETTLE_SECONDS)
        after, asked = fleet.usage(pid), fleet.requests_by(plane.audit_log, USER)
        await asyncio.sleep(IDLE_SECONDS)
        idle, idle_asked = fleet.usage(pid), fleet.requests_by(plane.audit_log, USER).since(asked)
        change_seconds = await median_change(fleet.change_one, client)
        await fleet.until_ready(client, services)
        await asyncio.sleep(SETTLE_SECONDS)
    restart = await measure_restart(services, plane)
    return Measured(
        services=services,
        bare_seconds=bare.seconds,
        bare_cpu_seconds=bare.cpu_seconds,
        bare_change_seconds=bare.change_seconds,
        operator_seconds=operator_seconds,
        ready_seconds=ready_seconds,
        writes=asked.writes(),
        idle_writes=sum(idle_asked.writes().values()),
        cpu_seconds=after.cpu_seconds - before.cpu_seconds,
        idle_cpu_seconds=idle.cpu_seconds - after.cpu_seconds,
        resident_before_bytes=before.resident_bytes,
        resident_bytes=idle.resident_bytes,
        children=children,
        change_seconds=change_seconds,
        restart_writes=restart.writes,
        restart_lists=restart.lists,
    )


async def measure_restart(services: int, plane: ControlPlane) -> Restart:
    """Measure a second process that takes over from the first."""
    before = fleet.requests_by(plane.audit_log, USER)
    async with fleet.an_operator(plane, USER, log_of(services, "-restart")) as pid:
        await until_calm(pid)
        asked = fleet.requests_by(plane.audit_log, USER).since(before)
    return Restart(sum(asked.writes().values()), asked.most_lists())


async def until_calm(pid: int) -> None:
    """Wait until a process computes next to nothing any more: it has looked at everything."""
    used, calm = fleet.usage(pid).cpu_seconds, 0
    async with asyncio.timeout(fleet.READY_SECONDS):
        while calm < CALM_CHECKS:
            await asyncio.sleep(SETTLE_SECONDS / CALM_CHECKS)
            before, used = used, fleet.usage(pid).cpu_seconds
            calm = calm + 1 if used - before < CALM_CPU_SECONDS else 0


def log_of(services: int, which: str = "") -> Path:
    """Return the file of the log of one process of the operator."""
    return Path(tempfile.gettempdir()) / f"stoker-bench-{services}{which}.log"


def main() -> None:
    """Measure the sizes that the arguments name, 100 and 500 without any."""
    sizes = [int(text) for text in sys.argv[1:]] or [100, 500]
    publish([asyncio.run(measure(size)) for size in sizes])


if __name__ == "__main__":
    main()
