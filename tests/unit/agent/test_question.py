"""Questions to an idle engine: when they are asked, what they cost, and what their silence means."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from stoker.agent.engine import Answer
from stoker.agent.question import ask
from stoker.agent.state import Page, Question
from tests.builders.agents import VLLM, reading
from tests.unit.agent.conftest import Configure
from tests.unit.agent.processes import Agent, Engine, agent, get, until
from tests.unit.agent.test_parts import Recorder

COMPLETION, CHAT = "/v1/completions", "/v1/chat/completions"


async def test_one_token_is_asked_for_and_any_answer_will_do() -> None:
    recorder = Recorder(Answer(503, b"busy"))
    assert await ask(recorder, "m", 9, lambda: 7.0) == Question(7.0, silent=False)
    ((path, body),) = recorder.sent
    assert (path, body) == (COMPLETION, {"model": "m", "max_tokens": 1, "temperature": 0, "prompt": "1"})


async def test_where_there_are_no_completions_a_chat_is_asked_for() -> None:
    recorder = Recorder(Answer(404, b""), Answer(200, b""))
    await ask(recorder, "m", 9, lambda: 7.0)
    assert [path for path, _ in recorder.sent] == [COMPLETION, CHAT]


@pytest.mark.parametrize(("fault", "silent"), [(TimeoutError(), True), (ConnectionRefusedError("refused"), False)])
async def test_only_silence_is_silence(fault: Exception, silent: bool) -> None:
    assert await ask(Recorder(fault), "m", 9, lambda: 7.0) == Question(7.0, silent)


async def test_an_engine_that_stops_while_idle_is_found(own_engine: Engine, configure: Configure) -> None:
    """No request runs, the health path answers, and the metrics page is as it was."""
    await own_engine.started()
    async with agent(configure(own_engine, longest_prefill_seconds=2), idle=0.5) as it:
        await until(it.is_ready)
        await own_engine.set(generate="mute")
        await until(it.is_dead)
        assert "no request ran and one of a single token has not been answered" in await it.reason("liveness")
        assert (await it.probe("readiness"), (await it.drain())[1]) == (503, "nothing to drain: the engine is Stuck")
        await own_engine.set()
        await until(it.is_ready)
        assert await it.probe("liveness") == 200


async def questions(engine: Engine, seconds: float) -> int:
    """How many requests but the warm-up an engine is asked in so long."""
    before = len((await engine.figures())["paths"])
    await asyncio.sleep(seconds)
    return len((await engine.figures())["paths"]) - before


async def test_an_idle_engine_is_asked_calmly_and_its_metrics_say_how_often(
    own_engine: Engine, configure: Configure
) -> None:
    await own_engine.started()
    async with agent(configure(own_engine), idle=2.0) as it:
        await until(it.is_ready)
        first, began = it.observer.idle_checks, time.monotonic()

        async def asked_thrice() -> bool:
            return it.observer.idle_checks >= first + 3

        await until(asked_thrice)
        assert time.monotonic() - began > 4.0, "two of the pauses are whole ones"
        page = (await get(it.port, "/metrics"))[1]
        assert f'stoker_engine_idle_checks_total{{model="m"}} {it.observer.idle_checks}' in page


async def test_an_engine_whose_page_shows_that_it_lives_is_not_asked(own_engine: Engine, configure: Configure) -> None:
    await own_engine.started()
    one_process = VLLM.model_copy(update={"served_apart": False})
    async with agent(configure(own_engine, metrics=one_process), idle=0.1) as it:
        await until(it.is_ready)
        assert await questions(own_engine, 2.0) == 0
        assert "idle_checks" not in (await get(it.port, "/metrics"))[1]


async def test_an_engine_at_work_is_not_asked(own_engine: Engine, configure: Configure) -> None:
    await own_engine.started()
    async with agent(configure(own_engine), idle=0.5) as it:
        await until(it.is_ready)
        await own_engine.set(token_seconds=0.05)
        chat = asyncio.create_task(own_engine.chat(tokens=80))
        await until(it_runs(it))
        assert await questions(own_engine, 2.0) == 0
        await chat


def it_runs(it: Agent) -> Any:
    """Whether the agent has read that a request runs."""

    async def runs() -> bool:
        return bool(it.observer.state.load.reading.running)

    return runs


async def test_N10_a_drain_lets_go_of_a_question_and_asks_none(own_engine: Engine, configure: Configure) -> None:
    await own_engine.started()
    async with agent(configure(own_engine), idle=0.5) as it:
        await until(it.is_ready)
        await own_engine.set(generate="frozen")

        async def is_asked() -> bool:
            return bool((await own_engine.figures())["running"])

        await until(is_asked)
        drain = asyncio.create_task(it.drain())
        await until(it.is_draining)
        assert (await drain)[1].startswith("drained in "), "its own question held the drain"
        await own_engine.set()
        assert await questions(own_engine, 2.0) == 0


async def test_a_question_to_an_engine_that_is_gone_is_not_held_against_the_next(
    own_engine: Engine, configure: Configure
) -> None:
    await own_engine.started()
    async with agent(configure(own_engine, longest_prefill_seconds=3), idle=0.5) as it:
        await until(it.is_ready)
        await own_engine.set(generate="mute")
        await until(it_is_asked(it))
        own_engine.kill()
        await own_engine.started()
        await until(it.is_ready)
        it.observer.apply(Page(reading()))
        assert it.observer.state.mute is None
        assert await it.probe("liveness") == 200


def it_is_asked(it: Agent) -> Any:
    """Whether one more question than now has been asked."""
    before = it.observer.idle_checks

    async def asked() -> bool:
        return it.observer.idle_checks > before

    return asked
