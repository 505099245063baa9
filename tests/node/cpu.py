"""CPU time of a container, and how to give it less: by the cgroup of its processes, of version 1 or 2."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clusters import cgroups

PERIOD_MICROSECONDS = 100_000
LEAST_QUOTA_MICROSECONDS = 1_000


def _file(process: int, *names: str) -> Path:
    """Return the first control file that the cgroups of a process have; version 1 has a cpu.stat too, another one."""
    own = [line.split(":", 2)[2].lstrip("/") for line in Path(f"/proc/{process}/cgroup").read_text().splitlines()]
    groups = [hierarchy / path for hierarchy in _hierarchies() for path in own if path]
    for file in (group / name for name in names for group in groups):
        if file.exists():
            return file
    raise AssertionError(f"the cgroups of process {process} have none of {names}")


def _hierarchies() -> list[Path]:
    return cgroups.hierarchies(Path("/proc/mounts").read_text())


def cpu_seconds(process: int) -> float:
    """Return the CPU seconds that the container of a process has used."""
    file = _file(process, "cpuacct.usage", "cpu.stat")
    if file.name == "cpuacct.usage":
        return int(file.read_text()) / 1e9
    return next(int(line.split()[1]) for line in file.read_text().splitlines() if line.startswith("usage_usec")) / 1e6


@contextmanager
def throttled(process: int, cores: float) -> Iterator[None]:
    """Let the container of a process use at most so many cores while the body runs."""
    file = _file(process, "cpu.cfs_quota_us", "cpu.max")
    before, quota = file.read_text(), str(max(LEAST_QUOTA_MICROSECONDS, round(cores * PERIOD_MICROSECONDS)))
    file.write_text(quota if file.name == "cpu.cfs_quota_us" else f"{quota} {PERIOD_MICROSECONDS}")
    try:
        yield
    finally:
        file.write_text(before)
