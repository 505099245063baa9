"""Where a cluster comes from: `local` (built and started here), `kind` (Docker) or `current` (the user's own)."""

import re
from pathlib import Path
from typing import Protocol

from clusters import current, kind
from clusters.controlplane import FOLDER_PREFIX
from clusters.errors import ClusterError
from clusters.local import LocalCluster

NAMES = ("local", "kind", "current")
# Also the name of a network namespace, of a cgroup and of a node.
NAME = re.compile(r"[a-z]([-a-z0-9]{0,30}[a-z0-9])?")


class Provider(Protocol):
    """What every source of clusters can do."""

    def up(self) -> None:
        """Bring the cluster up; nothing happens where it is up."""

    def down(self) -> None:
        """Remove the cluster."""

    def is_up(self) -> bool:
        """Whether it can be used."""

    def status(self) -> str:
        """What it looks like, for people."""

    def load_image(self, archive: Path) -> None:
        """Put an image archive where the nodes find it."""

    def enter(self) -> list[str]:
        """The words before a command that give it the cluster's network."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig file."""


def choose(provider: str | None, name: str) -> Provider:
    """The provider that was asked for by name; else kind where a Docker engine answers, else local.

    The user's own cluster is used only when asked for. Raises ClusterError for a name that cannot be used, of the
    cluster or of the provider.
    """
    if provider and provider not in NAMES:
        raise ClusterError(f"there is no provider {provider!r} of clusters; the providers are {', '.join(NAMES)}")
    if not NAME.fullmatch(name) or name.startswith(FOLDER_PREFIX):
        raise ClusterError(f"the cluster name {name!r} is not usable: at most 32 of a-z, 0-9 and -, a letter first")
    chosen = provider or ("kind" if kind.is_usable() else "local")
    if chosen == "current":
        return current.CurrentCluster()
    return kind.KindCluster(name) if chosen == "kind" else LocalCluster(name)
