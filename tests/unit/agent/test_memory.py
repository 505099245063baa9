"""What an agent remembers over its own restarts: the agent against an engine in another process."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from stoker.agent.config import WarmupConfig
from tests.unit.agent.conftest import Configure
from tests.unit.agent.processes import Engine, agent, until


async def test_a_restarted_agent_resumes_the_same_incarnation(own_engine: Engine, configure: Configure) -> None:
    await own_engine.started()
    config = configure(own_engine, warmup=WarmupConfig(requests=2))
    async with agent(config) as it:
        await until(it.is_ready)
    async with agent(config, watching=False) as it:
        assert (await it.probe("startup"), await it.probe("readiness")) == (200, 200)
        assert it.observer.state.incarnation == 1
    assert len((await own_engine.figures())["paths"]) == 2


async def test_an_engine_restarted_behind_the_agents_back_is_loaded_and_warmed_again(
    own_engine: Engine, configure: Configure
) -> None:
    await own_engine.started()
    config = configure(own_engine)
    async with agent(config) as it:
        await until(it.is_ready)
    own_engine.kill()
    await own_engine.started()
    async with agent(config) as it:
        assert it.observer.state.incarnation == 2
        await until(it.is_ready)
    assert len((await own_engine.figures())["paths"]) == 1


GOOD = {"version": 1, "incarnation": 3, "identity": "x", "started": True, "warm": True}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[" * 10_000,
        b" " * 1_000_000,
        json.dumps({**GOOD, "version": 2}).encode(),
        json.dumps({**GOOD, "incarnation": -1}).encode(),
        json.dumps({**GOOD, "warm": "yes"}).encode(),
        json.dumps({**GOOD, "more": 1}).encode(),
    ],
)
async def test_a_broken_state_file_is_a_fresh_start_with_a_log_line(
    engine: Engine, configure: Configure, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    config = configure(engine)
    (Path(config.state_dir) / "agent-state.json").write_bytes(content)
    with caplog.at_level(logging.WARNING):
        async with agent(config, watching=False) as it:
            assert it.observer.state.incarnation == 1
            assert not it.observer.state.warm
    assert "the stored state cannot be used; starting afresh" in caplog.messages


async def test_a_link_in_place_of_the_state_file_is_not_followed(
    engine: Engine, configure: Configure, tmp_path: Path
) -> None:
    config = configure(engine, state_dir=str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    (tmp_path / "elsewhere").write_text(json.dumps(GOOD))
    (tmp_path / "state" / "agent-state.json").symlink_to(tmp_path / "elsewhere")
    async with agent(config, watching=False) as it:
        assert it.observer.state.incarnation == 1
    assert json.loads((tmp_path / "elsewhere").read_text()) == GOOD


async def test_without_a_state_directory_it_works_and_says_so(
    engine: Engine, configure: Configure, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with agent(configure(engine, state_dir="/proc/nowhere")) as it:
            await until(it.is_ready)
    assert any("the state cannot be stored" in message for message in caplog.messages)
