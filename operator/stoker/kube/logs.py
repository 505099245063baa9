"""The last words of engines that ended: the termination message, else the end of the log of the container before.

A message that is as long as the kubelet lets it be is the end of a log whose beginning is missing, and in vLLM's case
the cause with it: then the log is read as well. That happens at most once per container and restart, in the background
and a few at a time: a node that does not answer delays no reconcile (N21).
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from stoker.kube.cache import ServiceKey
from stoker.kube.client import Client
from stoker.kube.errors import ApiError, Invalid
from stoker.kube.views import MAX_LAST_WORDS, last_words
from stoker.plan.snapshot import ContainerView, PodView
from stoker.status.text import KEPT_BYTES

MAX_REMEMBERED = 2000
MAX_WAITING = 500
READERS = 4
LONGEST_CHARACTER_BYTES = 4
"""Where the cut goes through a character, the message is shorter by that."""
KEPT_LINES = 80
"""How many lines of a log a kubelet makes a message of, if they are short."""

log = logging.getLogger("stoker.logs")

_Incarnation = tuple[str, str, int]


class LogReader:
    """Completes pods with the last words of their containers. ``on_read`` is told when a log has been read."""

    def __init__(self, client: Client, on_read: Callable[[ServiceKey], None]) -> None:
        self._client = client
        self._on_read = on_read
        self._words: OrderedDict[_Incarnation, str | None] = OrderedDict()
        self._asked: dict[_Incarnation, tuple[ServiceKey, PodView, ContainerView]] = {}
        self._queue: asyncio.Queue[_Incarnation] = asyncio.Queue(MAX_WAITING)

    def complete(self, key: ServiceKey, pod: PodView) -> PodView:
        """Return the pod with what is known of its containers' last words; what is not known is asked for."""
        containers = tuple(self._completed(key, pod, container) for container in pod.containers)
        return pod if containers == pod.containers else replace(pod, containers=containers)

    async def run(self) -> None:
        """Read logs until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(READERS):
                group.create_task(self._reader())

    def _completed(self, key: ServiceKey, pod: PodView, container: ContainerView) -> ContainerView:
        if not _ended_badly(container) or _is_whole(container.last_words):
            return container
        incarnation = (pod.uid, container.name, container.restart_count)
        if incarnation in self._words:
            return replace(container, last_words=self._words[incarnation] or container.last_words)
        if incarnation not in self._asked and not self._queue.full():
            self._asked[incarnation] = (key, pod, container)
            self._queue.put_nowait(incarnation)
        return container

    async def _reader(self) -> None:
        while True:
            incarnation = await self._queue.get()
            key, pod, container = self._asked[incarnation]
            try:
                self._keep(incarnation, await self._read(pod, container))
            except Exception:
                log.exception("a log could not be read", extra={"pod": pod.name})
                self._keep(incarnation, None)  # asked for again, it would break again
            finally:
                del self._asked[incarnation]
            self._on_read(key)

    async def _read(self, pod: PodView, container: ContainerView) -> str | None:
        for previous in (container.restart_count > 0, False):
            try:
                text = await self._client.log_tail(
                    pod.namespace, pod.name, container.name, previous=previous, max_bytes=MAX_LAST_WORDS
                )
                return last_words(text)
            except Invalid:
                continue  # there is no container before this one: its own log is the last
            except ApiError as problem:
                log.info("a log could not be read", extra={"pod": pod.name, "problem": problem.message})
                return None
        return None

    def _keep(self, incarnation: _Incarnation, words: str | None) -> None:
        self._words[incarnation] = words
        if len(self._words) > MAX_REMEMBERED:
            self._words.popitem(last=False)


def _ended_badly(container: ContainerView) -> bool:
    return container.exit_code not in (None, 0)


def _is_whole(message: str | None) -> bool:
    """Whether a container has said all that it had to say: there is a message, and it was not cut."""
    if not message:
        return False
    size = len(message.encode("utf-8", "replace"))
    return size < KEPT_BYTES - LONGEST_CHARACTER_BYTES and message.count("\n") < KEPT_LINES - 1
