"""Build the programs of a cluster from Go modules, once, into a cache outside the work tree.

The published Kubernetes module requires its staging modules at v0.0.0, so `go install …@version` cannot build it;
modules of our own under `go/` pin everything, and go.sum makes each build the same bytes.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from clusters import paths
from clusters.progress import say, step
from clusters.run import run

KUBERNETES_VERSION = "1.36.3"
BUILD_SECONDS = 60 * 60
DOWNLOAD_SECONDS = 20 * 60
BUILD_FLAGS = ("-trimpath", "-buildvcs=false")
# Static programs run in any root file system, the pause image's empty one included.
BUILD_ENVIRONMENT: Mapping[str, str] = {"GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0", "GOWORK": "off"}


@dataclass(frozen=True, slots=True)
class Binary:
    """A program: the folder under `go/` that pins it, the package that it is built from, variables set in it."""

    name: str
    module: str
    package: str
    variables: tuple[str, ...] = ()


def _kubernetes(name: str) -> Binary:
    # Unstamped, the programs report v0.0.0, and clients that compare versions refuse them.
    package, (major, minor, _) = "k8s.io/component-base/version", KUBERNETES_VERSION.split(".")
    stamp = (f"gitVersion=v{KUBERNETES_VERSION}", f"gitMajor={major}", f"gitMinor={minor}")
    variables = tuple(f"{package}.{assignment}" for assignment in stamp)
    return Binary(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", variables)


# In the order of need: the control plane serves its tests while the rest is still being built.
ALL: tuple[Binary, ...] = (
    Binary("etcd", "kubernetes", "go.etcd.io/etcd/server/v3"),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-scheduler"),
    Binary("kwok", "kubernetes", "sigs.k8s.io/kwok/cmd/kwok"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kubectl"),
    _kubernetes("kubelet"),
    _kubernetes("kube-proxy"),
    Binary("pause", "pause", "stoker.dev/clusters/pause"),
    Binary("coredns", "coredns", "github.com/coredns/coredns"),
    Binary("helm", "helm", "helm.sh/helm/v4/cmd/helm"),
    Binary("lws", "lws", "sigs.k8s.io/lws/cmd"),
    Binary("controller-gen", "crds", "sigs.k8s.io/controller-tools/cmd/controller-gen"),
)
BY_NAME: Mapping[str, Binary] = {binary.name: binary for binary in ALL}

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-scheduler", "kwok", "kube-controller-manager", "kubectl")
NODE = (*CONTROL_PLANE, "kubelet", "kube-proxy", "pause", "coredns")
TESTS = (*NODE, "helm", "controller-gen")


def ensure(names: Iterable[str]) -> dict[str, Path]:
    """Build those of `names` that the cache lacks and return where each lies.

    A build that is killed leaves nothing half: each program is renamed into place when it is whole. Raises KeyError
    for a name that is not in `ALL`, ClusterError when a build fails.
    """
    wanted = [BY_NAME[name] for name in names]
    if any(not location(binary).exists() for binary in wanted):
        with _lock():
            _build_missing([binary for binary in ALL if binary in wanted and not location(binary).exists()])
    return {binary.name: location(binary) for binary in wanted}


def location(binary: Binary) -> Path:
    """Where a program lies once it is built; the folder's name changes with all that goes into the build."""
    return paths.cache_root() / "bin" / _key(binary) / binary.name


def module_folder(binary: Binary) -> Path:
    """The folder of the Go module that pins a program."""
    return paths.MODULES / binary.module


def _key(binary: Binary) -> str:
    digest = hashlib.sha256()
    folder = module_folder(binary)
    for source in sorted((*folder.glob("go.*"), *folder.glob("*.go"))):
        digest.update(source.read_bytes())
    digest.update("\0".join((*BUILD_FLAGS, *_linker_flags(binary), *BUILD_ENVIRONMENT.values())).encode())
    return f"{binary.module}-{digest.hexdigest()[:16]}"


def _linker_flags(binary: Binary) -> tuple[str, ...]:
    return ("-s", "-w", *(word for variable in binary.variables for word in ("-X", variable)))


def _build_missing(missing: Sequence[Binary]) -> None:
    modules = list(dict.fromkeys(binary.module for binary in missing))
    with ThreadPoolExecutor(max_workers=1) as pool:
        # One thread downloads module after module, beside the builds of those that are there.
        downloads = {module: pool.submit(_download, module) for module in modules}
        try:
            for binary in missing:
                _await_download(binary.module, downloads[binary.module])
                build(binary)
        finally:
            pool.shutdown(cancel_futures=True)


def _await_download(module: str, download: "Future[None]") -> None:
    if not download.done():
        with step(f"downloading the Go modules of {module}"):
            download.result(timeout=DOWNLOAD_SECONDS)
    download.result()


def _download(module: str) -> None:
    run(["go", "mod", "download"], cwd=paths.MODULES / module, env=BUILD_ENVIRONMENT, timeout_seconds=DOWNLOAD_SECONDS)


def build(binary: Binary) -> None:
    """Build one program and put it in its place in one step."""
    target = location(binary)
    target.parent.mkdir(parents=True, exist_ok=True)
    for leftover in target.parent.glob(f".{binary.name}.*"):
        leftover.unlink()
    partial = target.with_name(f".{binary.name}.{os.getpid()}")
    with step(f"building {binary.name}"):
        run(
            build_command(binary, partial),
            cwd=module_folder(binary),
            env=BUILD_ENVIRONMENT,
            timeout_seconds=BUILD_SECONDS,
        )
        partial.replace(target)


def build_command(binary: Binary, output: Path) -> list[str]:
    """The command that builds a program, run in its module's folder. Nice, so that the machine stays usable."""
    linker = " ".join(_linker_flags(binary))
    return ["nice", "go", "build", *BUILD_FLAGS, "-ldflags", linker, "-o", str(output), binary.package]


@contextmanager
def _lock() -> Iterator[None]:
    """One build at a time on a machine: a second one waits, and then finds the work done."""
    path = paths.cache_root() / "bin" / ".lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("  waiting for another build of the cluster's programs to end")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
