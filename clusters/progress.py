"""Progress of long steps, for people and for logs without a terminal.

`python3 clusters/progress.py TITLE -- COMMAND ...` runs a command as one step; the Makefile does, before there is an
environment: nothing but the standard library is imported here.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType

HEARTBEAT_SECONDS = 15.0
COMMAND_SECONDS = 2 * 60 * 60
END_SECONDS = 10.0
USAGE, NOT_FOUND, TOO_LONG, INTERRUPTED, SIGNALLED = 2, 127, 124, 130, 128
"""Exit codes that shells know."""


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


def main(arguments: Sequence[str], heartbeat_seconds: float = HEARTBEAT_SECONDS) -> int:
    """Run TITLE -- COMMAND ... as a step and return the command's exit code, as a shell gives it."""
    if len(arguments) < 3 or arguments[1] != "--":
        say("usage: progress.py TITLE -- COMMAND ...")
        return USAGE
    title, _, *command = arguments
    try:
        with step(title, heartbeat_seconds):
            _run(command)
    except subprocess.CalledProcessError as failure:
        return failure.returncode if failure.returncode > 0 else SIGNALLED - failure.returncode
    except FileNotFoundError:
        say(f"  {title}: there is no program {command[0]}")
        return NOT_FOUND
    except subprocess.TimeoutExpired:
        return TOO_LONG
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def _run(command: Sequence[str]) -> None:
    """Run a command in a session of its own, so that whatever it starts can be ended with it."""
    process = subprocess.Popen(command, start_new_session=True)
    try:
        code = process.wait(COMMAND_SECONDS)
    except BaseException:
        _end(process)
        raise
    if code:
        raise subprocess.CalledProcessError(code, command)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ask all processes of a command to end, and make them after a while."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + END_SECONDS
        while time.monotonic() < deadline:
            process.poll()
            os.killpg(process.pid, 0)
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)


def _leave(number: int, _frame: FrameType | None) -> None:
    # Once: the end of the command is not to be interrupted.
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(SIGNALLED + number)


if __name__ == "__main__":
    for told in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(told) is not signal.SIG_IGN:
            signal.signal(told, _leave)
    sys.exit(main(sys.argv[1:]))
