"""`python -m tests.node.load`: clients that hold streams open and never retry; run in a cluster's network.

Reads one JSON object on standard input. Each of `clients` reads one stream after the other, with pauses of up to
`pauseSeconds`, until a file `stop` exists or `seconds` are over; an open stream is read to its end. Beside every ten of
them another client keeps its connection for many requests and renews it after `renewSeconds`. A request is lost when it
was not answered with 200, broke off, or ended without its last event. Every half second, and at the end, a line of JSON
says how many streams are open, and how many requests were completed and lost.
"""

import asyncio
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

MOST_SECONDS = 600.0
TIMEOUT = aiohttp.ClientTimeout(total=240.0)
# Shorter than what engines allow: a connection that is used in the moment in which the engine closes it is lost.
KEEP_SECONDS = 3.0
TELL_SECONDS = 0.5
# How many pauses long it takes until all clients have begun.
STARTS = 5
CLIENT_NICENESS = -15
LAST_EVENT = b"data: [DONE]"


@dataclass
class Load:
    """What the clients do, and what became of it. `streaming`: open streams that have brought a first event."""

    url: str
    model: str
    clients: int
    stop: Path
    seconds: float
    renew_seconds: float
    max_tokens: int
    pause_seconds: float
    completed: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    open: int = 0
    streaming: int = 0

    def told(self) -> str:
        """What became of it so far, as JSON."""
        known = {"open": self.open, "streaming": self.streaming}
        return json.dumps({**known, "completed": self.completed, "lost": self.lost})


async def streaming_client(load: Load, number: int, deadline: float) -> None:
    """Read streams, one after the other, each over a connection of its own: llama.cpp closes it after every stream."""
    await _pause(load, STARTS)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True), timeout=TIMEOUT) as session:
        while not _over(load, deadline):
            await _pause(load)
            load.open += 1
            await _counted(load, "stream", _stream(load, session, number))
            load.open -= 1


async def keeping_client(load: Load, number: int, deadline: float) -> None:
    """Ask for whole answers, one after the other, over a connection that is kept until it is renewed."""
    while not _over(load, deadline):
        await _pause(load)
        renewed = time.monotonic()
        connector = aiohttp.TCPConnector(limit=1, keepalive_timeout=KEEP_SECONDS)
        async with aiohttp.ClientSession(connector=connector, timeout=TIMEOUT) as session:
            while time.monotonic() - renewed < load.renew_seconds and not _over(load, deadline):
                await _counted(load, "kept", _whole(load, session, number))
                await _pause(load)


async def _pause(load: Load, times: float = 1.0) -> None:
    # People do not ask all at once; the answers of one batch would end, and the next requests begin, together.
    await asyncio.sleep(random.uniform(0, times * load.pause_seconds))


def _over(load: Load, deadline: float) -> bool:
    return time.monotonic() > deadline or load.stop.exists()


async def _counted(load: Load, kind: str, request: Awaitable[str | None]) -> None:
    sent = time.time()
    try:
        fault = await request
    except (TimeoutError, aiohttp.ClientError, OSError) as problem:
        fault = f"{type(problem).__name__}: {problem}"[:120]
    if fault is None:
        load.completed += 1
    else:
        # When it was sent and lost: what the kubelet did at that time stands in its log.
        load.lost[f"{kind} {clock(sent)}-{clock(time.time())}: {fault}"] += 1
        await asyncio.sleep(0.5)


def clock(seconds: float) -> str:
    """Write a time of today, to the second."""
    return time.strftime("%H:%M:%S", time.gmtime(seconds))


def _body(load: Load, number: int, **more: Any) -> dict[str, Any]:
    # Prompts of a few tokens, and answers that are as long as asked: what is measured is the service, not the engine.
    asked = {"model": load.model, "prompt": f"{number}:", "max_tokens": load.max_tokens, "ignore_eos": True}
    return {**asked, **more}


async def _stream(load: Load, session: aiohttp.ClientSession, number: int) -> str | None:
    """Read one stream to its end; returns what was wrong with it."""
    async with session.post(f"{load.url}/v1/completions", json=_body(load, number, stream=True)) as answer:
        if answer.status != 200:
            return f"status {answer.status}"
        last, streams = b"", False
        try:
            async for line in answer.content:
                last = line.strip() or last
                if last and not streams:
                    streams, load.streaming = True, load.streaming + 1
        finally:
            load.streaming -= streams
        return None if last == LAST_EVENT else f"broke off after {last[:60]!r}"


async def _whole(load: Load, session: aiohttp.ClientSession, number: int) -> str | None:
    """Ask for one answer; returns what was wrong with it."""
    async with session.post(f"{load.url}/v1/completions", json=_body(load, number)) as answer:
        if answer.status != 200:
            return f"status {answer.status}"
        return None if (await answer.json()).get("choices") else "an answer without choices"


async def run(load: Load) -> None:
    """Run all clients to their end."""
    deadline = time.monotonic() + min(load.seconds, MOST_SECONDS)
    teller = asyncio.create_task(_tell(load))
    streams = (streaming_client(load, number, deadline) for number in range(load.clients))
    keeping = (keeping_client(load, number, deadline) for number in range(load.clients // 10))
    await asyncio.gather(*streams, *keeping)
    teller.cancel()
    print(load.told(), flush=True)


async def _tell(load: Load) -> None:
    while True:
        print(load.told(), flush=True)
        await asyncio.sleep(TELL_SECONDS)


def main() -> int:
    """Run what standard input asks for."""
    # An engine closes a connection on which nothing was sent for five seconds: clients must not wait for the CPU.
    os.nice(CLIENT_NICENESS)
    asked = json.load(sys.stdin)
    words = (asked["url"], asked["model"], asked["clients"], Path(asked["stop"]), asked["seconds"])
    asyncio.run(run(Load(*words, asked["renewSeconds"], asked["maxTokens"], asked["pauseSeconds"])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
