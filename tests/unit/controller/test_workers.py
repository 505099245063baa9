"""The worker set: one slow or failing key delays no other (N21)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from stoker.controller import workers
from stoker.controller.workers import RESULTS, Workers
from stoker.kube.cache import ServiceKey
from stoker.kube.errors import Forbidden, NotLeader, Unavailable
from stoker.kube.queue import QueueCore, WorkQueue

Reconcile = Callable[[ServiceKey], Awaitable[float | None]]
Start = Callable[[Reconcile, int], WorkQueue]


@pytest.fixture
async def start(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    monkeypatch.setattr(workers, "SLOW_SECONDS", 0.05)
    started: list[Workers] = []

    def begin(reconcile: Reconcile, slots: int) -> WorkQueue:
        queue = WorkQueue(QueueCore(jitter=lambda: 0.0))
        started.append(Workers(queue, reconcile, slots, lambda result, seconds: None))
        started[-1].start()
        return queue

    yield begin
    for each in started:
        await each.stop()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - what is waited for is set by code under test
            await asyncio.sleep(0.01)


async def test_N21_a_key_that_hangs_gives_its_slot_to_others(start: Start) -> None:
    done: list[str] = []

    async def reconcile(key: ServiceKey) -> float | None:
        if key[1].startswith("slow"):
            await asyncio.Event().wait()
        done.append(key[1])
        return None

    queue = start(reconcile, 2)
    for name in ("slow1", "slow2", "slow3", "fast1", "fast2"):
        queue.add(("ns", name))
    await until(lambda: done == ["fast1", "fast2"])


async def test_N21_a_key_that_fails_backs_off_alone_and_the_workers_live_on(start: Start) -> None:
    tries: dict[str, int] = {}

    async def reconcile(key: ServiceKey) -> float | None:
        tries[key[1]] = tries.get(key[1], 0) + 1
        if key[1] == "bug":
            raise ZeroDivisionError
        if key[1] == "refused":
            raise Forbidden("no")
        return None

    queue = start(reconcile, 1)
    for name in ("bug", "refused", "good"):
        queue.add(("ns", name))
    await until(lambda: tries.get("good") == 1)
    assert queue.core.delayed == 2
    await until(lambda: tries["bug"] >= 2)
    assert tries["good"] == 1


async def test_an_overloaded_server_is_left_alone_for_as_long_as_it_asks(start: Start) -> None:
    tries: list[float] = []

    async def reconcile(key: ServiceKey) -> float | None:
        tries.append(asyncio.get_running_loop().time())
        raise Unavailable("too many requests", code=429, retry_after_seconds=1.5)

    start(reconcile, 1).add(("ns", "a"))
    await until(lambda: len(tries) == 2)
    assert tries[1] - tries[0] >= 1.5


async def test_N21_a_key_that_failed_the_last_time_holds_no_slot_from_the_start(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "SLOW_SECONDS", 3600.0)
    seen: list[str] = []

    async def reconcile(key: ServiceKey) -> float | None:
        seen.append(key[1])
        if seen.count("bad") == 1 and key[1] == "bad":
            raise Forbidden("no")
        if key[1] == "bad":
            await asyncio.Event().wait()
        return None

    queue = start(reconcile, 1)
    queue.add(("ns", "bad"))
    await until(lambda: seen == ["bad", "bad"])
    queue.add(("ns", "good"))
    await until(lambda: seen == ["bad", "bad", "good"])


async def test_a_reconcile_that_takes_too_long_is_ended_and_tried_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "RECONCILE_SECONDS", 0.1)
    tries: list[int] = []

    async def reconcile(key: ServiceKey) -> float | None:
        tries.append(1)
        await asyncio.Event().wait()
        return None

    start(reconcile, 1).add(("ns", "a"))
    await until(lambda: len(tries) == 2)


async def test_what_asks_to_be_looked_at_again_is(start: Start) -> None:
    tries: list[int] = []

    async def reconcile(key: ServiceKey) -> float | None:
        tries.append(1)
        return 0.05

    start(reconcile, 1).add(("ns", "a"))
    await until(lambda: len(tries) >= 3)


async def test_no_key_is_worked_on_twice_at_the_same_time(start: Start) -> None:
    at_once = peak = runs = 0

    async def reconcile(key: ServiceKey) -> float | None:
        nonlocal at_once, peak, runs
        at_once, runs = at_once + 1, runs + 1
        peak = max(peak, at_once)
        await asyncio.sleep(0.02)
        at_once -= 1
        return None

    queue = start(reconcile, 8)
    for _ in range(5):
        queue.add(("ns", "a"))
        await asyncio.sleep(0.01)
    await until(lambda: runs >= 2 and at_once == 0)
    assert peak == 1


async def test_a_lost_and_regained_lead_costs_no_slot_and_no_key() -> None:
    done: list[str] = []

    async def reconcile(key: ServiceKey) -> float | None:
        done.append(key[1])
        return None

    queue = WorkQueue(QueueCore(jitter=lambda: 0.0))
    held = Workers(queue, reconcile, 1, lambda result, seconds: None)
    for _ in range(3):
        held.start()
        await asyncio.sleep(0.01)  # the dispatcher waits for a key now
        await held.stop()
    held.start()
    await asyncio.sleep(0.01)
    queue.add(("ns", "a"))
    await until(lambda: done == ["a"])
    await held.stop()


async def test_a_key_whose_reconcile_never_began_is_worked_on_by_the_next_lead() -> None:
    done: list[str] = []

    async def reconcile(key: ServiceKey) -> float | None:
        done.append(key[1])
        return None

    queue = WorkQueue(QueueCore(jitter=lambda: 0.0))
    held = Workers(queue, reconcile, 1, lambda result, seconds: None)
    queue.add(("ns", "a"))
    held.start()
    while not held.running:  # noqa: ASYNC110 - what is waited for is set by code under test
        await asyncio.sleep(0)  # the task exists, and has not run yet
    await held.stop()
    assert done == []
    held.start()
    queue.add(("ns", "a"))
    await until(lambda: done == ["a"])
    await held.stop()


async def test_a_lead_that_ends_is_no_failure_of_a_service() -> None:
    results: list[str] = []

    async def reconcile(key: ServiceKey) -> float | None:
        if key[1] == "held back":
            raise NotLeader("this operator does not hold the Lease")
        await asyncio.Event().wait()
        return None

    queue = WorkQueue(QueueCore(jitter=lambda: 0.0))
    held = Workers(queue, reconcile, 2, lambda result, seconds: results.append(result))
    held.start()
    queue.add(("ns", "held back"))
    await until(lambda: results == ["not_leader"])
    assert queue.core.failures(("ns", "held back")) == 0
    assert queue.core.delayed == 1
    queue.add(("ns", "runs"))
    await until(lambda: held.running == 1)
    await held.stop()
    await until(lambda: results == ["not_leader", "cancelled"])
    assert set(results) <= set(RESULTS)


@pytest.mark.parametrize("end", ["well", "badly"])
async def test_N21_every_reconcile_gives_its_room_back(start: Start, monkeypatch: pytest.MonkeyPatch, end: str) -> None:
    """Else the operator would stand still for good after as many reconciles as it has room for."""
    monkeypatch.setattr(workers, "MAX_RUNNING", 2)
    seen: list[str] = []

    async def reconcile(key: ServiceKey) -> float | None:
        seen.append(key[1])
        if end == "badly":
            raise Forbidden("no")
        return None

    queue = start(reconcile, 2)
    names = [str(number) for number in range(5)]
    for name in names:
        queue.add(("ns", name))
    await until(lambda: set(seen) == set(names))


async def test_N21_how_many_run_at_the_same_time_is_bounded(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow ones give their slot back, and would pile up without end."""
    monkeypatch.setattr(workers, "MAX_RUNNING", 3)
    monkeypatch.setattr(workers, "SLOW_SECONDS", 0.0)
    seen: list[str] = []

    async def reconcile(key: ServiceKey) -> float | None:
        seen.append(key[1])
        await asyncio.Event().wait()
        return None

    queue = start(reconcile, 1)
    for number in range(6):
        queue.add(("ns", str(number)))
    await until(lambda: len(seen) == 3)
    await asyncio.sleep(0.1)
    assert len(seen) == 3
