"""How long a fleet of services takes to come about, side by side with a client that writes the same bodies.

``python -m benchmarks.apply_fleet [N ...]`` prints a table and writes it into ``docs/performance.md``. Each run has a
control plane of its own, with nodes that kwok plays.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import fleet
from benchmarks.report import publish
from clusters.controlplane import ControlPlane, Options
from clusters.identities import User
from tests.builders.cluster import install_crd
from tests.builders.nodes import node

USER = "operator-under-test"
GPUS_PER_NODE = 100
SETTLE_SECONDS = 15.0
IDLE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Measured:
    """One size of the fleet. Seconds are wall-clock unless they say CPU."""

    services: int
    bare_seconds: float
    bare_cpu_seconds: float
    operator_seconds: float
    ready_seconds: float
    writes: dict[str, int]
    idle_writes: int
    cpu_seconds: float
    idle_cpu_seconds: float
    resident_before_bytes: int
    resident_bytes: int
    children: int


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


async def measure_bare(services: int) -> tuple[float, float]:
    """Return the seconds and CPU seconds of the bare client."""
    async with a_plane(services) as plane, fleet.a_client(plane.kubeconfig) as client:
        before = fleet.usage(os.getpid()).cpu_seconds
        seconds = await fleet.apply_bare(client, services)
        return seconds, fleet.usage(os.getpid()).cpu_seconds - before


async def measure(services: int) -> Measured:
    """Measure one size of the fleet."""
    bare_seconds, bare_cpu = await measure_bare(services)
    log = Path(tempfile.gettempdir()) / f"stoker-bench-{services}.log"
    async with (
        a_plane(services) as plane,
        fleet.an_operator(plane, USER, log) as pid,
        fleet.a_client(plane.kubeconfig) as client,
    ):
        await asyncio.sleep(SETTLE_SECONDS)
        before = fleet.usage(pid)
        start = time.monotonic()
        operator_seconds = await fleet.apply_services(client, services)
        children = await fleet.count_children(client)
        await fleet.until_ready(client, services)
        ready_seconds = time.monotonic() - start
        await asyncio.sleep(SETTLE_SECONDS)
        after, writes = fleet.usage(pid), fleet.writes_by(plane.audit_log, USER)
        await asyncio.sleep(IDLE_SECONDS)
        idle, all_writes = fleet.usage(pid), fleet.writes_by(plane.audit_log, USER)
    return Measured(
        services=services,
        bare_seconds=bare_seconds,
        bare_cpu_seconds=bare_cpu,
        operator_seconds=operator_seconds,
        ready_seconds=ready_seconds,
        writes=writes,
        idle_writes=sum(all_writes.values()) - sum(writes.values()),
        cpu_seconds=after.cpu_seconds - before.cpu_seconds,
        idle_cpu_seconds=idle.cpu_seconds - after.cpu_seconds,
        resident_before_bytes=before.resident_bytes,
        resident_bytes=idle.resident_bytes,
        children=children,
    )


def main() -> None:
    """Measure the sizes that the arguments name, 100 and 500 without any."""
    sizes = [int(text) for text in sys.argv[1:]] or [100, 500]
    publish([asyncio.run(measure(size)) for size in sizes])


if __name__ == "__main__":
    main()
