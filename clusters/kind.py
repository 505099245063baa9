"""The provider `kind`: a cluster in containers, where a Docker engine answers."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from clusters import paths
from clusters.errors import ClusterError
from clusters.progress import step
from clusters.run import run, succeeds

CREATE_SECONDS = 10 * 60
COMMAND_SECONDS = 120
READY_SECONDS = 180


def is_usable() -> bool:
    """Whether kind is installed and a Docker engine answers; the client alone is not enough."""
    return shutil.which("kind") is not None and succeeds(["docker", "info"], timeout_seconds=10)


@dataclass(frozen=True, slots=True)
class KindCluster:
    """A kind cluster of one node, by name."""

    name: str

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig file of its own: the user's is left alone."""
        return paths.clusters_root() / f"kind-{self.name}.kubeconfig"

    def up_command(self) -> list[str]:
        """The command that creates the cluster."""
        wait = f"--wait={READY_SECONDS}s"
        return ["kind", "create", "cluster", f"--name={self.name}", f"--kubeconfig={self.kubeconfig}", wait]

    def down_command(self) -> list[str]:
        """The command that removes the cluster."""
        return ["kind", "delete", "cluster", f"--name={self.name}", f"--kubeconfig={self.kubeconfig}"]

    def load_command(self, archive: Path) -> list[str]:
        """The command that puts an image archive on its node."""
        return ["kind", "load", "image-archive", str(archive), f"--name={self.name}"]

    def up(self) -> None:
        """Create the cluster, unless it is there."""
        if not self.is_up():
            self.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
            with step(f"creating the kind cluster {self.name}"):
                run(self.up_command(), timeout_seconds=CREATE_SECONDS)

    def down(self) -> None:
        """Remove the cluster; kind takes one that is not there for removed."""
        run(self.down_command(), timeout_seconds=COMMAND_SECONDS)

    def is_up(self) -> bool:
        """Whether kind lists it."""
        try:
            return self.name in run(["kind", "get", "clusters"], timeout_seconds=COMMAND_SECONDS).splitlines()
        except ClusterError:
            return False

    def status(self) -> str:
        """Whether it is there, and its kubeconfig."""
        state = f"is up, kubeconfig {self.kubeconfig}" if self.is_up() else "is not up"
        return f"kind cluster {self.name} {state}"

    def load_image(self, archive: Path) -> None:
        """Put an image archive on its node."""
        run(self.load_command(archive), timeout_seconds=CREATE_SECONDS)

    def enter(self) -> list[str]:
        """Commands run in the network of the node's container."""
        return ["docker", "exec", "--interactive", f"{self.name}-control-plane"]
