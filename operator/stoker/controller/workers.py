"""The worker set: takes keys off the queue, and keeps one slow key from delaying the others (N21).

At most ``slots`` reconciles hold a slot at the same time. One that is still running after ``SLOW_SECONDS`` gives its
slot back and goes on aside, so that keys which wait for a dead webhook do not use up the slots of all the others; one
that failed the last time is aside from the start. How many run at the same time is bounded all the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

from stoker.kube.cache import ServiceKey
from stoker.kube.errors import ApiError, NotLeader
from stoker.kube.queue import WorkQueue

SLOW_SECONDS = 5.0
RECONCILE_SECONDS = 60.0
MAX_RUNNING = 512
RESULTS = ("done", "failed", "timeout", "not_leader", "cancelled")
"""What becomes of a reconcile. ``not_leader``: a write was held back; ``cancelled``: the lead ended meanwhile. Neither
is a failure."""

log = logging.getLogger("stoker.reconcile")

Reconcile = Callable[[ServiceKey], Awaitable[float | None]]
"""Brings one service about; returns after how many seconds it wants to be looked at again."""


class Workers:
    """Runs reconciles while this replica leads. ``on_result`` is told of each: its result (RESULTS), and seconds."""

    def __init__(
        self, queue: WorkQueue, reconcile: Reconcile, slots: int, on_result: Callable[[str, float], None]
    ) -> None:
        self._queue = queue
        self._reconcile = reconcile
        self._on_result = on_result
        self._slots = asyncio.Semaphore(slots)
        self._room = asyncio.Semaphore(MAX_RUNNING)
        self._running: set[asyncio.Task[str]] = set()
        self._dispatcher: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to take keys; nothing when that has begun already."""
        if self._dispatcher is None:
            self._dispatcher = asyncio.create_task(self._dispatch(), name="reconcile dispatcher")

    async def stop(self) -> None:
        """Stop at once: what runs is cancelled, and whoever leads next looks at everything again."""
        if self._dispatcher is None:
            return
        tasks: list[asyncio.Task[Any]] = [self._dispatcher, *self._running]
        self._dispatcher = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def running(self) -> int:
        """How many reconciles run."""
        return len(self._running)

    async def _dispatch(self) -> None:
        while True:
            async with AsyncExitStack() as taken:  # given back when the lead ends while a key is waited for
                await self._take(self._room, taken)
                await self._take(self._slots, taken)
                key: ServiceKey = await self._queue.take()  # type: ignore[assignment]
                taken.pop_all()
                self._begin(key)

    @staticmethod
    async def _take(semaphore: asyncio.Semaphore, taken: AsyncExitStack) -> None:
        await semaphore.acquire()
        taken.callback(semaphore.release)

    def _begin(self, key: ServiceKey) -> None:
        """Start one reconcile. What it holds is given back by a callback: a task may be cancelled before it runs."""
        loop, held = asyncio.get_running_loop(), [self._slots]
        started = loop.time()

        def give_back() -> None:
            if held:
                held.pop().release()

        def end(task: asyncio.Task[str]) -> None:
            timer.cancel()
            give_back()
            self._room.release()
            self._running.discard(task)
            self._queue.done(key)
            self._on_result("cancelled" if task.cancelled() else task.result(), loop.time() - started)

        timer = loop.call_later(SLOW_SECONDS, give_back)
        task = asyncio.create_task(self._attempt(key), name=f"reconcile {key[0]}/{key[1]}")
        self._running.add(task)
        task.add_done_callback(end)
        if self._queue.core.failures(key):
            give_back()

    async def _attempt(self, key: ServiceKey) -> str:
        """Reconcile once; whatever goes wrong delays this key alone, and never ends the process."""
        context = {"namespace": key[0], "service": key[1]}
        try:
            async with asyncio.timeout(RECONCILE_SECONDS):
                again = await self._reconcile(key)
        except NotLeader:
            # Nothing went wrong with the service: it is looked at again without a back-off, should the lead come back.
            self._queue.add_after(key, 1.0)
            log.info("a write was held back: this replica does not lead", extra=context)
            return "not_leader"
        except TimeoutError:
            delay = self._queue.fail(key)
            log.warning("a reconcile took too long", extra={**context, "again_in_seconds": round(delay, 1)})
            return "timeout"
        except ApiError as problem:
            delay = self._queue.fail(key, problem.retry_after_seconds or 0.0)
            log.warning(
                "a reconcile failed", extra={**context, "problem": problem.message, "again_in_seconds": round(delay, 1)}
            )
            return "failed"
        except Exception:
            delay = self._queue.fail(key)
            log.exception("a reconcile failed", extra={**context, "again_in_seconds": round(delay, 1)})
            return "failed"
        self._queue.forget(key)
        if again is not None:
            self._queue.add_after(key, again)
        return "done"
