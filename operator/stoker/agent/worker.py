"""The worker: everything that the agent does, in a process that its supervisor can replace."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Final

from aiohttp import web

from stoker.agent import logs
from stoker.agent.config import CONFIG_ENV, AgentConfig
from stoker.agent.engine import EngineClient
from stoker.agent.handover import Handover
from stoker.agent.left import answer_left
from stoker.agent.listener import ListenerReader
from stoker.agent.observer import Observer
from stoker.agent.server import application
from stoker.agent.store import Store

log = logging.getLogger("stoker.agent")

KEEPALIVE_SECONDS: Final = 15.0
SHUTDOWN_SECONDS: Final = 0.5


async def serve(config: AgentConfig, listening: socket.socket, handover: Handover, left: list[socket.socket]) -> None:
    """Watch the engine, answer on the given socket, and answer those whom an earlier worker left, until cancelled."""
    client = EngineClient(config, time.monotonic)
    port = ListenerReader(config.engine_port)
    try:
        observer = Observer(config, client, port, Store(Path(config.state_dir)), time.monotonic)
        async with serving(observer, listening, handover), asyncio.TaskGroup() as group:
            for connection in left:
                group.create_task(answer_left(observer, connection, handover))
            group.create_task(observer.run(handover.beat))
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def serving(observer: Observer, listening: socket.socket, handover: Handover) -> AsyncIterator[None]:
    """Answer on the given socket while the block runs. A handler is cancelled when its caller goes away."""
    runner = web.AppRunner(
        application(observer, handover),
        handler_cancellation=True,
        access_log=None,
        keepalive_timeout=KEEPALIVE_SECONDS,
        shutdown_timeout=SHUTDOWN_SECONDS,
    )
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        yield
    finally:
        await runner.cleanup()


async def _until_told(work: Coroutine[None, None, None]) -> None:
    """Run until the work fails or a signal asks to stop."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101 (a coroutine that runs has a task)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await work


def main(arguments: list[str]) -> int:
    """Run the worker on inherited descriptors: the listening socket, the channel to the supervisor, callers left."""
    logs.configure()
    config = AgentConfig.parse(os.environ[CONFIG_ENV])
    listening, channel, *left = (socket.socket(fileno=int(number)) for number in arguments)
    try:
        asyncio.run(_until_told(serve(config, listening, Handover(channel), left)))
    except Exception as error:
        log.exception("the worker ends", exc_info=error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
