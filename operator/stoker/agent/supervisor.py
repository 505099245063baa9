"""The agent's first process: holds the port and keeps a worker on it.

A sidecar container that ends makes its pod not ready at once, so a fault of the worker must not end the container.
The listening socket belongs to this process: while a worker is replaced, callers wait in the socket's queue instead of
being refused, and who waits for a drain goes on waiting (`handover`). Little of the standard library is imported and
nothing else: this process stays small.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from stoker.agent import STOP_SIGNALS
from stoker.agent.handover import Held, channel

BACKLOG: Final = 128
FIRST_BEAT_SECONDS: Final = 60.0
SILENCE_SECONDS: Final = 20.0
STOP_SECONDS: Final = 5.0
STEADY_SECONDS: Final = 60.0
BACK_OFF_SECONDS: Final = (0.0, 0.2, 0.5, 1.0, 2.0, 5.0)
_TICK_SECONDS: Final = 0.5


def tell(message: str, **fields: object) -> None:
    """One line of JSON on standard error."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = {"time": now, "level": "info", "logger": "stoker.agent.supervisor", "message": message, **fields}
    print(json.dumps(line), file=sys.stderr, flush=True)  # noqa: T201


def listen(port: int) -> socket.socket:
    """A socket on all addresses of the pod, of both families where the kernel has IPv6. Raises OSError."""
    dual = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    return socket.create_server(("", port), family=family, dualstack_ipv6=dual, backlog=BACKLOG)


@dataclass(slots=True)
class Worker:
    """One worker process and the supervisor's end of the channel to it."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    born: float
    beat_at: float | None = None

    @classmethod
    def spawn(cls, listening: socket.socket, held: Held) -> Worker:
        """Start a worker on the socket, and on what others left to it. Raises OSError where no process can be had."""
        ours, theirs = channel()
        handed = (listening.fileno(), theirs.fileno(), *held.connections.values())
        command = [sys.executable, "-P", "-m", "stoker.agent.worker", *map(str, handed)]
        try:
            process = subprocess.Popen(command, pass_fds=handed, stdin=subprocess.DEVNULL)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        return cls(process, ours, time.monotonic())

    def lives(self, held: Held) -> bool:
        """Wait a moment for a message; false once the worker has closed its end."""
        readable, _, _ = select.select([self.channel], [], [], _TICK_SECONDS)
        if readable and not held.receive(self.channel):
            return False
        if readable:
            self.beat_at = time.monotonic()
        return True

    def is_silent(self, now: float) -> bool:
        """Whether the worker has given no sign of life for too long."""
        if self.beat_at is None:
            return now - self.born > FIRST_BEAT_SECONDS
        return now - self.beat_at > SILENCE_SECONDS

    def end(self) -> int:
        """Make sure that the process is gone; its exit status."""
        try:
            return self.process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()
        finally:
            self.channel.close()


@dataclass(slots=True)
class Supervisor:
    """Keeps one worker alive until a signal asks to stop."""

    listening: socket.socket
    held: Held = field(default_factory=Held)
    worker: Worker | None = None
    stop_at: float | None = None
    deaths: int = field(default=0)

    def stop(self, number: int, _frame: object) -> None:
        """Signal handler: hand the signal on and allow the worker a moment."""
        if self.stop_at is None:
            self.stop_at = time.monotonic() + STOP_SECONDS
        if self.worker is not None:
            self.worker.process.send_signal(number)

    def run(self) -> int:
        """Supervise until told to stop; the exit status."""
        for number in STOP_SIGNALS:
            signal.signal(number, self.stop)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)  # what came meanwhile arrives now
        while self.stop_at is None:
            self._pause(BACK_OFF_SECONDS[min(self.deaths, len(BACK_OFF_SECONDS) - 1)])
            if self.stop_at is None:
                self._one_life()
        return 0

    def _one_life(self) -> None:
        try:
            worker = self.worker = Worker.spawn(self.listening, self.held)
        except OSError as error:
            self.deaths += 1
            tell("the worker could not be started and is tried again", reason=str(error), deaths=self.deaths)
            return
        if self.stop_at is not None:  # the signal came while there was nobody to hand it to
            worker.process.terminate()
        while worker.lives(self.held):
            self._kill_if_due(worker)
        status = worker.end()
        self.worker = None
        self.deaths = 0 if time.monotonic() - worker.born > STEADY_SECONDS else self.deaths + 1
        if self.stop_at is None:
            tell("the worker ended and is started again", status=status, deaths=self.deaths)

    def _kill_if_due(self, worker: Worker) -> None:
        now = time.monotonic()
        if self.stop_at is not None and now > self.stop_at:
            worker.process.kill()
        elif worker.is_silent(now):
            tell("the worker gives no sign of life and is killed", pid=worker.process.pid)
            worker.process.kill()

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self.stop_at is None and time.monotonic() < until:
            time.sleep(0.05)


def main(arguments: list[str]) -> int:
    """Supervise on the port that is the only argument."""
    try:
        listening = listen(int(arguments[0]))
    except OSError as error:
        print(f"port {arguments[0]}: {os.strerror(error.errno or 0)}; give the agent a free port", file=sys.stderr)  # noqa: T201
        return 1
    listening.set_inheritable(True)
    return Supervisor(listening).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
