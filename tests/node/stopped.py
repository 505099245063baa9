"""Engines of which a process is stopped (SIGSTOP), and what the API server says of their pods from then on.

That an engine is silent counts after minutes. They are stopped once, the tier goes on with other engines, and what
became of them is judged at its end.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.node.support import Json, Namespace, until
from tests.node.watching import PodWatch, watched

# A minute of silence, or without a token, before it counts; nine probes, ten seconds apart; the grace period of a
# failed probe; what a machine adds that has other work.
HANG_SECONDS = 60 + 9 * 10 + 20 + 40.0
EVIDENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Stopped:
    """An engine with a stopped process. `restarts`: how often it had been restarted before."""

    namespace: Namespace
    service: str
    process: int
    at: float
    restarts: int
    watch: PodWatch

    def was_found_unready(self, within: float) -> bool:
        """Whether the pod was said not to be Ready, between the stop and so many seconds after it."""
        lost = self.watch.first(False, after=self.at)
        return lost is not None and lost - self.at < within

    def await_restart(self) -> float:
        """Wait until the engine is restarted, and return how many seconds after the stop that was."""
        wanted, left = self.restarts + 1, self.at + HANG_SECONDS - time.monotonic()
        what, seen = f"{self.service} is restarted", self.watch.seen
        until(lambda: self.watch.restarts() >= wanted, what, max(left, 1), seen, 0.2)
        return self.watch.restarted_at(wanted) - self.at

    def await_ready(self, after: float, seconds: float) -> None:
        """Wait until the pod is Ready again, so many seconds after the stop or later."""
        what, began = f"{self.service} is Ready again", self.at + after
        until(lambda: self.watch.first(True, after=began) is not None, what, seconds, self.watch.seen)

    def liveness(self) -> str:
        """Return what the pod's agent gives as the reason of its liveness."""
        return str(self.namespace.agent_status(self.namespace.the_pod(self.service))["reasons"]["liveness"])

    def agent_log(self) -> str:
        """Return the log of the pod's agent."""
        return self.namespace.kubectl("logs", self.namespace.the_pod(self.service)["metadata"]["name"], "-c", "agent")


@dataclass(frozen=True, slots=True)
class StoppedEngines:
    """An idle llama.cpp, a vLLM whose core stopped while a request ran, and one whose server stopped."""

    llama_cpp: Stopped
    core: Stopped
    server: Stopped


@contextmanager
def stopped(namespace: Namespace, pod: Json, process: int) -> Iterator[Stopped]:
    """Stop a process of a pod's engine, and watch the pod while the body runs."""
    service = pod["metadata"]["labels"]["serving.stoker.dev/service"]
    with watched(namespace, pod["metadata"]["name"]) as watch:
        restarts = watch.restarts()
        os.kill(process, signal.SIGSTOP)
        yield Stopped(namespace, service, process, time.monotonic(), restarts, watch)
