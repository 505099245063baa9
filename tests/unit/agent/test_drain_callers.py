"""Several callers of one drain, and whose drain it is: the observer itself, on a clock that the test turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from stoker.agent.listener import Listener
from stoker.agent.observer import Engine, Observer, Rhythm
from stoker.agent.state import Health, Models, Outcome, Phase, Warmup
from stoker.agent.store import Store
from tests.builders.agents import agent_config
from tests.unit.agent.clock import OTHER, UP

HOLD = 60.0


class Watched:
    """An observer whose engine is ready, and what it sees of the socket table."""

    def __init__(self, directory: Path) -> None:
        self.now, self.listener = 1000.0, UP
        rhythm = Rhythm(hold=HOLD, drain_check=0.01)
        # A drain looks at the socket table and at what is known; it asks the engine nothing.
        self.observer = Observer(agent_config(), cast(Engine, None), self, Store(directory), lambda: self.now, rhythm)
        self.ready()

    def read(self) -> Listener:
        """What listens on the engine's port."""
        return self.listener

    def is_bound(self) -> bool:
        """Whether the engine's port is bound."""
        return self.listener.identity is not None

    def ready(self) -> None:
        """The engine that listens now has started, and is warm."""
        self.observer.look()
        for seen in (Models(listed=True), Warmup(done=True), Health(Outcome.WELL, self.now)):
            self.observer.apply(seen)

    async def caller(self) -> asyncio.Task[object]:
        """A caller that waits for the drain."""
        task: asyncio.Task[object] = asyncio.create_task(self.observer.drain())
        await until(lambda: self.observer.draining)
        await asyncio.sleep(0.02)
        return task


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - what is waited for is set by code under test
            await asyncio.sleep(0.01)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


async def leave(task: asyncio.Task[object]) -> None:
    task.cancel()
    await asyncio.wait({task})


async def test_N10_a_caller_that_leaves_does_not_end_the_drain_of_another(watched: Watched) -> None:
    """Else the engine would take traffic again while the hook of its pod still waits."""
    first, second = await watched.caller(), await watched.caller()
    await leave(first)
    watched.now += HOLD + 1
    assert watched.observer.draining
    assert watched.observer.phase is Phase.DRAINING
    await leave(second)
    watched.now += HOLD + 1
    assert not watched.observer.draining


async def test_N10_a_drain_is_over_when_its_engine_has_been_replaced(watched: Watched) -> None:
    """The new engine serves, and takes requests: it would never be quiet, and the old pod's hook would wait for it."""
    caller = await watched.caller()
    watched.listener = OTHER
    watched.ready()
    assert watched.observer.phase is Phase.READY
    done = await asyncio.wait_for(caller, 5)
    assert "the engine was replaced" in str(done)
