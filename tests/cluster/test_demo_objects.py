"""What the demo puts into a cluster besides the chart: a volume that binds, a pod that Pod Security admits."""

import json
from collections.abc import Callable
from pathlib import Path

from clusters import demo_model
from clusters.chart import POD_SECURITY
from clusters.controlplane import ControlPlane, await_true


def test_the_claim_on_a_folder_of_the_node_binds(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    volume, claim = demo_model.local_volume(tmp_path, "some-node", namespace)
    control_plane.apply(volume, claim)

    def phase() -> str:
        path = "jsonpath={.status.phase}"
        return control_plane.kubectl("-n", namespace, "get", "pvc", demo_model.NAME, "-o", path)

    try:
        await_true(lambda: phase() == "Bound", what="the claim bound", timeout_seconds=30, check=lambda: None)
    finally:
        control_plane.kubectl("-n", namespace, "delete", "pvc", demo_model.NAME, "--wait=false")
        control_plane.kubectl("delete", "pv", demo_model.NAME, "--wait=false")


def test_the_pod_that_carries_the_model_passes_pod_security(
    control_plane: ControlPlane, new_namespace: Callable[..., str]
) -> None:
    namespace = new_namespace(**POD_SECURITY)
    pod = json.dumps(demo_model.carrier(namespace, "ghcr.io/stoker-dev/stoker:0.1.0"))
    control_plane.kubectl("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=pod)
