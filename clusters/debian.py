"""Debian packages that the local cluster stands on: installed where they are missing, their services left alone."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from clusters.errors import ClusterError
from clusters.progress import step
from clusters.run import run, succeeds

INSTALL_SECONDS = 15 * 60
RELEASE = "bookworm"
POLICY = Path("/usr/sbin/policy-rc.d")
# Exit status 101 is Debian's "action forbidden by policy": what is installed is not started.
FORBID = "#!/bin/sh\nexit 101\n"
# By package, the program whose presence shows that it is installed.
PACKAGES = {
    "containerd": "/usr/bin/containerd",
    "runc": "/usr/sbin/runc",
    "containernetworking-plugins": "/usr/lib/cni/bridge",
    "iptables": "/usr/sbin/iptables",
    "iproute2": "/usr/sbin/ip",
    "buildah": "/usr/bin/buildah",
    "debootstrap": "/usr/sbin/debootstrap",
    "openssl": "/usr/bin/openssl",
    "ca-certificates": "/usr/sbin/update-ca-certificates",
}
SERVICES = ("containerd",)


def missing(packages: Sequence[str] | None = None) -> list[str]:
    """Those packages that are not installed."""
    return [name for name in packages or PACKAGES if not Path(PACKAGES[name]).exists()]


def ensure(packages: Sequence[str] | None = None) -> None:
    """Install what is missing. Raises ClusterError where that takes root and this process is not."""
    absent = missing(packages)
    if not absent:
        return
    if os.geteuid() != 0:
        raise ClusterError(
            f"the local cluster needs the Debian packages {' '.join(absent)}: install them, or run as root"
        )
    with step(f"installing {' '.join(absent)}"), _services_stay_off():
        _apt("update")
        _apt("install", "--yes", "--no-install-recommends", *absent)
        _disable_services(absent)


def mirror() -> str:
    """The archive that apt is set up with, for debootstrap. Raises ClusterError where apt knows none."""
    for line in run(
        ["apt-get", "indextargets", "--format", "$(IDENTIFIER) $(RELEASE) $(REPO_URI)"], timeout_seconds=60
    ).splitlines():
        identifier, release, uri = line.split(" ", 2)
        if identifier == "Packages" and release == RELEASE:
            return uri
    raise ClusterError(f"apt has no source for Debian {RELEASE}; add one, the base image is made from it")


def _apt(*words: str) -> None:
    wait = ("-o", "DPkg::Lock::Timeout=300")
    run(["apt-get", "-qq", *wait, *words], timeout_seconds=INSTALL_SECONDS, env={"DEBIAN_FRONTEND": "noninteractive"})


@contextmanager
def _services_stay_off() -> Iterator[None]:
    if POLICY.exists():
        yield
        return
    POLICY.write_text(FORBID)
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)


def _disable_services(installed: Sequence[str]) -> None:
    if not Path("/run/systemd/system").is_dir():
        return
    for service in SERVICES:
        if service in installed:
            with suppress(ClusterError):
                run(["systemctl", "disable", "--now", service], timeout_seconds=60)


def usable() -> bool:
    """Whether this machine can run the local cluster at all: root, and a kernel that lets it make namespaces."""
    return os.geteuid() == 0 and succeeds(["unshare", "--mount", "--net", "true"])
