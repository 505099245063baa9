"""A drain outlives the worker that answers it: its callers are handed over, and what it knows is kept."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import aiohttp
import pytest

from stoker.agent.handover import HELD_LIMIT, Handover, Held, channel
from stoker.agent.left import answer_left
from tests.builders.agents import TOKEN
from tests.unit.agent.conftest import Configure
from tests.unit.agent.processes import AgentProcess, Engine, agent, get, until
from tests.unit.agent.test_supervisor import RunAgent, next_worker


async def phase(process: AgentProcess) -> str:
    """What the agent says; empty where its worker died under the question."""
    with suppress(aiohttp.ClientError):
        return str(json.loads((await get(process.config.port, "/status"))[1])["phase"])
    return ""


async def no_readiness(process: AgentProcess, seen: list[int]) -> None:
    """Ask for readiness over and over, as the kubelet does."""
    while True:
        with suppress(aiohttp.ClientError):
            seen.append(await process.probe("readiness"))
        await asyncio.sleep(0.02)


async def test_N10_a_drain_outlives_its_worker_however_often_it_dies(
    own_engine: Engine, configure: Configure, run_agent: RunAgent
) -> None:
    await own_engine.started()
    process = run_agent(configure(own_engine))
    await until(process.is_ready)
    await own_engine.set(token_seconds=0.1)
    streams = asyncio.gather(*(own_engine.chat(tokens=150) for _ in range(5)))
    await asyncio.sleep(0.5)
    drain = asyncio.create_task(get(process.config.port, f"/drain?token={TOKEN}"))

    async def is_draining() -> bool:
        return await phase(process) == "Draining"

    await until(is_draining)
    began = time.monotonic()
    seen: list[int] = []
    prober = asyncio.create_task(no_readiness(process, seen))
    worker = None
    for _ in range(2):
        worker = await next_worker(process, other_than=worker)
        os.kill(worker, signal.SIGKILL)
        await next_worker(process, other_than=worker)
        await until(is_draining)
    assert not streams.done(), "the streams were too short to tell"
    assert not drain.done()
    assert all(text.endswith("[DONE]\n\n") for text in await streams)
    streamed = time.monotonic() - began
    status, reason = await drain
    assert (status, reason.split(" in ")[0]) == (200, "drained")
    assert float(reason.split()[2]) > streamed, "the drain was begun anew"
    await asyncio.sleep(0.5)
    prober.cancel()
    assert set(seen) == {503}


async def test_N10_a_drain_that_was_over_is_still_known_to_the_next_worker(
    own_engine: Engine, configure: Configure, run_agent: RunAgent
) -> None:
    await own_engine.started()
    process = run_agent(configure(own_engine))
    await until(process.is_ready)
    assert (await get(process.config.port, f"/drain?token={TOKEN}"))[1].startswith("drained")
    worker = await next_worker(process)
    os.kill(worker, signal.SIGKILL)
    await next_worker(process, other_than=worker)
    assert (await get(process.config.port, "/readiness"))[0] == 503


# ---- callers whom an earlier worker left ----------------------------------------------------------------------------


@pytest.fixture
def caller() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection: the caller's end and the agent's."""
    theirs, ours = socket.socketpair()
    theirs.settimeout(60)
    yield theirs, ours
    theirs.close()
    ours.close()


async def test_a_caller_that_was_left_gets_a_whole_answer(
    engine: Engine, configure: Configure, caller: tuple[socket.socket, socket.socket]
) -> None:
    theirs, ours = caller
    supervisor, worker = channel()
    with supervisor, worker:
        number = str(os.fstat(ours.fileno()).st_ino).encode()
        async with agent(configure(engine)) as it:
            await until(it.is_ready)
            await answer_left(it.observer, ours, Handover(worker))
        head, _, body = theirs.recv(4096).partition(b"\r\n\r\n")
        assert head.split(b"\r\n")[0] == b"HTTP/1.1 200 OK"
        assert b"Content-Length: %d" % len(body) in head.split(b"\r\n")
        assert body.startswith(b"drained in ")
        assert theirs.recv(1) == b"", "the connection is closed after the answer"
        assert supervisor.recv(64) == b"-" + number


async def test_a_caller_that_was_left_and_goes_away_ends_the_drain(
    engine: Engine, configure: Configure, caller: tuple[socket.socket, socket.socket]
) -> None:
    theirs, ours = caller
    supervisor, worker = channel()
    with supervisor, worker:
        async with agent(configure(engine, settle_seconds=3000), hold=0.5) as it:
            await until(it.is_ready)
            left = asyncio.create_task(answer_left(it.observer, ours, Handover(worker)))
            await until(it.is_draining)
            theirs.close()
            await left
            await until(it.is_ready)


# ---- both ends of the channel ---------------------------------------------------------------------------------------


def descriptors() -> int:
    """How many files this process has open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_connection_is_kept_until_it_is_dropped(caller: tuple[socket.socket, socket.socket]) -> None:
    theirs, ours = caller
    supervisor, worker = channel()
    with supervisor, worker:
        held, handover = Held(), Handover(worker)
        number = handover.keep(ours.fileno())
        assert held.receive(supervisor)
        ours.close()
        theirs.send(b"still open")
        assert os.read(held.connections[number], 64) == b"still open"
        handover.drop(number)
        assert held.receive(supervisor)
        assert (held.connections, theirs.recv(1)) == ({}, b"")


def test_the_connections_that_are_kept_are_bounded_and_none_is_kept_twice() -> None:
    supervisor, worker = channel()
    with supervisor, worker:
        held, handover, before = Held(), Handover(worker), descriptors()
        pairs = [socket.socketpair() for _ in range(HELD_LIMIT + 3)]
        for _, ours in (*pairs, pairs[0]):
            handover.keep(ours.fileno())
            assert held.receive(supervisor)
        assert (len(held.connections), descriptors()) == (HELD_LIMIT, before + 2 * len(pairs) + HELD_LIMIT)
        for number in list(held.connections):
            handover.drop(number)
            held.receive(supervisor)
        for pair in pairs:
            for end in pair:
                end.close()
        assert descriptors() == before


@pytest.mark.parametrize("message", [b".", b"-", b"-x", b"-99999999999999999999", b"+", b"?" * 64])
def test_what_is_no_message_changes_nothing(message: bytes) -> None:
    supervisor, worker = channel()
    with supervisor, worker:
        worker.send(message)
        held = Held()
        assert held.receive(supervisor)
        assert held.connections == {}


def test_the_end_of_the_worker_is_seen_and_that_of_the_supervisor_too() -> None:
    supervisor, worker = channel()
    worker.close()
    assert not Held().receive(supervisor)
    supervisor.close()
    supervisor, worker = channel()
    supervisor.close()
    with pytest.raises(BrokenPipeError):
        Handover(worker).beat()
    worker.close()


def test_a_full_channel_does_not_hold_the_worker_up() -> None:
    supervisor, worker = channel()
    with supervisor, worker:
        for _ in range(100_000):
            Handover(worker).beat()
