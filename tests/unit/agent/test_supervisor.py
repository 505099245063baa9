"""The agent as its container runs it: a supervisor that keeps the port, and a worker that can be replaced."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import aiohttp
import pytest

from stoker.agent.config import CONFIG_ENV
from stoker.agent.handover import channel
from stoker.agent.supervisor import BACK_OFF_SECONDS, FIRST_BEAT_SECONDS, SILENCE_SECONDS, Worker
from tests.unit.agent.conftest import Configure
from tests.unit.agent.processes import SOURCES, AgentProcess, Engine, get, until

IMPATIENT = """
import os, sys
os.environ["PYTHONPATH"] = sys.argv[1]
sys.path.insert(0, sys.argv[1])
from stoker.agent import supervisor
supervisor.SILENCE_SECONDS = 3.0
sys.exit(supervisor.main(sys.argv[2:]))
"""

RunAgent = Callable[..., AgentProcess]


async def next_worker(agent: AgentProcess, other_than: int | None = None) -> int:
    async def is_there() -> bool:
        return any(pid != other_than for pid in agent.workers())

    await until(is_there)
    return next(pid for pid in agent.workers() if pid != other_than)


async def readiness_seen(agent: AgentProcess, seen: Counter[str]) -> None:
    """Ask for readiness over and over as the kubelet does: a new connection each time."""
    while True:
        try:
            seen[str(await agent.probe("readiness"))] += 1
        except aiohttp.ClientError as error:
            seen[type(error).__name__] += 1
        await asyncio.sleep(0.05)


async def test_a_worker_killed_three_times_under_load_is_never_noticed(
    own_engine: Engine, configure: Configure, run_agent: RunAgent
) -> None:
    await own_engine.started()
    agent = run_agent(configure(own_engine))
    await until(agent.is_ready)
    await own_engine.set(token_seconds=0.02)
    seen: Counter[str] = Counter()
    prober = asyncio.create_task(readiness_seen(agent, seen))
    streams = asyncio.gather(*(own_engine.chat(tokens=100) for _ in range(20)))
    worker = None
    for _ in range(3):
        worker = await next_worker(agent, other_than=worker)
        os.kill(worker, signal.SIGKILL)
        before = seen["200"]
        await until(lambda: at_least(seen, before + 3))  # noqa: B023 (awaited within the round)
    prober.cancel()
    assert all(text.endswith("[DONE]\n\n") for text in await streams)
    assert seen["503"] == 0
    assert seen["ClientConnectorError"] == 0, "the port was refused while the worker was replaced"
    assert seen.total() - seen["200"] <= 3, "more than the call that each killed worker was answering"
    assert agent.process is not None
    assert agent.process.poll() is None
    document = json.loads((await get(agent.config.port, "/status"))[1])
    assert (document["incarnation"], document["phase"]) == (1, "Ready")


async def at_least(seen: Counter[str], count: int) -> bool:
    return seen["200"] >= count


async def test_a_killed_agent_resumes_and_its_orphan_ends(
    own_engine: Engine, configure: Configure, run_agent: RunAgent
) -> None:
    await own_engine.started()
    agent = run_agent(configure(own_engine))
    await until(agent.is_ready)
    worker = await next_worker(agent)
    agent.stop(signal.SIGKILL)

    async def orphan_is_gone() -> bool:
        with suppress(ProcessLookupError):
            os.kill(worker, 0)
            return False
        return True

    await until(orphan_is_gone)
    agent.start()
    await until(agent.is_ready)
    assert json.loads((await get(agent.config.port, "/status"))[1])["incarnation"] == 1
    assert len((await own_engine.figures())["paths"]) == 1, "warmed up only once"


async def test_sigterm_ends_it_quickly_and_with_success(
    engine: Engine, configure: Configure, run_agent: RunAgent
) -> None:
    agent = run_agent(configure(engine))
    await until(agent.is_ready)
    begun = time.monotonic()
    status, logged = agent.stop()
    assert status == 0
    assert time.monotonic() - begun < 10
    lines = [json.loads(line) for line in logged.splitlines()]
    assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)
    assert "Traceback" not in logged


async def test_a_worker_without_a_sign_of_life_is_replaced(
    engine: Engine, configure: Configure, run_agent: RunAgent
) -> None:
    config = configure(engine)
    agent = run_agent(config, command=(sys.executable, "-c", IMPATIENT, SOURCES, str(config.port)))
    await until(agent.is_ready)
    worker = await next_worker(agent)
    os.kill(worker, signal.SIGSTOP)
    assert await next_worker(agent, other_than=worker) != worker
    await until(agent.is_ready)


async def test_a_worker_that_ignores_the_signal_does_not_hold_the_end_up(
    engine: Engine, configure: Configure, run_agent: RunAgent
) -> None:
    agent = run_agent(configure(engine))
    await until(agent.is_ready)
    os.kill(await next_worker(agent), signal.SIGSTOP)
    status, logged = agent.stop()
    assert status == 0
    assert "no sign of life" not in logged, "it waited for the worker's silence to become too long"


def test_a_worker_is_silent_after_its_bound_and_has_longer_for_the_first_beat() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    ours, theirs = channel()
    try:
        worker = Worker(process, ours, born=100.0)
        assert not worker.is_silent(100.0 + FIRST_BEAT_SECONDS)
        assert worker.is_silent(100.1 + FIRST_BEAT_SECONDS)
        worker.beat_at = 150.0
        assert not worker.is_silent(150.0 + SILENCE_SECONDS)
        assert worker.is_silent(150.1 + SILENCE_SECONDS)
    finally:
        process.wait()
        ours.close()
        theirs.close()


def test_the_first_replacement_comes_at_once_and_later_ones_wait_longer() -> None:
    assert BACK_OFF_SECONDS[0] == 0
    assert list(BACK_OFF_SECONDS) == sorted(BACK_OFF_SECONDS)


# ---- told to stop before it can listen ------------------------------------------------------------------------------
EARLY = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
become = os.execve
def execve(*arguments):
    os.kill(os.getpid(), signal.SIGTERM)
    become(*arguments)
os.execve = execve
sys.argv = ["stoker", "agent"]
from stoker.cli import main
main()
"""
"""The signal comes before the supervisor. The first process of a container would lose it, any other would die of it."""


