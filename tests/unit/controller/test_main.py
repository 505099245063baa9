"""The start of the operator, where the API server is not ready yet."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from typing import Any, NoReturn, cast

import pytest

from stoker.controller import main
from stoker.kube.client import Client
from stoker.kube.errors import Unavailable
from stoker.kube.resources import NODE


class Late:
    """The client of an API server that answers at the third try."""

    def __init__(self) -> None:
        self.tries = 0

    async def create(self, *_: object) -> dict[str, Any]:
        self.tries += 1
        if self.tries < 3:
            raise Unavailable("no answer within 10 s")
        return {"status": {"allowed": True}}


async def test_an_api_server_that_does_not_answer_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "WAIT_SECONDS", 0.0)
    late = Late()
    assert await main._may_watch(cast(Client, late), NODE)
    assert late.tries == 4


# ---- streams that fail, and streams that do not end ------------------------------------------------------------------
class ProcessEndedError(Exception):
    """Stands for the end of the process."""


async def deaf() -> None:
    """A watcher that swallows its cancellation, once."""
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(600)
    await asyncio.sleep(600)


async def test_streams_that_do_not_end_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(status: int) -> NoReturn:
        raise ProcessEndedError(status)

    monkeypatch.setattr(os, "_exit", ends)
    monkeypatch.setattr(main, "END_SECONDS", 0.1)
    monkeypatch.setattr("logging.shutdown", lambda: None)
    streams, ended = asyncio.create_task(deaf()), asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, streams.cancel)
    asyncio.get_running_loop().call_later(0.1, ended.set)
    with pytest.raises(ProcessEndedError, match="1"):
        await asyncio.wait_for(main._until_ended(streams, ended), 30)
    streams.cancel()


async def test_streams_are_waited_for_while_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "END_SECONDS", 30.0)

    async def slow() -> None:
        await asyncio.sleep(0.2)

    await asyncio.wait_for(main._until_ended(asyncio.create_task(slow()), asyncio.Event()), 30)


def test_a_stream_that_fails_ends_the_operator_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fails(_: object) -> None:
        raise RuntimeError("404 page not found")

    monkeypatch.setattr(main, "run", fails)
    assert main.main(["--metrics-port", "0"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert json.loads(line)["problem"] == "404 page not found"
