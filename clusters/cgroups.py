"""The cgroup of a cluster: the kubelet's pods live below it, and so does everything that the cluster starts.

Two kubelets under one root destroy each other's pods, hence a root of its own for each cluster; and what is left of a
killed run is found by its place here, whatever it calls itself.
"""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from clusters.errors import ClusterError
from clusters.processes import ProcessRecord, send, start_ticks

KILL_SECONDS = 15.0
# What the kubelet looks for in a cgroup of version 2.
CONTROLLERS = ("cpu", "cpuset", "io", "memory", "hugetlb", "pids")
# cpuset groups of version 1 are born without CPUs and memory nodes, and take no process until they have some.
CPUSET_FILES = ("cpuset.cpus", "cpuset.mems")


def hierarchies(mounts: str) -> list[Path]:
    """Where cgroup hierarchies of either version are mounted, from the text of /proc/mounts."""
    fields = [line.split() for line in mounts.splitlines()]
    return [Path(words[1]) for words in fields if words[2] in {"cgroup", "cgroup2"}]


def roots(name: str) -> list[Path]:
    """The folders of a cluster's cgroup, one for each hierarchy."""
    return [hierarchy / name for hierarchy in hierarchies(Path("/proc/mounts").read_text())]


def create(name: str) -> None:
    """Make a cluster's cgroup in every hierarchy, with a group `system` for the cluster's own programs."""
    for root in roots(name):
        for folder in (root, root / "system"):
            folder.mkdir(exist_ok=True)
            _inherit_cpuset(folder)
        _delegate(root)


def system_group(name: str) -> Path:
    """The group in which a cluster's own programs are counted."""
    return _tracking(name) / "system"


def members(name: str) -> list[ProcessRecord]:
    """Every process in a cluster's cgroup, containers included."""
    files = _tracking(name).rglob("cgroup.procs") if _tracking(name).is_dir() else ()
    pids = {int(line) for file in files for line in _read_lines(file)}
    found = [(pid, start_ticks(pid)) for pid in sorted(pids)]
    return [ProcessRecord("member", pid, ticks) for pid, ticks in found if ticks is not None]


def kill(name: str) -> None:
    """End every process in a cluster's cgroup by force. Raises ClusterError when some survive that."""
    deadline = time.monotonic() + KILL_SECONDS
    while remaining := members(name):
        if time.monotonic() > deadline:
            pids = ", ".join(str(each.pid) for each in remaining)
            raise ClusterError(f"processes {pids} of cluster {name} did not end within {KILL_SECONDS:.0f} s of SIGKILL")
        for each in remaining:
            send(each, signal.SIGKILL)
        time.sleep(0.05)


def delete(name: str) -> None:
    """Remove a cluster's cgroup from every hierarchy; nothing may run in it any more."""
    deadline = time.monotonic() + KILL_SECONDS
    for root in roots(name):
        while root.is_dir() and not _remove_tree(root):
            if time.monotonic() > deadline:
                raise ClusterError(f"the cgroup {root} cannot be removed; a process may still be in it")
            time.sleep(0.05)


def _tracking(name: str) -> Path:
    """The hierarchy by which processes are found: `pids`, or the one of version 2 that holds all controllers."""
    candidates = roots(name)
    for root in candidates:
        if root.parent.name == "pids":
            return root
    for root in candidates:
        if root.parent == Path("/sys/fs/cgroup"):
            return root
    raise ClusterError("neither a cgroup hierarchy `pids` nor cgroup version 2 is mounted; containers need one of them")


def _inherit_cpuset(folder: Path) -> None:
    for name in CPUSET_FILES:
        own, above = folder / name, folder.parent / name
        if own.exists() and above.exists() and not own.read_text().strip():
            own.write_text(above.read_text())


def _delegate(root: Path) -> None:
    """Version 2 alone: let groups below use the controllers that the kubelet asks for."""
    if (root.parent / "cgroup.controllers").exists():
        for folder in (root.parent, root):
            for controller in CONTROLLERS:
                # One at a time: a controller that is not there must not keep the others away.
                with suppress(OSError):
                    (folder / "cgroup.subtree_control").write_text(f"+{controller}")


def _remove_tree(root: Path) -> bool:
    for folder, _, _ in os.walk(root, topdown=False):
        with suppress(OSError):
            Path(folder).rmdir()
    return not root.exists()


def _read_lines(file: Path) -> list[str]:
    with suppress(OSError):
        return file.read_text().split()
    return []