def test_a_signal_that_comes_before_the_supervisor_stops_it(own_engine: Engine, configure: Configure) -> None:
    environment = {"PATH": os.environ["PATH"], CONFIG_ENV: configure(own_engine).to_json()}
    command = [sys.executable, "-c", EARLY, SOURCES]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


# ---- bad configuration ----------------------------------------------------------------------------------------------


def run_main(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stoker.agent.main"],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("environment", "faults"),
    [
        ({}, ["STOKER_AGENT_CONFIG: document: is not set; the operator renders it into the agent's container"]),
        ({CONFIG_ENV: "{"}, ["STOKER_AGENT_CONFIG: document: invalid JSON"]),
        (
            {CONFIG_ENV: '{"servedName": "", "port": 0}'},
            [f"STOKER_AGENT_CONFIG: {path}: " for path in ("port", "servedName", "startupBudgetSeconds")],
        ),
    ],
)
def test_a_bad_configuration_is_told_one_line_a_fault(environment: dict[str, str], faults: list[str]) -> None:
    result = run_main(environment)
    lines = result.stderr.splitlines()
    assert result.returncode == 1
    assert all(line.startswith(fault) for line, fault in zip(lines, faults, strict=False))
    assert len(lines) >= len(faults)
    assert all(line.startswith("STOKER_AGENT_CONFIG: ") for line in lines)


async def test_a_port_in_use_is_told_in_one_line(engine: Engine, configure: Configure) -> None:
    with socket.create_server(("", 0)) as taken:
        port = taken.getsockname()[1]
        result = run_main({CONFIG_ENV: configure(engine, port=port).to_json()})
    assert result.returncode == 1
    assert result.stderr == f"port {port}: Address already in use; give the agent a free port\n"
