"""Fixtures of the agent's tests: engines in processes of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker.agent.config import AgentConfig
from tests.builders.agents import SPELLINGS, agent_config
from tests.unit.agent.processes import AgentProcess, Engine, free_port

Configure = Callable[..., AgentConfig]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Builds a configuration for an engine, with a state directory of the test's own."""

    def build(engine: Engine, **changes: Any) -> AgentConfig:
        values: dict[str, Any] = {
            "port": free_port(),
            "engine_port": engine.port,
            "metrics": SPELLINGS[engine.spelling],
            "state_dir": str(tmp_path),
            **changes,
        }
        return agent_config(**values)

    return build


@pytest.fixture(scope="session")
async def shared_engine() -> AsyncIterator[Engine]:
    engine = await Engine().started()
    yield engine
    engine.kill()


@pytest.fixture
async def engine(shared_engine: Engine) -> AsyncIterator[Engine]:
    """An engine that behaves well at the beginning of each test. It must not be killed: that is `own_engine`'s part."""
    await shared_engine.set()
    yield shared_engine
    await shared_engine.set()


@pytest.fixture
def own_engine() -> Iterator[Engine]:
    """An engine of the test's own, not started yet."""
    engine = Engine()
    yield engine
    engine.kill()


@pytest.fixture(params=sorted(SPELLINGS))
def each_engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """An engine of the test's own, of each spelling in turn, not started yet."""
    engine = Engine(spelling=request.param)
    yield engine
    engine.kill()


@pytest.fixture
def run_agent() -> Iterator[Callable[..., AgentProcess]]:
    """Starts agents as a container does, and ends them after the test, however it went."""
    running: list[AgentProcess] = []

    def run(config: AgentConfig, **values: Any) -> AgentProcess:
        process = AgentProcess(config, **values)
        process.start()
        running.append(process)
        return process

    yield run
    for each in running:
        each.kill()
