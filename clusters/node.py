"""One real node: containerd, kubelet, kube-proxy and cluster DNS, in the namespaces of a cluster."""

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from clusters import cgroups, components, containerd, dns, identities, images, kubelet, mounts, paths
from clusters.controlplane import ControlPlane, await_true
from clusters.errors import ClusterError
from clusters.network import Network
from clusters.processes import Processes
from clusters.run import run, succeeds

START_SECONDS = 120.0
IMPORT_SECONDS = 10 * 60
PROGRAMS = ("containerd", "kubelet", "kube-proxy", "coredns")


class Node:
    """The node of a cluster; `folder` holds its state, `name` is the cluster's and the Node object's."""

    def __init__(self, name: str, folder: Path, anchor: int, tied: bool = True, cgroup: str | None = None) -> None:
        """Point at a node that lives in the namespaces of process `anchor`; nothing is started.

        `cgroup` is the cluster's, see `cgroups`; starting the node takes it.
        """
        self.name = name
        self.cgroup = cgroup
        self.folder = folder
        self.anchor = anchor
        group = cgroups.system_group(cgroup) if cgroup else None
        self.processes = Processes(folder, tied, tuple(mounts.enter(anchor)), group)

    def start(self, plane: ControlPlane, network: Network, programs: Mapping[str, Path]) -> None:
        """Bring the node up; returns when it is Ready."""
        mounts.prepare(self.anchor, self.folder / "mounts", {containerd.STORE: self._store})
        self._start_containerd()
        self._forget_containers()
        self.load_image(images.build(pause_image(programs["pause"])))
        self._start_kubelet(plane, network, programs)
        self._start_proxy(plane, programs)
        self._start_dns(plane, network, programs)
        await_true(
            lambda: self._is_ready(plane),
            what=f"node {self.name} in condition Ready",
            timeout_seconds=START_SECONDS,
            check=lambda: self.processes.require_running(*PROGRAMS),
            pause_seconds=0.3,
        )

    def load_image(self, archive: Path) -> None:
        """Import an image archive, unless that very archive is what was imported last under its name.

        Images outlive the cluster, in the cache: the next one of the same name finds them there. Raises ClusterError
        where there is no such archive.
        """
        if not archive.is_file():
            raise ClusterError(f"{archive} is not there; build the images again, with `make images`")
        image, version = archive.stem.rpartition("-")[0], f"{archive} {archive.stat().st_mtime_ns}"
        loaded = self._loaded()
        if loaded.get(image) != version:
            self._ctr("images", "import", str(archive))
            paths.write_atomically(self._loaded_file, json.dumps({**loaded, image: version}))

    def enter(self) -> list[str]:
        """The words before a command that run it beside the node's programs: same mounts, same network."""
        return mounts.enter(self.anchor)

    @property
    def _store(self) -> Path:
        return paths.cache_root() / "containerd" / self.name

    @property
    def _loaded_file(self) -> Path:
        return self._store / "images.json"

    def _start_containerd(self) -> None:
        for remembered in containerd.REMEMBERED:
            shutil.rmtree(self._store / remembered, ignore_errors=True)
        pods = self._write("network/10-pods.conflist", containerd.network_configuration(components.POD_CIDR))
        file = self._write("containerd.toml", containerd.configuration(pods.parent))
        self.processes.spawn("containerd", containerd.command(file))
        await_true(
            lambda: succeeds([*self.enter(), *containerd.ctr("version")]),
            what="containerd's socket",
            timeout_seconds=START_SECONDS,
            check=lambda: self.processes.require_running("containerd"),
        )

    def _forget_containers(self) -> None:
        """Remove what is recorded of the containers of an earlier run; the kubelet would take it for its own."""
        recorded = self._ctr("containers", "list", "--quiet").split()
        if recorded:
            self._ctr("containers", "delete", *recorded)
            self.processes.stop("containerd")
            self._start_containerd()

    def _ctr(self, *words: str) -> str:
        return run([*self.enter(), *containerd.ctr(*words)], timeout_seconds=IMPORT_SECONDS)

    def _start_kubelet(self, plane: ControlPlane, network: Network, programs: Mapping[str, Path]) -> None:
        user = identities.node_user(self.name)
        kubeconfig = plane.kubeconfig_for(user.name, user.groups)
        settings = kubelet.configuration(f"/{self.cgroup}", network.address, client_certificate(plane.folder))
        file = self._write("kubelet.yaml", settings)
        command = kubelet.command(programs["kubelet"], file, kubeconfig, self.name, network.address)
        self.processes.spawn("kubelet", command)

    def _start_proxy(self, plane: ControlPlane, programs: Mapping[str, Path]) -> None:
        kubeconfig = plane.kubeconfig_for(identities.KUBE_PROXY.name, identities.KUBE_PROXY.groups)
        file = self._write("kube-proxy.yaml", kubelet.proxy_configuration(kubeconfig, self.name))
        self.processes.spawn("kube-proxy", kubelet.proxy_command(programs["kube-proxy"], file))

    def _start_dns(self, plane: ControlPlane, network: Network, programs: Mapping[str, Path]) -> None:
        plane.apply(*dns.roles())
        kubeconfig = plane.kubeconfig_for(dns.USER.name, dns.USER.groups)
        file = self._write("Corefile", dns.configuration(network.address, kubeconfig))
        self.processes.spawn("coredns", dns.command(programs["coredns"], file))

    def _is_ready(self, plane: ControlPlane) -> bool:
        query = '{.status.conditions[?(@.type=="Ready")].status}/{.spec.taints}'
        try:
            return plane.kubectl("get", "node", self.name, "-o", f"jsonpath={query}") == "True/"
        except ClusterError:
            return False

    def _loaded(self) -> dict[str, str]:
        with suppress(FileNotFoundError, json.JSONDecodeError):
            return dict(json.loads(self._loaded_file.read_text()))
        return {}

    def _write(self, name: str, content: str) -> Path:
        path = self.folder / name
        paths.write_atomically(path, content)
        return path


def client_certificate(folder: Path) -> Path:
    """Where the certificate lies with which the API server identifies itself to the kubelet."""
    return folder / "kubelet-client.crt"


def create_client_certificate(folder: Path) -> tuple[str, ...]:
    """Make the API server's client certificate, which signs for itself, and return the flags that use it."""
    certificate, key = client_certificate(folder), folder / "kubelet-client.key"
    folder.mkdir(parents=True, exist_ok=True)
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-noenc", "-days", "3650"]
    subject = ["-subj", "/O=system:masters/CN=kube-apiserver-kubelet-client", "-addext", "extendedKeyUsage=clientAuth"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    run(["openssl", "req", "-x509", *kind, *subject, *files], timeout_seconds=30)
    return f"--kubelet-client-certificate={certificate}", f"--kubelet-client-key={key}"


def pause_image(program: Path) -> images.Recipe:
    """The image that holds the namespaces of each pod."""
    containerfile = Path(__file__).parent / "pause.Containerfile"
    return images.Recipe(containerd.PAUSE_IMAGE, containerfile, {"pause": program}, base=images.SCRATCH)
