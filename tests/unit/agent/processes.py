"""Real processes for the agent's tests: the engine's double, the agent itself, and a client for both."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp

import stoker
from stoker.agent.config import CONFIG_ENV, AgentConfig
from stoker.agent.engine import EngineClient
from stoker.agent.handover import Handover, channel
from stoker.agent.listener import ListenerReader
from stoker.agent.observer import Observer, Rhythm
from stoker.agent.state import Limits
from stoker.agent.store import Store
from stoker.agent.worker import serving
from tests.builders.agents import TOKEN

HERE = Path(__file__).parent
QUICK = Rhythm(watch=0.05, metrics=0.05, retry_limit=0.1, drain_check=0.02, idle=3600, hold=3600)
SOURCES = str(Path(stoker.__file__).parents[1])
LAUNCH = "import sys; sys.path.insert(0, sys.argv[1]); from stoker.agent.main import main; sys.exit(main())"
"""As in an image: the package lies in a folder that only the command knows."""
PATIENCE_SECONDS = 180.0
"""How long a test waits for what must come: the machine may be busy with other work."""
END_SECONDS = 60.0
"""How long a process may take to end once it was told to: it allows itself a tenth of that."""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until the condition holds."""
    end = time.monotonic() + seconds
    while not await condition():
        assert time.monotonic() < end, f"the awaited state did not come: {getattr(condition, '__self__', condition)}"
        await asyncio.sleep(0.02)


async def get(port: int, path: str, timeout_seconds: float = PATIENCE_SECONDS) -> tuple[int, str]:
    """One GET over a connection of its own."""
    limit = aiohttp.ClientTimeout(total=timeout_seconds)
    async with (
        aiohttp.ClientSession(timeout=limit) as session,
        session.get(f"http://127.0.0.1:{port}{path}") as response,
    ):
        return response.status, (await response.text()).rstrip("\n")


@dataclass
class Engine:
    """The double in a process of its own, on a port that stays the same over restarts."""

    spelling: str = "vllm"
    load_seconds: float = 0.0
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        arguments = [str(self.port), self.spelling, str(self.load_seconds)]
        self.process = subprocess.Popen(
            [sys.executable, str(HERE / "engine_double.py"), *arguments], stdout=subprocess.DEVNULL
        )

    def signal(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    async def started(self) -> Engine:
        self.start()
        await self.listens()
        return self

    async def listens(self) -> None:
        async def answers() -> bool:
            try:
                return (await get(self.port, "/health"))[0] == 200
            except aiohttp.ClientError:
                return False

        await until(answers)

    async def set(self, **behaviour: Any) -> None:
        """Behave like this; everything else as an engine should."""
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"http://127.0.0.1:{self.port}/double", json=behaviour) as response,
        ):
            assert response.status == 200

    async def figures(self) -> dict[str, Any]:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.port}/double") as response,
        ):
            return dict(await response.json())

    async def chat(self, tokens: int = 1, stream: bool = True) -> str:
        """One chat; the text of the answer."""
        body = {"model": "m", "messages": [], "max_tokens": tokens, "stream": stream}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"http://127.0.0.1:{self.port}/v1/chat/completions", json=body) as response,
        ):
            assert response.status == 200
            return await response.text()


@dataclass
class Agent:
    """An agent in this process, with its own port, against an engine in another."""

    observer: Observer
    port: int

    async def probe(self, name: str) -> int:
        return (await get(self.port, f"/{name}"))[0]

    async def reason(self, name: str) -> str:
        return (await get(self.port, f"/{name}"))[1]

    async def drain(self, token: str = TOKEN) -> tuple[int, str]:
        return await get(self.port, f"/drain?token={token}")

    async def is_ready(self) -> bool:
        return await self.probe("readiness") == 200

    async def is_unready(self) -> bool:
        return await self.probe("readiness") == 503

    async def is_dead(self) -> bool:
        return await self.probe("liveness") == 503

    async def is_draining(self) -> bool:
        return self.observer.draining


@asynccontextmanager
async def agent(
    config: AgentConfig,
    health_seconds: float = 10.0,
    silence_seconds: float = 60.0,
    watching: bool = True,
    **pauses: float,
) -> AsyncIterator[Agent]:
    """Run an agent in this process, faster than a real one; `pauses` are those of its rhythm."""
    limits = Limits(config.longest_prefill_seconds, config.startup_budget_seconds, silence_seconds)
    client = EngineClient(config, time.monotonic, health_seconds)
    port, store = ListenerReader(config.engine_port), Store(Path(config.state_dir))
    observer = Observer(config, client, port, store, time.monotonic, replace(QUICK, **pauses), limits)
    listening = socket.create_server(("127.0.0.1", 0))
    supervisor, worker = channel()
    loops = asyncio.create_task(observer.run()) if watching else None
    try:
        async with serving(observer, listening, Handover(worker)):
            yield Agent(observer, int(listening.getsockname()[1]))
            assert loops is None or not loops.done(), "a loop of the agent failed"
    finally:
        if loops is not None:
            loops.cancel()
            await asyncio.gather(loops, return_exceptions=True)
        await client.close()
        supervisor.close()
        worker.close()


@dataclass
class AgentProcess:
    """The agent as a container runs it: a supervisor and its worker."""

    config: AgentConfig
    command: tuple[str, ...] = (sys.executable, "-I", "-c", LAUNCH, SOURCES)
    process: subprocess.Popen[bytes] | None = None
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    """The leaders of the groups of processes that were started."""

    def start(self) -> None:
        environment = {**os.environ, CONFIG_ENV: self.config.to_json()}
        environment.pop("PYTHONPATH", None)
        self.process = subprocess.Popen(list(self.command), env=environment, stderr=subprocess.PIPE, process_group=0)
        self.started.append(self.process)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def workers(self) -> list[int]:
        """Process ids of the supervisor's children."""
        try:
            return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]
        except OSError:
            return []

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """End it; its exit status and what it logged. Raises TimeoutExpired where it goes on or leaves a worker."""
        assert self.process is not None
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=END_SECONDS)
        return self.process.returncode, errors.decode()

    def kill(self) -> None:
        """End all that was ever started, also what hangs, was stopped or lost its supervisor: it outlives no test.

        A stopped worker keeps the outputs of the test run open, and whoever reads them waits for ever.
        """
        for process in self.started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stderr is not None:
                process.stderr.close()

    async def probe(self, name: str) -> int:
        return (await get(self.config.port, f"/{name}"))[0]

    async def is_ready(self) -> bool:
        try:
            return await self.probe("readiness") == 200
        except aiohttp.ClientError:
            return False
