"""`make test`: every tier, in lanes that run side by side; last and alone, the tiers that measure times.

Each tier is a target of the Makefile and can be run alone. A tier that fails does not keep the next from running; the
result of all is printed at the end, and the exit status is 0 only when every one passed.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from clusters import lifetime
from clusters.progress import elapsed

STOP_SECONDS = 60
POLL_SECONDS = 0.05
# The last line of a pytest run with -q.
SUMMARY = re.compile(
    r"^=*\s*((\d+ (passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?)(, )?)+ in [\d.]+s.*?)\s*=*$"
)


@dataclass(frozen=True, slots=True)
class Tier:
    """A target of the Makefile and how long it may take. Where one that does not count fails, the next says why."""

    target: str
    limit_seconds: int
    counts: bool = True


@dataclass(frozen=True, slots=True)
class Result:
    """How a tier ended: `passed`, `failed`, `took too long`; with pytest's own last line where there is one."""

    target: str
    outcome: str
    seconds: float
    summary: str = ""
    counts: bool = True

    @property
    def is_good(self) -> bool:
        """Whether nothing speaks against the whole."""
        return self.outcome == "passed" or not self.counts

    def __str__(self) -> str:
        """One line of the table at the end."""
        return f"  {self.target:<16} {self.outcome:<14} {elapsed(self.seconds):>12}   {self.summary}".rstrip()


Lane = tuple[Tier, ...]
"""Tiers that run one after the other."""

# What a lane lacks of prepared programs its tiers build themselves: a failure is theirs to report.
LANES: tuple[Lane, ...] = (
    (Tier("unit", 30 * 60), Tier("parsers-newest", 40 * 60)),
    (Tier("prepare", 60 * 60, counts=False), Tier("cluster-test", 30 * 60), Tier("lint", 20 * 60)),
)
ALONE: Lane = (Tier("node-test", 40 * 60),)


def main() -> int:
    """Run all tiers; returns the exit status."""
    lifetime.end_with_parent()
    results = [*side_by_side(LANES), *side_by_side((ALONE,))]
    print(report(results), flush=True)
    return 0 if all(result.is_good for result in results) else 1


def side_by_side(lanes: Sequence[Lane]) -> list[Result]:
    """Run lanes at the same time; every line says whose it is where there are several."""
    results: list[Result] = []
    running = [_lane(tiers, len(lanes) > 1, results.append) for tiers in lanes]
    try:
        while running:
            running = [lane for lane in running if next(lane, _ENDED) is not _ENDED]
            time.sleep(POLL_SECONDS)
    finally:
        for lane in running:
            lane.close()
    return results


_ENDED = object()
"""What stands for the next step of a lane that has none."""


def report(results: Sequence[Result]) -> str:
    """What is printed at the end."""
    verdict = "passed" if all(result.is_good for result in results) else "FAILED"
    return "\n".join(["", *(str(result) for result in results), f"make test: {verdict}"])


def _lane(tiers: Lane, is_named: bool, ended: Callable[[Result], None]) -> Generator[None, None, None]:
    """Run tiers one after the other, a step at a time."""
    for tier in tiers:
        prefix = f"{tier.target}: " if is_named else ""
        ended((yield from _run(tier, prefix)))


def _run(tier: Tier, prefix: str) -> Generator[None, None, Result]:
    """Run one tier, its output passed on line by line; each step waits for nothing."""
    print(f"== make {tier.target}", flush=True)
    started, summary = time.monotonic(), ""
    deadline = started + tier.limit_seconds
    with _started(tier) as process:
        for line in _lines(process, deadline):
            if line is None:
                yield
                continue
            print(f"{prefix}{line}", flush=True)
            found = SUMMARY.match(line)
            summary = found[1] if found else summary
        late = process.poll() is None and time.monotonic() > deadline
    outcome = "took too long" if late else "passed" if process.returncode == 0 else "failed"
    return Result(tier.target, outcome, time.monotonic() - started, summary, tier.counts)


def _lines(process: "subprocess.Popen[bytes]", deadline: float) -> Iterator[str | None]:
    """The lines that a process prints, until it has ended or the deadline is past; None while there is none."""
    output = process.stdout
    if output is None:
        return
    os.set_blocking(output.fileno(), False)
    rest = b""
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        part = output.read()
        *whole, rest = (rest + (part or b"")).split(b"\n")
        yield from (line.decode(errors="replace") for line in whole)
        if ended and not part:
            break
        if not part:
            yield None
    if rest:
        yield rest.decode(errors="replace")


def for_another_make() -> dict[str, str]:
    """Return the environment for a make of its own: the options and job slots of the one above are not for it."""
    return {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}}


@contextmanager
def _started(tier: Tier) -> "Iterator[subprocess.Popen[bytes]]":
    words = ["setpriv", "--pdeathsig", "TERM", "--", "make", tier.target]
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=for_another_make(),
        start_new_session=True,
    )
    try:
        yield process
    finally:
        _end(process)
        if process.stdout is not None:
            process.stdout.close()


def _end(process: "subprocess.Popen[bytes]") -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            os.killpg(process.pid, number)
            try:
                process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                continue


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("make test: interrupted", file=sys.stderr)
        sys.exit(130)
