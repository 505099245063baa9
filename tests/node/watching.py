"""What goes on beside a test while it does something: load on a service, and what the API server says of a pod."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clusters.kubectl import program
from tests.node.support import ROOT, Namespace, until

END_SECONDS = 240.0
LOAD_SECONDS = 420.0
# The promise of the plain Service path is made to clients that renew their connections within the grace period.
RENEW_SECONDS = 8.0


class Lines:
    """The lines that a process prints, each with the time at which it came."""

    def __init__(self, argv: list[str], stdin: str = "") -> None:
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        )
        self.seen: list[tuple[float, str]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        assert self.process.stdin is not None
        self.process.stdin.write(stdin)
        self.process.stdin.close()
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.seen.append((time.monotonic(), line.strip()))

    def wait(self, seconds: float) -> None:
        """Wait for the end of the process."""
        self.process.wait(timeout=seconds)
        self._reader.join(timeout=10)

    def end(self) -> None:
        """End the process where it has not ended, and close what leads to it."""
        if self.process.poll() is None:
            self.process.kill()
        self.wait(10)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


class Repeated:
    """The lines of a process that is started anew when it ends: a watch does, where its connection is lost."""

    def __init__(self, argv: list[str]) -> None:
        self.seen: list[tuple[float, str]] = []
        self._argv, self._ended = argv, threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._runner = threading.Thread(target=self._run, daemon=True)
        self._runner.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            with subprocess.Popen(self._argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
                self._process = process
                assert process.stdout is not None
                for line in process.stdout:
                    self.seen.append((time.monotonic(), line.strip()))
            self._ended.wait(0.5)

    def end(self) -> None:
        """End the process, and start it no more."""
        self._ended.set()
        while self._runner.is_alive():
            if self._process is not None:
                self._process.kill()
            self._runner.join(timeout=0.5)


@dataclass(frozen=True, slots=True)
class Clients:
    """Clients at work, see `load.py`."""

    lines: Lines
    stop: Path

    def now(self) -> dict[str, Any]:
        """What they last said: open, streaming, completed, lost."""
        return dict(json.loads(self.lines.seen[-1][1])) if self.lines.seen else {}

    def await_streaming(self, count: int, seconds: float = 180.0) -> None:
        """Wait until so many streams are open and have brought a first token."""
        until(lambda: self.now().get("streaming", 0) >= count, f"{count} streams are open", seconds, self.now, 0.1)

    def finish(self, seconds: float = END_SECONDS) -> dict[str, Any]:
        """Send nothing more, wait for the end of all open streams, and return what became of them."""
        self.stop.touch()
        self.lines.wait(seconds)
        assert self.lines.process.returncode == 0, self.lines.process.stderr and self.lines.process.stderr.read()
        return self.now()


@contextmanager
def load(
    namespace: Namespace, url: str, clients: int, max_tokens: int, model: str = "smollm2-135m", pause_seconds: float = 0
) -> Iterator[Clients]:
    """Have clients at work on a service while the body runs."""
    with tempfile.TemporaryDirectory() as folder:
        stop = Path(folder, "stop")
        asked = {"url": url, "clients": clients, "stop": str(stop), "maxTokens": max_tokens}
        rest = {"model": model, "pauseSeconds": pause_seconds, "seconds": LOAD_SECONDS, "renewSeconds": RENEW_SECONDS}
        argv = [*namespace.stage.cluster.enter(), sys.executable, "-m", "tests.node.load"]
        lines = Lines(argv, json.dumps({**asked, **rest}))
        try:
            yield Clients(lines, stop)
        finally:
            lines.end()


READY = '{.status.conditions[?(@.type=="Ready")].status}'
RESTARTS = '{.status.containerStatuses[?(@.name=="engine")].restartCount}'


@dataclass(slots=True)
class PodWatch:
    """What the API server said of a pod, in order: (time, whether it was Ready, restarts of its engine)."""

    lines: Repeated
    began: float = field(default_factory=time.monotonic)

    def seen(self) -> list[tuple[float, bool, int]]:
        """All that was said so far."""
        found = ((at, line.split()) for at, line in list(self.lines.seen))
        return [(at, words[0] == "True", int(words[1])) for at, words in found if len(words) == 2]

    def first(self, ready: bool, after: float) -> float | None:
        """When it was first said, after a time, that the pod is Ready, or that it is not."""
        return next((at for at, state, _ in self.seen() if at > after and state is ready), None)

    def restarted_at(self, restarts: int) -> float:
        """When it was first said that the engine has been restarted so often. Raises StopIteration before that."""
        return next(at for at, _, count in self.seen() if count >= restarts)

    def restarts(self) -> int:
        """How often the engine was restarted, as last said."""
        return self.seen()[-1][2]


@contextmanager
def watched(namespace: Namespace, pod: str) -> Iterator[PodWatch]:
    """Watch a pod while the body runs."""
    kubeconfig = f"--kubeconfig={namespace.stage.kubectl.kubeconfig}"
    shown = f'jsonpath={READY}{{" "}}{RESTARTS}{{"\\n"}}'
    lines = Repeated([str(program()), kubeconfig, "-n", namespace.name, "get", "pod", pod, "-w", "-o", shown])
    watch = PodWatch(lines)
    try:
        until(lambda: bool(watch.seen()), f"pod {pod} is watched", 30, every=0.1)
        yield watch
    finally:
        lines.end()
