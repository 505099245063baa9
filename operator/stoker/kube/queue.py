"""The work queue: which key is reconciled next, and when it may be tried again.

The semantics are those of client-go's rate-limited work queue. A key waits at most once, however often it is added. A
key that is added while it is being worked on is queued again when its worker is done, so that no change is lost and
no key is worked on twice at the same time. Failures of one key delay that key alone (N21).

The core holds no clock: every method that needs the time takes ``now`` in seconds of a monotonic clock.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

MAX_KEYS = 200_000
BACKOFF_BASE_SECONDS = 0.5
BACKOFF_MAX_SECONDS = 300.0
BACKOFF_JITTER = 0.2
SPARE_TIMERS = 1000
"""How many cancelled timers may stay on the heap before it is rebuilt."""

Key = Hashable


@dataclass(slots=True)
class QueueCore:
    """The queue without a clock, an event loop or randomness of its own."""

    jitter: Callable[[], float] = random.random
    """A number in [0, 1) for each back-off."""
    max_keys: int = MAX_KEYS
    _ready: dict[Key, float] = field(default_factory=dict)
    """Keys to be worked on, oldest first, with the time since when they wait."""
    _processing: set[Key] = field(default_factory=set)
    _again: dict[Key, float] = field(default_factory=dict)
    """Keys that were added while they were worked on."""
    _later: dict[Key, float] = field(default_factory=dict)
    """The earliest time at which each delayed key is due."""
    _heap: list[tuple[float, int, Key]] = field(default_factory=list)
    _order: int = 0
    _failures: dict[Key, int] = field(default_factory=dict)
    overflowed: bool = False
    """A key was refused because the bound was reached; whoever owns the queue must list everything again."""

    def add(self, key: Key, now: float) -> None:
        """Queue a key. A delay that it waits for is cancelled: it is needed now."""
        if key in self._processing:
            self._again.setdefault(key, now)
        elif key not in self._ready:
            if self._is_full(key):
                return
            self._later.pop(key, None)
            self._ready[key] = now

    def add_after(self, key: Key, delay_seconds: float, now: float) -> None:
        """Queue a key later. An earlier time that it already waits for stays."""
        due = now + max(0.0, delay_seconds)
        if key in self._ready or self._later.get(key, due + 1) <= due or self._is_full(key):
            return
        self._later[key] = due
        self._order += 1
        heapq.heappush(self._heap, (due, self._order, key))
        if len(self._heap) > 2 * len(self._later) + SPARE_TIMERS:
            self._heap = [timer for timer in self._heap if self._later.get(timer[2]) == timer[0]]
            heapq.heapify(self._heap)

    def take(self, now: float) -> Key | None:
        """Return the key that has waited longest, and mark it as being worked on; None when there is none."""
        self._move_due(now)
        if not self._ready:
            return None
        key = next(iter(self._ready))
        del self._ready[key]
        self._processing.add(key)
        return key

    def done(self, key: Key) -> None:
        """Say that the work on a key has ended, well or badly."""
        self._processing.discard(key)
        since = self._again.pop(key, None)
        if since is not None:
            self._ready.setdefault(key, since)
            self._later.pop(key, None)

    def fail(self, key: Key, now: float, at_least_seconds: float = 0.0) -> float:
        """Queue a key after its back-off, doubled at each failure in a row. Returns the delay in seconds.

        It is no shorter than what the server asked for, within the bound of all delays.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = min(BACKOFF_MAX_SECONDS, BACKOFF_BASE_SECONDS * 2.0 ** min(failures, 16))
        delay *= 1.0 + BACKOFF_JITTER * self.jitter()
        delay = max(delay, min(at_least_seconds, BACKOFF_MAX_SECONDS))
        self.add_after(key, delay, now)
        return delay

    def forget(self, key: Key) -> None:
        """Say that a key succeeded: its next back-off starts anew."""
        self._failures.pop(key, None)

    def failures(self, key: Key) -> int:
        """Return how often the key failed in a row."""
        return self._failures.get(key, 0)

    def next_due_seconds(self, now: float) -> float | None:
        """Return how long until there is something to take; 0 when there is, None when nothing waits."""
        self._move_due(now)
        if self._ready:
            return 0.0
        return max(0.0, self._heap[0][0] - now) if self._heap else None

    def oldest_seconds(self, now: float) -> float:
        """Return how long the oldest ready key has waited."""
        return now - next(iter(self._ready.values())) if self._ready else 0.0

    def __len__(self) -> int:
        """Return how many keys are ready."""
        return len(self._ready)

    @property
    def timers(self) -> int:
        """How many timers are kept, cancelled ones included."""
        return len(self._heap)

    @property
    def delayed(self) -> int:
        """How many keys wait for their time."""
        return len(self._later)

    def _is_full(self, key: Key) -> bool:
        if key in self._later or len(self._ready) + len(self._later) < self.max_keys:
            return False
        self.overflowed = True
        return True

    def _move_due(self, now: float) -> None:
        while self._heap and (self._heap[0][0] <= now or self._later.get(self._heap[0][2]) != self._heap[0][0]):
            due, _, key = heapq.heappop(self._heap)
            if self._later.get(key) != due:
                continue
            del self._later[key]
            self.add(key, due)


class WorkQueue:
    """The core with the clock of the running event loop. Not thread-safe: it belongs to one loop."""

    def __init__(self, core: QueueCore | None = None) -> None:
        self.core = core or QueueCore()
        self._wake = asyncio.Event()

    def add(self, key: Key) -> None:
        """Queue a key now."""
        self.core.add(key, _now())
        self._wake.set()

    def add_after(self, key: Key, delay_seconds: float) -> None:
        """Queue a key later."""
        self.core.add_after(key, delay_seconds, _now())
        self._wake.set()

    async def take(self) -> Key:
        """Wait for the next key."""
        while True:
            key = self.core.take(_now())
            if key is not None:
                return key
            self._wake.clear()
            due = self.core.next_due_seconds(_now())
            try:
                async with asyncio.timeout(due):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def done(self, key: Key) -> None:
        """Say that the work on a key has ended."""
        self.core.done(key)
        self._wake.set()

    def fail(self, key: Key, at_least_seconds: float = 0.0) -> float:
        """Queue a key after its back-off; returns the delay in seconds."""
        delay = self.core.fail(key, _now(), at_least_seconds)
        self._wake.set()
        return delay

    def forget(self, key: Key) -> None:
        """Say that a key succeeded."""
        self.core.forget(key)

    def oldest_seconds(self) -> float:
        """Return how long the oldest ready key has waited."""
        return self.core.oldest_seconds(_now())


def _now() -> float:
    return asyncio.get_running_loop().time()
