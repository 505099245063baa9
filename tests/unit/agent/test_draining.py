"""The drain of an engine in another process: what holds it, what ends it, and what readiness says meanwhile."""

from __future__ import annotations

import asyncio
import socket
import time

import pytest

from stoker.agent.observer import DRAIN_CALLERS_LIMIT
from tests.builders.agents import TOKEN
from tests.unit.agent.conftest import Configure
from tests.unit.agent.processes import Agent, Engine, agent, until


async def test_N10_a_drain_holds_until_the_open_streams_have_ended(each_engine: Engine, configure: Configure) -> None:
    await each_engine.started()
    async with agent(configure(each_engine)) as it:
        await until(it.is_ready)
        await each_engine.set(token_seconds=0.2)
        streams = asyncio.gather(*(each_engine.chat(tokens=20) for _ in range(20)))
        await asyncio.sleep(0.5)
        drain = asyncio.create_task(it.drain())
        await until(it.is_draining)
        assert (await it.probe("readiness"), await it.probe("liveness")) == (503, 200)
        assert await it.reason("readiness") == "draining"
        texts = await streams
        assert not drain.done()
        status, reason = await drain
        assert (status, reason.split(" in ")[0]) == (200, "drained")
        assert all(text.endswith("[DONE]\n\n") for text in texts)


async def test_N10_clients_that_keep_sending_keep_it_open(engine: Engine, configure: Configure) -> None:
    async with agent(configure(engine, settle_seconds=0, quiet_seconds=2)) as it:
        await until(it.is_ready)
        drain = asyncio.create_task(it.drain())
        for _ in range(25):  # each request is over in a moment: a page sees the engine idle
            await engine.chat(stream=False)
            await asyncio.sleep(0.2)
            assert not drain.done()
        assert (await drain)[0] == 200


async def test_a_drain_ends_at_its_budget(engine: Engine, configure: Configure) -> None:
    async with agent(configure(engine, drain_budget_seconds=3)) as it:
        await until(it.is_ready)
        await engine.set(generate="frozen")
        chat = asyncio.create_task(engine.chat())
        status, reason = await it.drain()
        assert (status, reason) == (200, "the drain budget of 3 s is over (running 1, waiting 0)")
        await engine.set()
        await chat


async def test_a_drain_of_an_engine_that_never_was_ready_returns_at_once(engine: Engine, configure: Configure) -> None:
    await engine.set(generate="error")
    async with agent(configure(engine, settle_seconds=3000)) as it:
        assert (await it.drain())[0] == 200
        assert it.observer.phase in {"Loading", "Warming"}


async def test_a_drain_without_any_engine_returns_at_once(configure: Configure) -> None:
    async with agent(configure(Engine(), settle_seconds=3000)) as it:
        assert await it.drain() == (200, "nothing to drain: the engine is Starting")


async def test_a_drain_holds_until_a_new_engine_hears_sigterm(configure: Configure) -> None:
    async with agent(configure(Engine(), deaf_seconds=2)) as it:
        begun = time.monotonic()
        assert await it.drain() == (200, "nothing to drain: the engine is Starting")
        assert time.monotonic() - begun >= 2


async def test_a_new_engine_that_has_bound_its_port_hears_sigterm(configure: Configure) -> None:
    """vLLM does so after its imports, minutes before it listens."""
    engine = Engine()
    async with agent(configure(engine, deaf_seconds=3000), watch=3.0) as it:
        drain = asyncio.create_task(it.drain())
        await asyncio.sleep(0.5)
        assert not drain.done()
        with socket.socket() as bound:
            bound.bind(("", engine.port))
            await asyncio.sleep(1.0)
            assert not drain.done(), "some make their handler just after"
            assert await drain == (200, "nothing to drain: the engine is Starting")


async def test_a_new_engine_that_listens_hears_sigterm(own_engine: Engine, configure: Configure) -> None:
    async with agent(configure(own_engine, deaf_seconds=3000)) as it:
        drain = asyncio.create_task(it.drain())
        await asyncio.sleep(0.5)
        assert not drain.done()
        await own_engine.started()
        assert (await drain)[0] == 200


