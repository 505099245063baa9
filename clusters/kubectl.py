"""kubectl for any provider: objects in, objects out."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusters import binaries
from clusters.run import run

COMMAND_SECONDS = 60.0


def program() -> Path:
    """Where kubectl is: the user's own, else the one of the local cluster, which is built where it is missing."""
    found = shutil.which("kubectl")
    return Path(found) if found else binaries.ensure(["kubectl"])["kubectl"]


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with one kubeconfig. Methods raise ClusterError with kubectl's complaint."""

    kubeconfig: Path

    def __call__(self, *words: str, stdin: str | None = None, timeout_seconds: float = COMMAND_SECONDS) -> str:
        """Run it and return what it printed."""
        command: list[str | Path] = [program(), f"--kubeconfig={self.kubeconfig}", *words]
        return run(command, stdin=stdin, timeout_seconds=timeout_seconds)

    def apply(self, *documents: Mapping[str, Any]) -> None:
        """Apply objects server-side."""
        stream = json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})
        self("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=stream)

    def get(self, *words: str) -> dict[str, Any]:
        """Return one object, or a list of them; an empty mapping where there is none."""
        printed = self("get", *words, "--ignore-not-found", "-o", "json")
        return dict(json.loads(printed)) if printed.strip() else {}

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Post JSON through the API server, to a Service for instance, and return its answer."""
        return dict(json.loads(self("create", "--raw", path, "-f", "-", stdin=json.dumps(body))))
