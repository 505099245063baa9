"""Callers of a drain whom an earlier worker left: they asked once, and get their answer from this one.

Their request was read by a process that is gone, so the answer is written without the HTTP server: a fixed head and one
line.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from typing import Final

from stoker.agent.handover import Handover
from stoker.agent.observer import Observer
from stoker.agent.server import drained

log = logging.getLogger("stoker.agent")

WRITE_SECONDS: Final = 5.0


async def answer_left(observer: Observer, connection: socket.socket, handover: Handover) -> None:
    """Go on with the drain for one caller, until it is answered or has gone. Never raises but when cancelled."""
    connection.setblocking(False)
    number = os.fstat(connection.fileno()).st_ino
    waits = asyncio.ensure_future(_answer(observer, connection))
    gone = asyncio.ensure_future(_hung_up(connection))
    log.info("a drain goes on for a caller of an earlier worker")
    try:
        await asyncio.wait({waits, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waits.cancel()
        gone.cancel()
        ends = await asyncio.gather(waits, gone, return_exceptions=True)
        for fault in (end for end in ends if isinstance(end, Exception)):
            log.error("a caller of an earlier worker got no answer", exc_info=fault)
        connection.close()
        handover.drop(number)


async def _answer(observer: Observer, connection: socket.socket) -> None:
    response = await drained(observer, resumed=True)
    body = response.body if isinstance(response.body, bytes) else b""
    head = f"HTTP/1.1 {response.status} {response.reason}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    whole = f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(WRITE_SECONDS):
            await asyncio.get_running_loop().sock_sendall(connection, whole)


async def _hung_up(connection: socket.socket) -> None:
    """Return once the caller has closed its end; it has nothing more to say."""
    with contextlib.suppress(OSError):
        while await asyncio.get_running_loop().sock_recv(connection, 4096):
            continue
