"""APIs that a cluster may lack can be installed and removed while it runs, at the versions that go.mod pins."""

import pytest

from clusters import optional_apis
from clusters.controlplane import ControlPlane, await_true

KINDS = {
    "leaderworkerset": {"leaderworkersets.leaderworkerset.x-k8s.io"},
    "gateway-api": {
        "gatewayclasses.gateway.networking.k8s.io",
        "gateways.gateway.networking.k8s.io",
        "httproutes.gateway.networking.k8s.io",
    },
    "monitoring": {"podmonitors.monitoring.coreos.com", "prometheusrules.monitoring.coreos.com"},
}


@pytest.mark.parametrize("name", sorted(KINDS))
def test_an_optional_api_comes_and_goes(control_plane: ControlPlane, name: str) -> None:
    assert set(optional_apis.install(control_plane, name)) == KINDS[name]
    assert KINDS[name] <= served(control_plane)
    optional_apis.remove(control_plane, name)
    # The API server leaves a CRD out of its discovery a moment after it is gone.
    await_true(lambda: not KINDS[name] & served(control_plane), what=f"{name} is served no longer", timeout_seconds=60)


def served(plane: ControlPlane) -> set[str]:
    """What the API server says that it serves."""
    return set(plane.kubectl("api-resources", "--cached=false", "-o", "name").split())
