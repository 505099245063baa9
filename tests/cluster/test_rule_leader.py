"""Two replicas run, one writes; when it goes, the other takes over."""

from __future__ import annotations

import asyncio
import signal
import time
import urllib.request
from datetime import UTC, datetime

from clusters.processes import send
from stoker.kube.lease import LEASE_SECONDS
from stoker.kube.permissions import LEASE_NAME
from stoker.kube.resources import LEASE
from tests.builders.specs import a_spec
from tests.cluster.support import HEALTH_PORTS, SYSTEM, Stage, until

TAKE_OVER_SECONDS = 15.0
SLACK_SECONDS = 5.0
"""What a busy machine may need to notice it; the promise itself is judged by the time that the Lease holds."""

AWAKE_SECONDS = 6.0
"""Less than a Lease lasts: whoever has just woken up may not take it over before that."""


async def holder(stage: Stage) -> str:
    """Return who holds the Lease."""
    lease = await stage.get(LEASE, SYSTEM, LEASE_NAME)
    assert lease is not None
    return str(lease["spec"]["holderIdentity"])


async def acquired(stage: Stage) -> datetime:
    """Return when the Lease's holder took it."""
    lease = await stage.get(LEASE, SYSTEM, LEASE_NAME)
    assert lease is not None
    return datetime.fromisoformat(lease["spec"]["acquireTime"])


async def until_other(stage: Stage, leader: str, seconds: float) -> None:
    """Wait until somebody else holds the Lease."""

    async def other() -> bool:
        held = await holder(stage)
        return bool(held) and not held.startswith(f"{leader}-")

    await until(other, "another leader", seconds)


async def test_a_killed_leader_is_replaced_within_15_s(stage: Stage, team: str) -> None:
    leader = await stage.leader()
    record = next(each for each in stage.plane.processes.records() if each.name == leader)
    killed = datetime.now(UTC)
    send(record, signal.SIGKILL)
    try:
        await until_other(stage, leader, TAKE_OVER_SECONDS + SLACK_SECONDS)
        assert (await acquired(stage) - killed).total_seconds() < TAKE_OVER_SECONDS
        await stage.create(a_spec().manifest("chat", team))
        await stage.until_ready(team)
    finally:
        stage.stop_operator(leader)
        stage.start_operator(leader)


async def test_a_leader_that_is_stopped_politely_hands_over_at_once(stage: Stage) -> None:
    leader = await stage.leader()
    await asyncio.sleep(3.0)  # the replica that was just started has to be a candidate
    stage.stop_operator(leader)
    start = time.monotonic()
    try:
        await until_other(stage, leader, TAKE_OVER_SECONDS)
        assert time.monotonic() - start < LEASE_SECONDS  # nobody had to wait for its end
    finally:
        stage.start_operator(leader)


async def test_a_frozen_leader_does_not_write_when_it_wakes_up(stage: Stage, team: str) -> None:
    await stage.create(a_spec().manifest("chat", team))
    await stage.until_ready(team)
    await stage.until_quiet(3.0, team)
    leader = await stage.leader()
    (other,) = HEALTH_PORTS.keys() - {leader}
    stage.plane.processes.pause(leader)
    try:
        await until_other(stage, leader, TAKE_OVER_SECONDS + SLACK_SECONDS)
        stage.plane.processes.pause(other)  # so that what has to be done stays undone
        stage.plane.kubectl("delete", "service", "chat", f"-n{team}")
        audit = stage.audit()
    finally:
        stage.plane.processes.resume(leader)
    try:
        await asyncio.sleep(AWAKE_SECONDS)
        assert audit.writes() == []
        assert not (await holder(stage)).startswith(f"{leader}-")
    finally:
        stage.plane.processes.resume(other)

    async def healed() -> bool:
        return await stage.child("Service", team) is not None

    await until(healed, "the Service, once somebody leads")
    await stage.until_ready(team)


async def test_both_replicas_say_that_they_are_well(stage: Stage) -> None:
    for port in HEALTH_PORTS.values():

        async def well(port: int = port) -> bool:
            return await asyncio.to_thread(_status, port) == 200

        await until(well, f"health on port {port}")


def _status(port: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
            return int(answer.status)
    except OSError:
        return 0
