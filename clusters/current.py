"""The provider `current`: the context of the user's own kubeconfig, which Stoker neither brings up nor takes down."""

import os
from dataclasses import dataclass
from pathlib import Path

from clusters.errors import ClusterError
from clusters.run import run, succeeds

COMMAND_SECONDS = 30
CHECK = ("kubectl", "version", "--request-timeout=10s")


@dataclass(frozen=True, slots=True)
class CurrentCluster:
    """The cluster that `kubectl` talks to."""

    @property
    def kubeconfig(self) -> Path:
        """The file that kubectl reads; of several in `$KUBECONFIG`, the first."""
        listed = os.environ.get("KUBECONFIG", "").split(os.pathsep)
        return Path(listed[0]) if listed[0] else Path.home() / ".kube" / "config"

    def context_command(self) -> list[str]:
        """The command that names the current context."""
        return ["kubectl", "config", "current-context"]

    def up(self) -> None:
        """Check that it answers. Raises ClusterError, naming the context, where it does not."""
        context = run(self.context_command(), timeout_seconds=COMMAND_SECONDS).strip()
        if not self.is_up():
            raise ClusterError(f"the current context {context} does not answer; choose another with `kubectl config`")

    def down(self) -> None:
        """Nothing: the cluster is the user's, and so is its end."""

    def is_up(self) -> bool:
        """Whether its API server answers."""
        return succeeds(CHECK, timeout_seconds=COMMAND_SECONDS)

    def status(self) -> str:
        """The context, and whether it answers."""
        context = run(self.context_command(), timeout_seconds=COMMAND_SECONDS).strip()
        return f"current context {context} {'answers' if self.is_up() else 'does not answer'}"

    def load_image(self, archive: Path) -> None:
        """Raises ClusterError: only the owner of a cluster knows its registry."""
        raise ClusterError(
            f"push {archive.name} to a registry that your cluster pulls from; `current` has no other way"
        )

    def enter(self) -> list[str]:
        """Raises ClusterError: this machine is not in the cluster's network."""
        raise ClusterError("this machine is outside the network of the current context; use `kubectl port-forward`")
