"""The agent against an engine in another process: probes, warm-up, incarnations, hangs."""

from __future__ import annotations

import asyncio
import json
import signal
from dataclasses import replace
from typing import Any

import pytest

from stoker.agent.config import EngineMetrics, WarmupConfig
from stoker.agent.state import Page
from tests.builders.agents import reading
from tests.unit.agent.conftest import Configure
from tests.unit.agent.processes import Engine, agent, get, until


async def test_from_nothing_to_ready(each_engine: Engine, configure: Configure) -> None:
    each_engine.load_seconds = 1.0
    async with agent(configure(each_engine, warmup=WarmupConfig(requests=3))) as it:
        assert (await it.probe("startup"), await it.probe("readiness"), await it.probe("liveness")) == (503, 503, 200)
        each_engine.start()
        phases: list[str] = []

        async def ready() -> bool:
            phases.append(it.observer.phase)
            return await it.is_ready()

        await until(ready)
        assert "Starting" in phases
        assert "Loading" in phases or each_engine.spelling == "vllm"
        assert await it.probe("startup") == 200
        assert (await each_engine.figures())["paths"] == ["/v1/chat/completions"] * 3


async def test_no_warm_up_request_means_no_warm_up(engine: Engine, configure: Configure) -> None:
    before = await engine.figures()
    async with agent(configure(engine, warmup=WarmupConfig(requests=0))) as it:
        await until(it.is_ready)
    assert (await engine.figures())["paths"] == before["paths"]


async def test_a_model_without_a_chat_template_is_warmed_by_completions(engine: Engine, configure: Configure) -> None:
    await engine.set(generate="no-chat")
    async with agent(configure(engine)) as it:
        await until(it.is_ready)
    assert (await engine.figures())["paths"][-1] == "/v1/completions"


@pytest.mark.parametrize(
    ("generate", "told"),
    [("error", "request 1 of 1: HTTP 400: cannot do that"), ("empty", "request 1 of 1: the answer has no choices")],
)
async def test_readiness_needs_a_real_answer(engine: Engine, configure: Configure, generate: str, told: str) -> None:
    """kserve#5716: everything looked healthy, and no request could be served."""
    await engine.set(generate=generate)
    async with agent(configure(engine)) as it:

        async def told_why() -> bool:
            return await it.reason("readiness") == f"warming up: {told}"

        await until(told_why)
        assert (await it.probe("readiness"), await it.probe("startup"), await it.probe("liveness")) == (503, 200, 200)
        await engine.set()
        await until(it.is_ready)


async def test_another_model_on_the_port_is_not_a_start(engine: Engine, configure: Configure) -> None:
    await engine.set(model="another")
    async with agent(configure(engine)) as it:

        async def told_why() -> bool:
            return "'m' is not among ['another']" in await it.reason("startup")

        await until(told_why)
        assert await it.probe("startup") == 503


async def test_a_killed_engine_is_not_ready_at_the_next_probe_and_warmed_anew(
    each_engine: Engine, configure: Configure
) -> None:
    await each_engine.started()
    async with agent(configure(each_engine, warmup=WarmupConfig(requests=2))) as it:
        await until(it.is_ready)
        each_engine.kill()
        assert (await it.probe("readiness"), await it.probe("liveness")) == (503, 200)
        await each_engine.started()
        await until(it.is_ready)
        assert it.observer.state.incarnation == 2
        assert (await each_engine.figures())["paths"] == ["/v1/chat/completions"] * 2


async def test_a_restart_that_fell_between_two_looks_is_seen_by_the_probe_itself(
    own_engine: Engine, configure: Configure
) -> None:
    await own_engine.started()
    config = configure(own_engine)
    async with agent(config) as it:
        await until(it.is_ready)
    async with agent(config, watching=False) as it:
        assert await it.is_ready()
        own_engine.kill()
        await own_engine.started()
        assert (await it.probe("readiness"), await it.probe("startup")) == (503, 503)
        assert it.observer.state.incarnation == 2


async def test_a_stopped_process_is_found_dead_though_it_accepts_connections(
    own_engine: Engine, configure: Configure
) -> None:
    await own_engine.started()
    async with agent(configure(own_engine), health_seconds=1.0, silence_seconds=4.0) as it:
        await until(it.is_ready)
        own_engine.signal(signal.SIGSTOP)
        try:
            await until(it.is_dead)
            assert it.observer.phase == "Stuck"
            assert "health path has failed" in await it.reason("liveness")
            assert (await it.drain())[1] == "nothing to drain: the engine is Stuck"
        finally:
            own_engine.signal(signal.SIGCONT)
        await until(it.is_ready)
        assert it.observer.state.incarnation == 1


