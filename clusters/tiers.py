"""`make test`: every tier, one after the other, while what the later ones need is built beside the first.

Each tier is a target of the Makefile and can be run alone. A tier that fails does not keep the next from running; the
result of all is printed at the end, and the exit status is 0 only when every one passed.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from clusters import lifetime
from clusters.progress import elapsed

STOP_SECONDS = 60
# The last line of a pytest run with -q.
SUMMARY = re.compile(
    r"^=*\s*((\d+ (passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?)(, )?)+ in [\d.]+s.*?)\s*=*$"
)


@dataclass(frozen=True, slots=True)
class Tier:
    """A target of the Makefile and how long it may take; `prepared` ones wait for the programs to be built."""

    target: str
    limit_seconds: int
    prepared: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """How a tier ended: `passed`, `failed`, `took too long`; with pytest's own last line where there is one."""

    target: str
    outcome: str
    seconds: float
    summary: str = ""

    def __str__(self) -> str:
        """One line of the table at the end."""
        return f"  {self.target:<16} {self.outcome:<14} {elapsed(self.seconds):>12}   {self.summary}".rstrip()


TIERS = (
    Tier("lint", 10 * 60),
    Tier("unit", 15 * 60),
    Tier("parsers-newest", 30 * 60),
    Tier("cluster-test", 25 * 60, prepared=True),
    Tier("node-test", 40 * 60, prepared=True),
)
PREPARE = Tier("prepare", 60 * 60)


def main() -> int:
    """Run all tiers; returns the exit status."""
    lifetime.end_with_parent()
    results: list[Result] = []
    with _beside(PREPARE) as preparation:
        for tier in TIERS:
            if tier.prepared:
                _await(preparation)
            results.append(run(tier))
    print(report(results), flush=True)
    return 0 if all(result.outcome == "passed" for result in results) else 1


def report(results: Sequence[Result]) -> str:
    """What is printed at the end."""
    verdict = "passed" if all(result.outcome == "passed" for result in results) else "FAILED"
    return "\n".join(["", *(str(result) for result in results), f"make test: {verdict}"])


def run(tier: Tier) -> Result:
    """Run one tier, its output passed on line by line."""
    print(f"== make {tier.target}", flush=True)
    started, summary = time.monotonic(), ""
    with _started(tier, subprocess.PIPE) as process:
        for line in _lines(process, started + tier.limit_seconds):
            print(line, flush=True)
            found = SUMMARY.match(line)
            summary = found[1] if found else summary
        late = process.poll() is None and time.monotonic() > started + tier.limit_seconds
    outcome = "took too long" if late else "passed" if process.returncode == 0 else "failed"
    return Result(tier.target, outcome, time.monotonic() - started, summary)


def _lines(process: "subprocess.Popen[bytes]", deadline: float) -> Iterator[str]:
    """The lines that a process prints, until it has ended or the deadline is past."""
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
            time.sleep(0.05)
    if rest:
        yield rest.decode(errors="replace")


def _await(process: "subprocess.Popen[bytes]") -> None:
    # Its failure is not reported here: the tiers that need what it builds build it themselves, and say what is wrong.
    try:
        process.wait(timeout=PREPARE.limit_seconds)
    except subprocess.TimeoutExpired:
        _end(process)


@contextmanager
def _beside(tier: Tier) -> "Iterator[subprocess.Popen[bytes]]":
    with _started(tier, None) as process:
        yield process


@contextmanager
def _started(tier: Tier, output: int | None) -> "Iterator[subprocess.Popen[bytes]]":
    # A make of its own: the options and job slots of the one above are not for it.
    environment = {
        name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL", "MFLAGS"}
    }
    words = ["setpriv", "--pdeathsig", "TERM", "--", "make", tier.target]
    errors = subprocess.STDOUT if output is not None else None
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment, start_new_session=True
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
