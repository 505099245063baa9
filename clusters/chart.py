"""The Helm chart: rendering and installing it, and the plain manifest for those who use no Helm.

`python -m clusters.chart` writes the plain manifest.
"""

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from clusters import binaries
from clusters.documents import load_all
from clusters.errors import ClusterError
from clusters.run import run

ROOT = Path(__file__).resolve().parents[1]
CHART = ROOT / "charts/stoker"
MANIFEST = ROOT / "install/stoker.yaml"
NAMESPACE = "stoker-system"
RELEASE = "stoker"
HELM_SECONDS = 120.0
# The operator passes the strictest of the Pod Security Standards; its namespace asks for it.
POD_SECURITY = {"pod-security.kubernetes.io/enforce": "restricted"}
NOTE = (
    "# Stoker without Helm: `kubectl apply --server-side -f` this file.\n"
    "# Generated from charts/stoker by `make manifest`; changes here are lost.\n"
)


def helm(*words: str, kubeconfig: Path | None = None, timeout_seconds: float = HELM_SECONDS) -> str:
    """Run helm, away from the user's own configuration of it, and return what it printed."""
    program = binaries.ensure(["helm"])["helm"]
    with tempfile.TemporaryDirectory(prefix="stoker-helm-") as home:
        places = {name: f"{home}/{name}" for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}
        access = ["--kubeconfig", str(kubeconfig)] if kubeconfig else []
        return run([program, *words, *access], timeout_seconds=timeout_seconds, env=places)


def render(values: Mapping[str, Any] | None = None, namespace: str = NAMESPACE) -> list[dict[str, Any]]:
    """Return what the chart creates. Raises ClusterError, with the path, for values that its schema refuses."""
    words = ["template", RELEASE, str(CHART), "--namespace", namespace, *_values(values)]
    return load_all(helm(*words))


def install(kubeconfig: Path, values: Mapping[str, Any] | None = None, namespace: str = NAMESPACE) -> None:
    """Install the chart, or bring an installed one to these values; returns without waiting for its pods."""
    words = ["upgrade", "--install", RELEASE, str(CHART), "--namespace", namespace, *_values(values)]
    helm(*words, kubeconfig=kubeconfig)


def uninstall(kubeconfig: Path, namespace: str = NAMESPACE) -> None:
    """Remove what the chart created, the CRD apart."""
    helm("uninstall", RELEASE, "--namespace", namespace, "--ignore-not-found", kubeconfig=kubeconfig)


def namespace_object(namespace: str = NAMESPACE) -> dict[str, Any]:
    """Return the operator's namespace, which the chart leaves to `helm --create-namespace` or to the user."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": POD_SECURITY}}


def plain_manifest() -> str:
    """Return the chart's objects and their namespace as one document stream that needs no Helm."""
    documents = [namespace_object(), *(_without_helm(document) for document in render())]
    return NOTE + yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """Writes equal parts out in full: an alias would be refused."""

    def ignore_aliases(self, data: object) -> bool:
        """Never write an alias."""
        return True


def _without_helm(document: dict[str, Any]) -> dict[str, Any]:
    _strip(document["metadata"])
    if "template" in document.get("spec", {}):
        _strip(document["spec"]["template"]["metadata"])
    return document


def _strip(metadata: dict[str, Any]) -> None:
    for field in ("labels", "annotations"):
        found = metadata.get(field) or {}
        kept = {key: value for key, value in found.items() if not _is_of_helm(key)}
        if kept:
            metadata[field] = kept
        else:
            metadata.pop(field, None)


def _is_of_helm(key: str) -> bool:
    return key.startswith("helm.sh/") or key in {"app.kubernetes.io/managed-by", "app.kubernetes.io/instance"}


def _values(values: Mapping[str, Any] | None) -> Sequence[str]:
    return [word for key, value in (values or {}).items() for word in ("--set-json", f"{key}={json.dumps(value)}")]


def main() -> int:
    """Write the plain manifest."""
    try:
        text = plain_manifest()
    except ClusterError as error:
        print(f"chart: {error}", file=sys.stderr)
        return 1
    MANIFEST.parent.mkdir(parents=True, exist_ok=True)
    MANIFEST.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
