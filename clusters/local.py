"""The provider `local`: a whole cluster on this machine, in namespaces and a cgroup of its own.

What it leaves on the host while it runs: one veth pair, one cgroup, its processes, and its folder below the cache.
`down` removes all of it, and so does the next `up` after a run that was killed. Images and the last logs stay in the
cache, for the next cluster of that name and for whoever looks for a cause.
"""

import fcntl
import hashlib
import os
import re
import select
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from clusters import binaries, cgroups, debian, dns, identities, janitor, network, node, paths
from clusters.controlplane import FOLDER_PREFIX, ControlPlane, Options
from clusters.errors import ClusterError
from clusters.network import Network
from clusters.node import Node
from clusters.processes import Processes, ProcessRecord, end, is_alive, read_records, this_process
from clusters.progress import say, step
from clusters.run import run

LOCK_SECONDS = 120.0
FORWARD_SECONDS = 20.0
EXEC_SECONDS = 120.0
# The process that keeps the cluster's namespaces open.
ANCHOR = ("unshare", "--net", "--mount", "--propagation", "private", "sleep", "infinity")
PARTS = {*binaries.CONTROL_PLANE, *node.PROGRAMS, "anchor"} - {"kubectl"}


class LocalCluster:
    """A cluster with one real node, by name: two of different names run side by side.

    `options` are those of its control plane. A `tied` cluster ends with this process; another one goes on until `down`,
    called by whoever gives the same name.
    """

    def __init__(self, name: str = "stoker-demo", options: Options | None = None) -> None:
        """Point at a cluster, whether it is up or not; nothing is started."""
        self.name = name
        self.options = options or Options(tied=False)
        self.folder = paths.clusters_root() / name
        # Of another cache may be another cluster of this name, whose traces are none of ours.
        identity = hashlib.sha256(str(self.folder.absolute()).encode()).hexdigest()[:8]
        self.cgroup = f"{name}-{identity}"
        self.host_interface = f"stk-{identity}"
        self._record = self.folder / "network.json"
        self._processes = Processes(self.folder, self.options.tied)
        self._plane = ControlPlane(self.folder / "control-plane", self.options)
        self._node: Node | None = None

    def up(self) -> None:
        """Bring the cluster up; returns when its node is Ready. Nothing happens where it is up already."""
        debian.ensure()
        programs = binaries.ensure(binaries.NODE)
        sweep(except_for=self.name)
        with self._lock():
            if self.is_up():
                return
            self._refuse_if_used()
            self._remove()
            with step(f"starting the cluster {self.name}"):
                self._start(programs)

    def down(self) -> None:
        """Remove the cluster; nothing happens where there is none. Its images and its last logs stay in the cache."""
        with self._lock():
            self._refuse_if_used()
            self._remove()

    def is_up(self) -> bool:
        """Whether every part of it runs."""
        return {record.name for record in self._records() if is_alive(record)} >= PARTS

    def status(self) -> str:
        """One line for each part, or that there is none."""
        lines = [f"{each.name:<26} {'runs' if is_alive(each) else 'ended'}  pid {each.pid}" for each in self._records()]
        heading = f"cluster {self.name}, kubeconfig {self.kubeconfig}" if lines else f"cluster {self.name} is not up"
        return "\n".join([heading, *lines])

    @property
    def control_plane(self) -> ControlPlane:
        """Its control plane, for kubectl, tokens and the audit log."""
        return self._plane

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig; its server address works on the host and inside the namespace."""
        return self._plane.kubeconfig

    @property
    def network(self) -> Network:
        """Names and addresses: pods reach programs on the host under `host_address`. Raises ClusterError when down."""
        found = network.load(self._record)
        if found is None:
            raise self._not_up()
        return found

    @property
    def node(self) -> Node:
        """Its node. Raises ClusterError when down."""
        return Node(self.name, self._node_folder, self._anchor())

    def enter(self) -> list[str]:
        """The words before a command that give it the cluster's network: pods and ClusterIPs are reached from there."""
        return network.enter(self._anchor())

    def exec(self, argv: Sequence[str], timeout_seconds: float = EXEC_SECONDS) -> str:
        """Run a command in the cluster's network and return what it printed."""
        return run([*self.enter(), *argv], timeout_seconds=timeout_seconds)

    def load_image(self, archive: Path) -> None:
        """Put an image archive (docker-archive or OCI) where the node finds it."""
        self.node.load_image(archive.resolve())

    @contextmanager
    def port_forward(self, target: str, port: int, namespace: str = "default") -> Iterator[int]:
        """Forward a port of a pod or Service (`pod/chat-0`, `service/chat`); gives the local port that leads there."""
        kubectl = binaries.location(binaries.BY_NAME["kubectl"])
        words = [f"--kubeconfig={self.kubeconfig}", f"--namespace={namespace}", "port-forward", target, f":{port}"]
        command = [str(kubectl), *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as forwarder:
            try:
                yield _forwarded_port(forwarder, target)
            finally:
                forwarder.terminate()

    def _start(self, programs: dict[str, Path]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.options.tied:
            janitor.claim(self.folder)
        try:
            cgroups.create(self.cgroup)
            group = cgroups.system_group(self.cgroup)
            self._processes.group = group
            self._processes.spawn("anchor", ANCHOR)
            net = network.create(self.host_interface, self._anchor(), self._record)
            self._plane = ControlPlane(self._plane.folder, self._plane_options(net, group))
            self._plane.start()
            self._node = Node(self.name, self._node_folder, self._anchor(), self.options.tied, self.cgroup)
            self._node.start(self._plane, net, programs)
        except BaseException:
            self._remove()
            raise

    def _plane_options(self, net: Network, group: Path) -> Options:
        flags = node.create_client_certificate(self._plane.folder)
        return replace(
            self.options,
            address=net.address,
            enter=tuple(self.enter()),
            group=group,
            users=(*self.options.users, identities.node_user(self.name), dns.USER),
            api_server_flags=(*self.options.api_server_flags, *flags),
        )

    def _remove(self) -> None:
        for folder in (self._plane.folder, self._node_folder):
            if folder.is_dir():
                janitor.keep_logs(folder, f"{self.name}/{folder.name}")
        # By force and all at once: nothing of it is kept, and what was killed before has left no order to keep.
        cgroups.kill(self.cgroup)
        end(self._records(), grace_seconds=0)
        for processes in (self._processes, self._plane.processes, *([self._node.processes] if self._node else [])):
            processes.stop()
        cgroups.delete(self.cgroup)
        network.delete(self.host_interface)
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _node_folder(self) -> Path:
        return self.folder / "node"

    def _records(self) -> list[ProcessRecord]:
        folders = (self.folder, self._plane.folder, self._node_folder)
        return [record for folder in folders for record in read_records(folder)]

    def _anchor(self) -> int:
        for record in read_records(self.folder):
            if record.name == "anchor" and is_alive(record):
                return record.pid
        raise self._not_up()

    def _not_up(self) -> ClusterError:
        return ClusterError(f"cluster {self.name} is not up; bring it up with `make up NAME={self.name}`")

    def _refuse_if_used(self) -> None:
        owner = janitor.owner(self.folder)
        if owner is not None and is_alive(owner) and owner != this_process():
            raise ClusterError(f"cluster {self.name} is in use by process {owner.pid}; wait for its end, or end it")

    @contextmanager
    def _lock(self) -> Iterator[None]:
        path = paths.clusters_root() / f".{self.name}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + LOCK_SECONDS
        with path.open("w") as handle:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise ClusterError(f"cluster {self.name} is being brought up or down elsewhere") from None
                    time.sleep(0.2)
            yield


def sweep(except_for: str = "") -> None:
    """Remove clusters whose owner was killed, control planes without a node among them."""
    janitor.sweep(FOLDER_PREFIX)
    for folder in janitor.leftovers():
        if folder.name != except_for:
            say(f"  removing what a killed run left: cluster {folder.name}")
            LocalCluster(folder.name).down()


def _forwarded_port(forwarder: "subprocess.Popen[bytes]", target: str) -> int:
    assert forwarder.stdout is not None  # noqa: S101
    output, deadline, said = forwarder.stdout.fileno(), time.monotonic() + FORWARD_SECONDS, b""
    while select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(output, 4096)
        said += part
        found = re.search(rb"Forwarding from 127\.0\.0\.1:(\d+) ", said)
        if found:
            return int(found[1])
        if not part:
            break
    raise ClusterError(f"kubectl port-forward {target} did not begin to forward:\n{said.decode(errors='replace')}")
