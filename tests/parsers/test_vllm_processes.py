"""vLLM's own processes, one by one, stopped and killed under the eyes of the agent; no cluster is needed.

vLLM runs an API server, a core (`VLLM::EngineCore`) and, on the CPU and with several GPUs, workers (`VLLM::Worker`).
The node tier stops the server, stops the core under load and kills a worker; the rest is here, where a bound can be
short. A process that was stopped is let go again, so one vLLM serves several tests.
"""

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from stoker.agent.config import AgentConfig
from stoker.engines.vllm import METRICS
from tests.builders.agents import agent_config
from tests.node import vllm_cpu
from tests.unit.agent.processes import Agent, agent, free_port, until

ENVIRONMENT = (os.environ.get("STOKER_VLLM_ENVS", "").split() or [""])[0]
START_SECONDS = 600.0
# Longer than any step of so small a model, on a machine that has other work.
LONGEST_PREFILL_SECONDS = 20
NAME = "m"


@dataclass(frozen=True, slots=True)
class Vllm:
    """A vLLM that serves, and its processes."""

    port: int
    group: int

    def process(self, title: str) -> int:
        """Return the process with these words in its title."""
        (found,) = (each for each in members(self.group) if title in command_of(each))
        return found


def members(group: int) -> list[int]:
    """Return the processes of a group that live."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(stat[2]) == group and stat[0] != "Z":
                found.append(int(folder.name))
    return found


def command_of(process: int) -> str:
    """Return the title of a process; empty when it is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vllm]:
    """One vLLM for all tests of this module; the last one kills it."""
    if not ENVIRONMENT:
        pytest.fail("STOKER_VLLM_ENVS names no environment with vLLM; run make parsers-newest")
    folder, port = tmp_path_factory.mktemp("vllm"), free_port()
    with serving(folder, port) as process:
        await_listening(port, process, folder / "log")
        yield Vllm(port, process.pid)


@contextmanager
def serving(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run vLLM in a process group of its own, which is gone afterwards."""
    sizes = ["--max-model-len", "1024", "--max-num-seqs", "4", "--max-num-batched-tokens", "256"]
    argv = [
        *(f"{ENVIRONMENT}/bin/vllm", "serve", str(vllm_cpu.model()), "--served-model-name", NAME),
        *("--host", "127.0.0.1", "--port", str(port), "--enforce-eager", *sizes),
        *("--kv-cache-memory-bytes", "200000000"),
    ]
    own = {"HOME": str(folder), "VLLM_CACHE_ROOT": str(folder / "cache"), "VLLM_NO_USAGE_STATS": "1"}
    threads = {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            argv, env={**os.environ, **own, **threads}, stdout=log, stderr=log, start_new_session=True, cwd=folder
        )
    try:
        yield process
    finally:
        for member in members(process.pid):
            os.kill(member, signal.SIGKILL)
        process.wait()


def await_listening(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the port accepts connections."""
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            assert process.poll() is None, f"vLLM ended:\n{log.read_text()[-4000:]}"
            assert time.monotonic() < end, f"vLLM did not start:\n{log.read_text()[-4000:]}"
            time.sleep(0.5)


@asynccontextmanager
async def watched(vllm: Vllm, folder: Path) -> AsyncIterator[Agent]:
    """An agent with vLLM's real metrics beside it, Ready, which takes it for idle after five seconds."""
    config: AgentConfig = agent_config(
        port=free_port(),
        engine_port=vllm.port,
        metrics=METRICS,
        state_dir=str(folder),
        longest_prefill_seconds=LONGEST_PREFILL_SECONDS,
        startup_budget_seconds=int(START_SECONDS),
    )
    async with agent(config, watch=0.5, metrics=0.5, idle=5.0) as it:
        await until(it.is_ready)
        yield it


@contextmanager
def stopped(process: int) -> Iterator[None]:
    """Have a process stand still while the body runs."""
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


async def stream(port: int, pieces: list[float]) -> None:
    """Ask for a long answer, and note when each of its pieces comes."""
    body = {"model": NAME, "prompt": "Once", "max_tokens": 1000, "ignore_eos": True, "stream": True}
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=START_SECONDS)) as session,
        session.post(f"http://127.0.0.1:{port}/v1/completions", json=body) as response,
    ):
        async for line in response.content:
            if line.startswith(b"data: {"):
                pieces.append(time.monotonic())  # noqa: PERF401 (the list is read meanwhile)


@pytest.mark.parametrize("title", ["VLLM::Worker", "VLLM::EngineCore"])
async def test_a_process_that_stops_while_idle_is_found_and_forgiven_when_it_goes_on(
    vllm: Vllm, tmp_path: Path, title: str
) -> None:
    async with watched(vllm, tmp_path) as it:
        with stopped(vllm.process(title)):
            await until(it.is_dead)
            assert "one of a single token has not been answered" in await it.reason("liveness")
            assert await it.probe("readiness") == 503
        await until(it.is_ready)
        assert (it.observer.state.incarnation, await it.probe("liveness")) == (1, 200)


async def test_a_worker_that_stops_under_load_is_found_by_counters_that_stand_still(vllm: Vllm, tmp_path: Path) -> None:
    async with watched(vllm, tmp_path) as it:
        pieces: list[float] = []
        answer = asyncio.create_task(stream(vllm.port, pieces))
        await until(lambda: runs(it, pieces))
        with stopped(vllm.process("VLLM::Worker")):
            await until(it.is_dead)
            assert "1 requests run and no token or step was counted" in await it.reason("liveness")
            let_go = time.monotonic()
        await until(lambda: runs(it, [at for at in pieces if at > let_go]))
        assert await it.is_ready()
        answer.cancel()


async def runs(it: Agent, pieces: list[float]) -> bool:
    """Whether pieces of an answer have come, and the agent has read that a request runs and does not hang."""
    return bool(pieces and it.observer.state.load.reading.running) and it.observer.phase == "Ready"


async def test_a_killed_core_takes_its_vllm_along_and_is_not_ready_within_ten_seconds(
    vllm: Vllm, tmp_path: Path
) -> None:
    """The last test: nothing of vLLM is left, and the container would be started anew."""
    async with watched(vllm, tmp_path) as it:
        os.kill(vllm.process("VLLM::EngineCore"), signal.SIGKILL)
        killed = time.monotonic()
        await until(it.is_unready)
        assert time.monotonic() - killed < 10

        async def all_gone() -> bool:
            return members(vllm.group) == []

        await until(all_gone)
        assert it.observer.phase == "Dead"
