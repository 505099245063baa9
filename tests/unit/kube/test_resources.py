"""Paths of the API."""

from stoker.kube.resources import DEPLOYMENT, INFERENCE_SERVICE, NODE, POD, SERVICE


def test_paths_of_core_and_other_groups() -> None:
    assert SERVICE.path("team-a", "chat") == "/api/v1/namespaces/team-a/services/chat"
    assert DEPLOYMENT.path() == "/apis/apps/v1/deployments"
    assert NODE.path(None, "n1") == "/api/v1/nodes/n1"
    assert INFERENCE_SERVICE.path("a", "b", "status").endswith("/namespaces/a/inferenceservices/b/status")
    assert DEPLOYMENT.api_version == "apps/v1"
    assert POD.api_version == "v1"


def test_n20_names_are_escaped_where_they_enter_a_path() -> None:
    assert SERVICE.path("../../x", "a/../b?c#d") == "/api/v1/namespaces/..%2F..%2Fx/services/a%2F..%2Fb%3Fc%23d"
