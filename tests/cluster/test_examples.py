"""Every example is taken by the API server as it stands."""

from pathlib import Path

import pytest

from clusters.controlplane import ControlPlane
from tests.builders.cluster import install_crd

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.yaml"))


@pytest.fixture(scope="module", autouse=True)
def crd(control_plane: ControlPlane) -> None:
    """Have InferenceServices served."""
    install_crd(control_plane)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_admitted_with_strict_validation(control_plane: ControlPlane, namespace: str, path: Path) -> None:
    words = ("-n", namespace, "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", str(path))
    assert "serverside-applied" in control_plane.kubectl(*words)
