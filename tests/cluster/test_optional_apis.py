"""APIs that a cluster may lack can be installed and removed while it runs, at the versions that go.mod pins."""

import pytest

from clusters import optional_apis
from clusters.controlplane import ControlPlane

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
    served = control_plane.kubectl("api-resources", "--cached=false", "-o", "name").split()
    assert KINDS[name] <= set(served)
    optional_apis.remove(control_plane, name)
    served = control_plane.kubectl("api-resources", "--cached=false", "-o", "name").split()
    assert not KINDS[name] & set(served)
