"""The children beside the pod template: labels, owners, budgets, ways to replace."""

from typing import Any

import pytest

from stoker.render.children import KINDS, Rollout, render_children
from stoker.render.identity import ServiceIdentity, identity_of
from stoker.render.labels import APPLIED_HASH, selector_text
from stoker.render.meta import applied_hash
from tests.builders.templates import CHAT, template

SELECTOR = {"serving.stoker.dev/service": "chat", "serving.stoker.dev/component": "engine"}


def children(
    service: ServiceIdentity = CHAT, replicas: int = 2, strategy: str = "Surge", pods: dict[str, Any] | None = None
) -> dict[str, dict[str, Any]]:
    rollout = Rollout("vllm", pods or template(), replicas, strategy)
    return {child["kind"]: child for child in render_children(service, rollout)}


def test_pods_come_after_what_they_need() -> None:
    assert tuple(children()) == KINDS
    assert KINDS[-1] == "Deployment"


def test_N14_selectors_hold_two_labels_of_ours_and_nothing_else() -> None:
    found = children()
    assert found["Deployment"]["spec"]["selector"] == {"matchLabels": SELECTOR}
    assert found["Service"]["spec"]["selector"] == SELECTOR
    assert found["PodDisruptionBudget"]["spec"]["selector"] == {"matchLabels": SELECTOR}
    assert found["NetworkPolicy"]["spec"]["podSelector"] == {"matchLabels": SELECTOR}
    assert selector_text("chat") == "serving.stoker.dev/component=engine,serving.stoker.dev/service=chat"


def test_N14_nothing_of_argo_flux_or_helm_reaches_a_child() -> None:
    metadata = {
        "name": "chat",
        "namespace": "team-a",
        "uid": "u",
        "labels": {
            "app.kubernetes.io/instance": "argo-app",
            "argocd.argoproj.io/instance": "argo-app",
            "kustomize.toolkit.fluxcd.io/name": "flux",
            "helm.sh/chart": "x",
            "team": "a",
        },
        "annotations": {
            "argocd.argoproj.io/tracking-id": "x",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "meta.helm.sh/release-name": "x",
        },
    }
    for child in children(identity_of({"metadata": metadata})).values():
        labels = {**SELECTOR, "app.kubernetes.io/managed-by": "stoker", "app.kubernetes.io/name": "vllm"}
        assert child["metadata"]["labels"] == labels
        assert set(child["metadata"]["annotations"]) == {APPLIED_HASH}


def test_N14_a_selector_of_a_long_name_is_a_legal_label() -> None:
    found = children(ServiceIdentity("a", "x" * 253, "u"))
    assert len(found["Service"]["spec"]["selector"]["serving.stoker.dev/service"]) <= 63


def test_N5_the_owner_controls_and_blocks_nothing() -> None:
    for child in children().values():
        (owner,) = child["metadata"]["ownerReferences"]
        assert owner["controller"] is True
        assert owner["blockOwnerDeletion"] is False
        assert (owner["kind"], owner["name"], owner["uid"]) == ("InferenceService", "chat", CHAT.uid)
        assert "finalizers" not in child["metadata"]


def test_without_a_uid_there_is_no_owner() -> None:
    for child in children(ServiceIdentity("team-a", "chat", None)).values():
        assert "ownerReferences" not in child["metadata"]


@pytest.mark.parametrize(("replicas", "wanted"), [(0, False), (1, False), (2, True), (7, True)])
def test_a_budget_never_blocks_the_only_pod(replicas: int, wanted: bool) -> None:
    budget = children(replicas=replicas).get("PodDisruptionBudget")
    assert (budget is not None) == wanted
    if budget:
        assert budget["spec"]["maxUnavailable"] == 1
        assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("Surge", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
        ("Replace", {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
        ("Recreate", {"type": "Recreate"}),
    ],
)
def test_N18_the_way_to_replace_is_in_absolute_numbers(strategy: str, expected: dict[str, Any]) -> None:
    assert children(strategy=strategy)["Deployment"]["spec"]["strategy"] == expected


@pytest.mark.parametrize("replicas", [0, 1, 5])
def test_the_deployment_runs_as_many_pods_as_asked(replicas: int) -> None:
    assert children(replicas=replicas)["Deployment"]["spec"]["replicas"] == replicas


def test_the_progress_deadline_is_the_startup_budget_and_half_an_hour() -> None:
    assert children()["Deployment"]["spec"]["progressDeadlineSeconds"] == 900 + 1800


def test_N6_the_template_is_passed_on_as_it_is_stored() -> None:
    stored = template()
    assert children(pods=stored)["Deployment"]["spec"]["template"] == stored


def test_the_service_forwards_to_the_engine_by_name() -> None:
    (port,) = children()["Service"]["spec"]["ports"]
    assert (port["name"], port["port"], port["targetPort"]) == ("http", 8000, "http")


def test_the_network_policy_opens_the_ports_in_use_and_hides_credentials_of_the_cloud() -> None:
    spec = children()["NetworkPolicy"]["spec"]
    pods = template()["spec"]
    used = {port["containerPort"] for c in (*pods["containers"], *pods["initContainers"]) for port in c["ports"]}
    assert {port["port"] for rule in spec["ingress"] for port in rule["ports"]} == used
    blocks = [peer["ipBlock"] for rule in spec["egress"] for peer in rule.get("to", ()) if "ipBlock" in peer]
    assert {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]} in blocks
    assert spec["policyTypes"] == ["Ingress", "Egress"]


def test_the_service_account_has_no_token() -> None:
    account = children()["ServiceAccount"]
    assert account["automountServiceAccountToken"] is False
    assert account["metadata"]["name"] == template()["spec"]["serviceAccountName"]


def test_the_hash_covers_everything_but_itself() -> None:
    found, again, scaled = children(), children(), children(replicas=3)
    for kind, child in found.items():
        assert applied_hash(child) == applied_hash(again[kind])
    assert applied_hash(found["Deployment"]) != applied_hash(scaled["Deployment"])
    assert applied_hash(found["Service"]) == applied_hash(scaled["Service"])