async def test_a_worker_that_hangs_behind_a_healthy_front_is_found(own_engine: Engine, configure: Configure) -> None:
    """vLLM #11996."""
    await own_engine.started()
    async with agent(configure(own_engine, longest_prefill_seconds=1)) as it:
        await until(it.is_ready)
        await own_engine.set(generate="frozen")
        chat = asyncio.create_task(own_engine.chat())
        await until(it.is_dead)
        assert "requests run and no token or step was counted" in await it.reason("liveness")
        assert await it.probe("readiness") == 503
        await own_engine.set()
        await chat
        await until(it.is_ready)


async def test_a_busy_engine_is_alive_and_ready(engine: Engine, configure: Configure) -> None:
    async with agent(configure(engine, longest_prefill_seconds=4), silence_seconds=1.0) as it:
        await until(it.is_ready)
        await engine.set(token_seconds=0.1)
        chats = asyncio.gather(*(engine.chat(tokens=60) for _ in range(4)))
        while not chats.done():
            assert (await it.probe("liveness"), await it.probe("readiness")) == (200, 200)
            await asyncio.sleep(0.1)
        await chats


@pytest.mark.parametrize("metrics", ["hang", "error", "garbage", "huge", "absent"])
async def test_a_metrics_page_that_cannot_be_had_is_no_evidence(
    engine: Engine, configure: Configure, metrics: str
) -> None:
    await engine.set(metrics=metrics)
    async with agent(configure(engine, longest_prefill_seconds=1, drain_budget_seconds=1), silence_seconds=0.5) as it:
        await until(it.is_ready)
        await asyncio.sleep(1.5)
        assert (await it.probe("liveness"), await it.probe("readiness")) == (200, 200)
        page = (await get(it.port, "/metrics"))[1]
        assert "stoker_engine_ready" in page
        assert "stoker_engine_requests_running" not in page
        assert "the drain budget of 1 s is over" in (await it.drain())[1]


# ---- the agent's own face -------------------------------------------------------------------------------------------


async def test_the_agents_own_probes_do_not_depend_on_the_engine(configure: Configure) -> None:
    async with agent(configure(Engine())) as it:
        assert (await it.probe("agent/live"), await it.probe("agent/started")) == (200, 200)


async def test_an_agent_whose_loops_stand_still_calls_itself_dead(configure: Configure) -> None:
    async with agent(configure(Engine()), watching=False) as it:
        it.observer.beat_at -= 31
        assert await it.probe("agent/live") == 503


async def test_metrics_tell_the_engine_and_the_agent(each_engine: Engine, configure: Configure) -> None:
    await each_engine.started()
    async with agent(configure(each_engine)) as it:
        await until(it.is_ready)

        async def page_is_read() -> bool:
            return 'stoker_engine_generation_tokens_total{model="m"} 8' in (await get(it.port, "/metrics"))[1]

        await until(page_is_read)
        lines = (await get(it.port, "/metrics"))[1].splitlines()
        figures = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        asked = figures.pop('stoker_engine_idle_checks_total{model="m"}', None)
        assert asked == ("0" if each_engine.spelling == "vllm" else None)
        assert {name.split("{")[0]: value for name, value in figures.items()} == {
            "stoker_engine_ready": "1",
            "stoker_engine_warm": "1",
            "stoker_engine_draining": "0",
            "stoker_engine_incarnation": "1",
            "stoker_engine_requests_running": "0",
            "stoker_engine_requests_waiting": "0",
            "stoker_engine_prompt_tokens_total": "0",
            "stoker_engine_generation_tokens_total": "8",
            "stoker_engine_steps_total": "8",
        }
        each_engine.kill()
        assert "stoker_engine_steps_total" not in (await get(it.port, "/metrics"))[1], (
            "figures of an engine that is gone"
        )


async def test_N9_old_figures_are_left_out(engine: Engine, configure: Configure) -> None:
    async with agent(configure(engine), watching=False) as it:
        it.observer.apply(Page(reading(running=2)))
        assert "stoker_engine_requests_running" in (await get(it.port, "/metrics"))[1]
        load = it.observer.state.load
        assert load.read_at is not None
        it.observer.state = replace(it.observer.state, load=replace(load, read_at=load.read_at - 31))
        assert "stoker_engine_requests_running" not in (await get(it.port, "/metrics"))[1]


async def test_an_engine_without_names_of_metrics_is_served_all_the_same(engine: Engine, configure: Configure) -> None:
    async with agent(configure(engine, metrics=EngineMetrics())) as it:
        await until(it.is_ready)
        assert await it.probe("liveness") == 200


async def test_status_is_one_document(engine: Engine, configure: Configure) -> None:
    async with agent(configure(engine)) as it:
        await until(it.is_ready)
        document: dict[str, Any] = json.loads((await get(it.port, "/status"))[1])
        assert document == {
            "protocol": 1,
            "servedName": "m",
            "phase": "Ready",
            "incarnation": 1,
            "started": True,
            "warm": True,
            "draining": False,
            "warmup": "1 requests were answered",
            "reasons": {
                "startup": "the model is listed",
                "readiness": "ready",
                "liveness": "no evidence of a hang",
            },
        }
