"""The mount namespace of a node.

Mounts that the kubelet and containerd make are seen in it alone and vanish with its last process, so nothing has to be
unmounted after a run that was killed. The folders whose paths are fixed in those programs are the cluster's own there.
"""

from collections.abc import Mapping
from pathlib import Path

from clusters.errors import ClusterError
from clusters.run import run

MOUNT_SECONDS = 30
PRIVATE = (
    "/run/containerd",
    "/var/lib/containerd",
    "/var/lib/kubelet",
    "/var/lib/cni",
    "/var/log/pods",
    "/var/log/containers",
)
# The kubelet sets these, with these values, for the whole machine. It is shown files of its own instead.
SYSCTLS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def enter(pid: int) -> list[str]:
    """The words before a command that run it in the mount and network namespaces of a process."""
    return ["nsenter", f"--target={pid}", "--mount", "--net"]


def prepare(pid: int, folder: Path, elsewhere: Mapping[str, Path] | None = None) -> None:
    """Put the cluster's own folders in their places in the mount namespace of process `pid`.

    They lie below `folder`, except for the places that `elsewhere` gives a folder to. Raises ClusterError where the
    process has no mount namespace of its own: all of this would then befall the host.
    """
    if Path(f"/proc/{pid}/ns/mnt").readlink() == Path("/proc/self/ns/mnt").readlink():
        raise ClusterError(f"process {pid} shares the mounts of this one; a node needs a mount namespace of its own")
    for place in PRIVATE:
        own = (elsewhere or {}).get(place, folder / _slug(place))
        own.mkdir(parents=True, exist_ok=True)
        Path(place).mkdir(parents=True, exist_ok=True)
        _mount(pid, "--bind", str(own), place)
    for name, value in SYSCTLS.items():
        own = folder / _slug(name)
        own.write_text(f"{value}\n")
        _mount(pid, "--bind", str(own), f"/proc/sys/{name}")
    # The kubelet's mounts must reach containerd's containers. Last, so that they are not seen in `folder` as well.
    _mount(pid, "--make-rshared", "/")


def _slug(path: str) -> str:
    return path.strip("/").replace("/", "-")


def _mount(pid: int, *words: str) -> None:
    run([*enter(pid), "mount", *words], timeout_seconds=MOUNT_SECONDS)