async def one_caller_too_many_is_sent_away(it: Agent) -> None:
    """As many callers as are let in wait, and the next one does not; afterwards none waits."""
    callers = [asyncio.create_task(it.drain()) for _ in range(DRAIN_CALLERS_LIMIT + 1)]
    done, waiting = await asyncio.wait(callers, return_when=asyncio.FIRST_COMPLETED)
    assert [task.result() for task in done] == [(503, "too many callers wait for the drain")]
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_who_waits_for_a_new_engine_counts_as_a_caller(configure: Configure) -> None:
    async with agent(configure(Engine(), deaf_seconds=3000)) as it:
        await one_caller_too_many_is_sent_away(it)


async def test_a_drain_ends_when_the_engine_dies(own_engine: Engine, configure: Configure) -> None:
    await own_engine.started()
    async with agent(configure(own_engine, settle_seconds=3000)) as it:
        await until(it.is_ready)
        drain = asyncio.create_task(it.drain())
        await until(it.is_draining)
        own_engine.kill()
        assert await drain == (200, "nothing to drain: the engine is Dead")


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", "%00"])
async def test_a_wrong_token_drains_nothing(engine: Engine, configure: Configure, token: str) -> None:
    async with agent(configure(engine)) as it:
        await until(it.is_ready)
        assert await it.drain(token) == (403, "wrong token")
        assert await it.is_ready()


async def test_the_drain_ends_with_its_caller_and_the_engine_lives_on(engine: Engine, configure: Configure) -> None:
    async with agent(configure(engine, settle_seconds=3000), hold=0.5) as it:
        await until(it.is_ready)
        caller = asyncio.create_task(it.drain())
        await until(it.is_unready)
        caller.cancel()
        await until(it.is_ready)
        assert not it.observer.draining


async def test_callers_share_one_drain(engine: Engine, configure: Configure) -> None:
    async with agent(configure(engine, settle_seconds=2)) as it:
        await until(it.is_ready)
        first = asyncio.create_task(it.drain())
        await until(it.is_draining)
        others = [asyncio.create_task(it.drain()) for _ in range(3)]
        await asyncio.sleep(1.0)
        first.cancel()
        results = await asyncio.gather(*others)
        assert len({status for status, _ in results}) == 1
        (reason,) = {reason for _, reason in results}
        assert reason.startswith("drained in ")
        assert float(reason.split()[2]) < 60


async def test_the_callers_of_a_drain_are_bounded(engine: Engine, configure: Configure) -> None:
    async with agent(configure(engine, settle_seconds=3000), hold=0.5) as it:
        await until(it.is_ready)
        await one_caller_too_many_is_sent_away(it)
        await until(it.is_ready)


async def test_N10_an_engine_that_was_drained_takes_no_traffic_before_it_is_stopped(
    own_engine: Engine, configure: Configure
) -> None:
    """Between the end of the hook and SIGTERM a probe may come; a new engine is another matter."""
    await own_engine.started()
    async with agent(configure(own_engine)) as it:
        await until(it.is_ready)
        status, reason = await it.drain()
        assert (status, reason.split(" in ")[0]) == (200, "drained")
        assert (await it.probe("readiness"), await it.reason("readiness")) == (503, "draining")
        assert await it.probe("liveness") == 200
        own_engine.kill()
        await own_engine.started()
        await until(it.is_ready)


async def test_an_engine_that_lives_on_long_after_its_drain_serves_again(engine: Engine, configure: Configure) -> None:
    async with agent(configure(engine), hold=2.0) as it:
        await until(it.is_ready)
        assert (await it.drain())[1].startswith("drained in ")
        assert await it.is_unready()
        await until(it.is_ready)


async def test_a_second_drain_after_the_first_settles_anew(engine: Engine, configure: Configure) -> None:
    """One that was an accident must not shorten the one that counts."""
    async with agent(configure(engine, settle_seconds=2)) as it:
        await until(it.is_ready)
        for _ in range(2):
            began = time.monotonic()
            assert (await it.drain())[1].startswith("drained in ")
            assert time.monotonic() - began >= 3.0, "less than settling and quiet take"
