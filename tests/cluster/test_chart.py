"""The Helm chart on a real API server: valid, least privilege, kept CRD, two replicas.

On a control plane of its own: the names of the operator's roles are fixed, and other tests have them in use.
"""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from clusters import chart
from clusters.controlplane import ControlPlane
from clusters.documents import load, stream
from clusters.errors import ClusterError
from stoker import __version__
from stoker.kube.permissions import CLUSTER, NAMESPACED, OWN_NAMESPACE, Grant
from tests.builders.cluster import own_crd
from tests.builders.nodes import node

Rule = tuple[str, str, str, tuple[str, ...]]

VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "defaults": {},
    "one replica, pinned": {"replicas": 1, "image.digest": f"sha256:{'a' * 64}", "image.pullSecrets": ["registry"]},
    "some namespaces": {"namespaces": ["default", "kube-system"]},
    "placed": {
        "pod": {
            "labels": {"team": "platform", "app.kubernetes.io/name": "taken"},
            "annotations": {"a.example/b": "true"},
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "infra", "operator": "Exists", "effect": "NoSchedule"}],
            "priorityClassName": "system-cluster-critical",
        }
    },
    "bare": {"networkPolicy.enabled": False, "rbac.aggregate": False, "resources": {}, "logLevel": "debug"},
}


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane for this file."""
    with ControlPlane() as started:
        yield started


@pytest.fixture(scope="module")
def installed(plane: ControlPlane) -> str:
    """The chart, installed with Helm; the name of its namespace, which enforces Pod Security `restricted`."""
    plane.apply(chart.namespace_object())
    chart.install(plane.kubeconfig)
    return chart.NAMESPACE


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    """What the chart renders without any values."""
    return chart.render()


@pytest.mark.parametrize("values", VARIANTS.values(), ids=VARIANTS)
def test_what_it_renders_is_taken_by_the_api_server(
    plane: ControlPlane, installed: str, values: Mapping[str, Any]
) -> None:
    documents = chart.render(values)
    words = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-")
    printed = plane.kubectl(*words, stdin=stream(documents))
    assert len(printed.strip().splitlines()) == len(documents)


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"replica": 2}, "replica"),
        ({"image.repo": "x"}, "repo"),
        ({"replicas": "two"}, "/replicas"),
        ({"replicas": -1}, "/replicas"),
        ({"image.digest": "sha256:short"}, "/image/digest"),
        ({"image.repository": "registry.example:5000/stoker:1.0"}, "/image/repository"),
        ({"image.repository": "registry.example/stoker/"}, "/image/repository"),
        ({"logLevel": "loud"}, "/logLevel"),
        ({"namespaces": ["Not_A_Name"]}, "/namespaces/0"),
        ({"metrics.podMonitor.every": "1m"}, "every"),
        ({"resources": {"limit": {}}}, "limit"),
        ({"pod.tolerations": [{"effect": "Never"}]}, "/pod/tolerations/0/effect"),
    ],
)
def test_values_that_it_does_not_know_are_refused_with_their_path(values: Mapping[str, Any], path: str) -> None:
    with pytest.raises(ClusterError) as refusal:
        chart.render(values)
    assert path in str(refusal.value)


def test_its_crd_is_the_generated_one_and_stays_when_the_chart_goes(documents: list[dict[str, Any]]) -> None:
    crd = copy.deepcopy(only(documents, "CustomResourceDefinition"))
    assert crd["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert crd == own_crd()


def test_the_plain_manifest_in_the_repository_is_what_the_chart_gives() -> None:
    assert chart.MANIFEST.read_text(encoding="utf-8") == chart.plain_manifest()


def test_the_plain_manifest_names_nothing_of_helm() -> None:
    assert "helm" not in "".join(chart.MANIFEST.read_text(encoding="utf-8").splitlines()[2:]).lower()


def test_the_version_is_the_operators(documents: list[dict[str, Any]]) -> None:
    document = load((chart.CHART / "Chart.yaml").read_text(encoding="utf-8"))
    assert document["version"] == document["appVersion"] == __version__
    container = only(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == f"ghcr.io/stoker-dev/stoker:{__version__}"


def test_the_agent_runs_from_the_operators_own_image() -> None:
    digest = f"sha256:{'b' * 64}"
    values = {"image.repository": "registry.example:5000/stoker", "image.digest": digest}
    container = only(chart.render(values), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert container["image"] == environment["STOKER_AGENT_IMAGE"] == f"registry.example:5000/stoker@{digest}"


def test_N17_the_roles_are_what_the_code_says_and_nothing_more(documents: list[dict[str, Any]]) -> None:
    roles = {(each["kind"], each["metadata"]["name"]): each["rules"] for each in documents if "rules" in each}
    assert granted(roles["ClusterRole", "stoker-operator"]) == wanted(NAMESPACED)
    assert granted(roles["ClusterRole", "stoker-operator-cluster"]) == wanted(CLUSTER)
    assert granted(roles["Role", "stoker-operator-lease"]) == wanted(OWN_NAMESPACE)


def test_N20_the_operator_never_lists_secrets(documents: list[dict[str, Any]]) -> None:
    every = [rule for document in documents for rule in granted(document.get("rules") or [])]
    assert {verb for _, resource, verb, _ in every if resource == "secrets"} == {"get"}
    assert not [rule for rule in every if "*" in rule]


def test_where_namespaces_are_named_the_operator_is_bound_in_those_alone() -> None:
    documents = chart.render({"namespaces": ["team-a", "team-b"]})
    bindings = [each for each in documents if each.get("roleRef", {}).get("name") == "stoker-operator"]
    assert {(each["kind"], each["metadata"]["namespace"]) for each in bindings} == {
        ("RoleBinding", "team-a"),
        ("RoleBinding", "team-b"),
    }


def test_a_pod_monitor_is_rendered_only_when_asked_for(documents: list[dict[str, Any]]) -> None:
    assert not [each for each in documents if each["kind"] == "PodMonitor"]
    values = {"metrics.podMonitor": {"enabled": True, "interval": "10s", "labels": {"release": "prometheus"}}}
    monitor = only(chart.render(values), "PodMonitor")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    ports = only(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]["ports"]
    assert monitor["spec"]["podMetricsEndpoints"] == [{"port": "metrics", "interval": "10s"}]
    assert "metrics" in {port["name"] for port in ports}


def test_its_budget_lets_one_of_its_two_pods_go(documents: list[dict[str, Any]]) -> None:
    deployment, budget = only(documents, "Deployment")["spec"], only(documents, "PodDisruptionBudget")["spec"]
    assert (deployment["replicas"], budget["maxUnavailable"]) == (2, 1)
    assert budget["selector"] == deployment["selector"]
    assert not [each for each in chart.render({"replicas": 1}) if each["kind"] == "PodDisruptionBudget"]


def test_its_probes_ask_the_ports_that_the_operator_listens_on(documents: list[dict[str, Any]]) -> None:
    container = only(documents, "Deployment")["spec"]["template"]["spec"]["containers"][0]
    ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
    told = {each["name"]: each.get("value") for each in container["env"]}
    assert ports == {"health": told["STOKER_HEALTH_PORT"], "metrics": told["STOKER_METRICS_PORT"]}
    asked = {probe: container[f"{probe}Probe"]["httpGet"] for probe in ("startup", "liveness", "readiness")}
    health, metrics = {"path": "/healthz", "port": "health"}, {"path": "/metrics", "port": "metrics"}
    assert asked == {"startup": health, "liveness": health, "readiness": metrics}


def test_it_runs_two_replicas_under_pod_security_restricted(plane: ControlPlane, installed: str) -> None:
    plane.apply(node("operator-node").build())
    plane.kubectl(
        "-n", installed, "rollout", "status", "deployment/stoker-operator", "--timeout=60s", timeout_seconds=90
    )
    found = json.loads(plane.kubectl("-n", installed, "get", "deployment", "stoker-operator", "-o", "json"))
    assert found["status"]["readyReplicas"] == 2


def test_an_upgrade_without_a_change_changes_nothing(plane: ControlPlane, installed: str) -> None:
    def generation() -> str:
        path = "jsonpath={.metadata.generation}"
        return plane.kubectl("-n", installed, "get", "deployment", "stoker-operator", "-o", path)

    before = generation()
    chart.install(plane.kubeconfig)
    assert generation() == before


def test_N17_the_authorizer_lets_the_operator_do_that_and_no_more(plane: ControlPlane, installed: str) -> None:
    user = f"system:serviceaccount:{installed}:stoker-operator"
    asked = [(rule, "default") for rule in sorted(wanted(NAMESPACED))]
    asked += [(rule, installed) for rule in sorted(wanted(OWN_NAMESPACE))]
    refused: list[Rule] = [
        ("", "secrets", "list", ()),
        ("", "secrets", "watch", ()),
        ("", "pods", "create", ()),
        ("", "pods", "delete", ()),
        ("", "pods/exec", "create", ()),
        ("serving.stoker.dev", "inferenceservices", "update", ()),
        ("serving.stoker.dev", "inferenceservices", "patch", ()),
        ("coordination.k8s.io", "leases", "create", ()),
        ("rbac.authorization.k8s.io", "clusterroles", "create", ()),
    ]
    answers = may(plane, user, [*asked, *((rule, "default") for rule in refused)])
    assert [rule for (rule, _), allowed in zip(asked, answers, strict=False) if not allowed] == []
    assert [rule for rule, allowed in zip(refused, answers[len(asked) :], strict=True) if allowed] == []


@pytest.mark.parametrize(
    ("role", "allowed"),
    [
        ("admin", ["get", "list", "create", "patch", "delete"]),
        ("edit", ["get", "list", "create", "patch", "delete"]),
        ("view", ["get", "list"]),
    ],
)
def test_the_clusters_own_roles_get_inference_services(
    plane: ControlPlane, installed: str, role: str, allowed: list[str]
) -> None:
    user = f"user-of-{role}"
    plane.kubectl("-n", installed, "create", "rolebinding", user, f"--clusterrole={role}", f"--user={user}")
    verbs = ["get", "list", "create", "patch", "delete"]
    answers = may(plane, user, [(("serving.stoker.dev", "inferenceservices", verb, ()), installed) for verb in verbs])
    assert [verb for verb, yes in zip(verbs, answers, strict=True) if yes] == allowed


def test_when_it_goes_the_crd_stays(plane: ControlPlane, installed: str) -> None:
    chart.uninstall(plane.kubeconfig)
    try:
        kinds = "deployment,service,role,rolebinding,networkpolicy,poddisruptionbudget"
        left = plane.kubectl("-n", installed, "get", kinds, "-l", "app.kubernetes.io/name=stoker", "-o", "name")
        assert left == ""
        assert plane.kubectl("get", "crd", "inferenceservices.serving.stoker.dev", "-o", "name")
    finally:
        chart.install(plane.kubeconfig)


def may(plane: ControlPlane, user: str, asked: Sequence[tuple[Rule, str]]) -> list[bool]:
    """Ask the real authorizer about each rule in a namespace."""
    reviews = [_review(user, rule, namespace) for rule, namespace in asked]
    stream = "\n---\n".join(json.dumps(review) for review in reviews)
    printed = plane.kubectl("create", "-f", "-", "-o", "jsonpath={.status.allowed}{' '}", stdin=stream)
    assert len(printed.split()) == len(reviews)
    return [answer == "true" for answer in printed.split()]


def _review(user: str, rule: Rule, namespace: str) -> dict[str, Any]:
    group, resource, verb, names = rule
    plural, _, subresource = resource.partition("/")
    wish = {"namespace": namespace, "group": group, "resource": plural, "verb": verb}
    attributes = {**wish, "subresource": subresource, "name": names[0] if names else ""}
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": attributes},
    }


def only(documents: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    (found,) = [document for document in documents if document["kind"] == kind]
    return found


def granted(rules: list[dict[str, Any]]) -> set[Rule]:
    return {
        (group, resource, verb, tuple(rule.get("resourceNames") or ()))
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def wanted(grants: tuple[Grant, ...]) -> set[Rule]:
    return {rule for grant in grants for rule in grant.rules}
