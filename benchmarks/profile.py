"""Where the operator's time goes while a fleet comes about: ``python -m benchmarks.profile [N]``.

The operator runs under cProfile, which makes Python twice as slow: shares count, not seconds. They are printed, and
written into ``docs/performance.md``. What built-in functions take is counted for whoever called them.
"""

from __future__ import annotations

import asyncio
import cProfile
import pstats
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks import fleet
from benchmarks.apply_fleet import SETTLE_SECONDS, USER, a_plane, log_of
from benchmarks.report import replace

LEAST_SHARE = 0.02
BUILT_IN = "~"
IMPORTS = "imports"
# By a part of the file's path, the first that fits.
GROUPS = (
    ("/operator/stoker/api/", "the API's models"),
    ("/pydantic/", "the API's models"),
    ("/operator/stoker/plan/", "plan, engines, render"),
    ("/operator/stoker/engines/", "plan, engines, render"),
    ("/operator/stoker/facts/", "plan, engines, render"),
    ("/operator/stoker/render/", "plan, engines, render"),
    ("/operator/stoker/reconcile/", "plan, engines, render"),
    ("/operator/stoker/status/", "status"),
    ("/operator/stoker/", "the operator's cache, queue and writes"),
    ("/kopf/", "kopf: watches and handlers"),
    ("/aiohttp/", "HTTP and TLS"),
    ("/ssl.py", "HTTP and TLS"),
    ("/asyncio/", "asyncio"),
    ("/json/", "JSON"),
    ("importlib", IMPORTS),
)


def main() -> None:
    """Profile one fleet, of 100 services unless an argument says otherwise."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    lines = shares(asyncio.run(measure(count)))
    text = "\n".join([f"Profiled with N = {count}.", "", "| | share of the operator's CPU time |", "|---|---|", *lines])
    print(text)
    replace("profile", text)


async def measure(count: int) -> pstats.Stats:
    """Bring a fleet about with the operator under the profiler."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "profile")
        words = [sys.executable, "-m", "benchmarks.profile", "--operator", str(result)]
        async with (
            a_plane(count) as plane,
            fleet.a_client(plane.kubeconfig) as client,
            fleet.an_operator(plane, USER, log_of(count, "-profile"), words),
        ):
            await asyncio.sleep(SETTLE_SECONDS)
            await fleet.apply_services(client, count)
            await fleet.until_ready(client, count)
        return pstats.Stats(str(result))


def operator(result: Path) -> None:
    """Be the operator, and write the profile when it ends."""
    from stoker.cli import main as command_line

    sys.argv = ["stoker", "operator"]
    profiler = cProfile.Profile(time.process_time)  # waiting costs nothing
    try:
        profiler.runcall(command_line)
    finally:
        profiler.dump_stats(result)


def shares(stats: pstats.Stats) -> list[str]:
    """Return the rows of the table, the largest share first; imports left out."""
    seconds: Counter[str] = Counter()
    for function, (_, _, own, _, callers) in entries(stats).items():
        if function[0] != BUILT_IN:
            seconds[group(function)] += own
            continue
        for caller, (_, _, spent, _) in callers.items():
            seconds[group(caller)] += spent
    del seconds[IMPORTS]
    total = seconds.total()
    return [f"| {name} | {own / total:.0%} |" for name, own in seconds.most_common() if own / total >= LEAST_SHARE]


def entries(stats: pstats.Stats) -> Mapping[tuple[str, int, str], Any]:
    """Return what pstats keeps, of which its type hints know nothing: by function, calls, seconds and callers."""
    found: Mapping[tuple[str, int, str], Any] = vars(stats)["stats"]
    return found


def group(function: tuple[str, int, str]) -> str:
    """Return which part of the process a function belongs to."""
    return next((name for part, name in GROUPS if part in function[0]), "the rest of Python")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--operator"]:
        operator(Path(sys.argv[2]))
    else:
        main()
