"""A cluster that was taken down, or killed and cleaned up after, leaves the machine as it was."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters import cgroups, containerd, janitor, local, paths
from clusters.errors import ClusterError
from clusters.local import LocalCluster

NAME = "stoker-trial"
CLUSTER = LocalCluster(NAME)
SYSCTLS = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys")
LEFT_BY_PROGRAMS = ("/run/netns", "/run/containerd", "/var/lib/cni", "/var/lib/kubelet", "/var/log/pods")


def machine() -> dict[str, list[str]]:
    """What a cluster could leave behind: rules, links, namespaces, mounts, cgroups, settings, files, processes."""
    return {
        "iptables": _printed("iptables-save"),
        "links": sorted(
            re.sub(r"^\d+: ", "", line) for line in _printed("ip", "-o", "link") if CLUSTER.host_interface in line
        ),
        "namespaces": _printed("ip", "netns", "list"),
        "mounts": Path("/proc/mounts").read_text().splitlines(),
        "cgroups": sorted(str(root) for root in cgroups.roots(CLUSTER.cgroup) if root.exists()),
        "settings": [Path("/proc/sys", name).read_text().strip() for name in SYSCTLS],
        "files": sorted(str(path) for folder in LEFT_BY_PROGRAMS for path in Path(folder).glob("*")),
        "folders": [str(path) for path in (paths.clusters_root() / NAME,) if path.exists()],
        "processes": sorted(path.parent.name for path in _processes_of_the_cluster()),
    }


def _printed(*words: str) -> list[str]:
    # Comments of iptables-save carry the time of day.
    printed = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30).stdout
    return [line for line in printed.splitlines() if not line.startswith("#")]


def _processes_of_the_cluster() -> Iterator[Path]:
    for command_line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"/{NAME}/".encode() in command_line.read_bytes():
                yield command_line
        except OSError:
            continue


@pytest.fixture
def trial() -> Iterator[LocalCluster]:
    """A cluster of these tests' own, taken down whatever happens."""
    cluster = LocalCluster(NAME)
    cluster.down()
    yield cluster
    cluster.down()


def run_a_pod(cluster: LocalCluster) -> None:
    """A pod that runs: it has a network, mounts and a cgroup of its own."""
    plane = cluster.control_plane
    plane.kubectl("create", "namespace", "trial", "--save-config")
    plane.kubectl("label", "namespace", "trial", "pod-security.kubernetes.io/enforce=privileged")
    container = {"name": "pause", "image": "stoker.local/pause:1", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    volume = {"name": "v", "emptyDir": {"medium": "Memory"}}
    plane.apply(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "trial", "namespace": "trial"},
            "spec": {"containers": [container], "volumes": [volume]},
        }
    )
    plane.kubectl(
        "wait", "--for=condition=Ready", "pod/trial", "--namespace=trial", "--timeout=60s", timeout_seconds=70
    )


def test_a_cluster_that_was_taken_down_leaves_nothing(trial: LocalCluster) -> None:
    before = machine()
    trial.up()
    run_a_pod(trial)
    during = machine()
    assert {name for name in during if during[name] != before[name]} == {"links", "cgroups", "folders", "processes"}
    trial.down()
    assert machine() == before


def test_a_run_that_was_killed_is_cleaned_up_after(trial: LocalCluster) -> None:
    before = machine()
    program = (
        "import time; from clusters.controlplane import Options; from clusters.local import LocalCluster;"
        f"LocalCluster({NAME!r}, Options(tied=True)).up(); print('up', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=dict(os.environ)) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"up\n"
        run_a_pod(trial)
        with pytest.raises(ClusterError, match=f"cluster {NAME} is in use by process {owner.pid}"):
            trial.down()
        owner.send_signal(signal.SIGKILL)
    assert machine() != before
    await_orphan()
    local.sweep()
    assert machine() == before


def await_orphan() -> None:
    """Wait until the folder's owner is seen to be gone."""
    deadline = time.monotonic() + 10
    while paths.clusters_root() / NAME not in janitor.leftovers():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_cluster_whose_programs_died_is_brought_up_anew(trial: LocalCluster) -> None:
    trial.up()
    run_a_pod(trial)
    first, containers = trial.status(), recorded_containers(trial)
    cgroups.kill(CLUSTER.cgroup)
    assert not trial.is_up()
    trial.up()
    assert trial.is_up()
    assert trial.status() != first
    assert containers
    assert not containers & recorded_containers(trial)


def recorded_containers(cluster: LocalCluster) -> set[str]:
    """The containers that containerd has on record; what it stores outlives a cluster, for the sake of the images."""
    listed = subprocess.run(
        [*cluster.node.enter(), *containerd.ctr("containers", "list", "--quiet")],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return set(listed.stdout.split())
