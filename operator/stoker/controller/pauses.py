"""How long a watch stream that ended rests before its kind is listed anew.

An API server, or a proxy before it, that ends each stream at once would else be asked for a list and a stream many
times a second, by every replica and for every kind.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 30.0
"""Shorter than a stream may stay silent about a write before its process is called unfit."""

LIVED_SECONDS = 10.0
"""A stream that lasted for so long was a good one: after it, pauses begin anew. Proxies cut silent streams after 20 s
and more; a stream that is begun every 10 s burdens nobody."""

log = logging.getLogger("stoker.watching")


class Pauses:
    """The pauses of each stream: twice as long each time, until one has lived. ``clock`` is in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._before: WeakKeyDictionary[object, tuple[float, float]] = WeakKeyDictionary()

    def next(self, stream: object, name: str) -> float:
        """Return for how many seconds a stream that has just ended rests; told in the log once it is the longest."""
        now = self._clock()
        before, began = self._before.get(stream, (0.0, now))
        is_first = not before or now - began >= LIVED_SECONDS
        pause = FIRST_SECONDS if is_first else min(2 * before, LONGEST_SECONDS)
        if before < pause == LONGEST_SECONDS:
            log.warning("a watch stream ends again and again: now it is begun anew every 30 s", extra={"stream": name})
        self._before[stream] = (pause, now + pause)
        return pause


class PacedWatching:
    """kopf's settings for watching, whose pause is asked for by the task of each stream when that stream has ended."""

    def __init__(self, settings: object, pauses: Pauses) -> None:
        self._settings = settings
        self._pauses = pauses

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - kopf's own types
        """Return any other setting."""
        return getattr(self._settings, name)

    @property
    def reconnect_backoff(self) -> float:
        """The pause in seconds of the stream that asks."""
        stream = asyncio.current_task()
        return self._pauses.next(stream, stream.get_name()) if stream else FIRST_SECONDS
