"""Progress of long steps, for people and for logs without a terminal."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

HEARTBEAT_SECONDS = 15.0


def elapsed(seconds: float) -> str:
    """A duration as people say it: `8 s`, `2 min 05 s`."""
    whole = int(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02d} s"


def say(line: str) -> None:
    """Print one line of progress to standard error, at once."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def step(title: str, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> Iterator[None]:
    """Announce a step, say every so often that it still runs, and how long it took in the end."""
    say(f"  {title} ...")
    started, done = time.monotonic(), threading.Event()
    beat = threading.Thread(target=_beat, args=(title, started, done, heartbeat_seconds), daemon=True)
    beat.start()
    outcome = "failed after"
    try:
        yield
        outcome = "done in"
    finally:
        done.set()
        beat.join()
        say(f"  {title}: {outcome} {elapsed(time.monotonic() - started)}")


def _beat(title: str, started: float, done: threading.Event, heartbeat_seconds: float) -> None:
    while not done.wait(heartbeat_seconds):
        say(f"  {title} ... {elapsed(time.monotonic() - started)}")
