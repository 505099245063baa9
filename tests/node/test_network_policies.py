"""The NetworkPolicies admit what listens in the pods, and nothing else. The local network does not enforce them."""

from pathlib import Path

import pytest

from clusters import chart
from tests.node.support import Json, Namespace, Stage, container_processes, quickstart

LISTEN = "0A"
LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")


def listening(process: int) -> set[int]:
    """Return the TCP ports that others can reach in the network of a process."""
    tables = (Path(f"/proc/{process}/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6"))
    rows = (row.split() for table in tables for row in table)
    addresses = (row[1].split(":") for row in rows if row[3] == LISTEN)
    return {int(port, 16) for address, port in addresses if address not in LOOPBACK}


def admitted(policy: Json, pod: Json) -> set[int]:
    """Return the ports that a policy opens to others on a pod that it is about."""
    wanted, labels = policy["spec"]["podSelector"]["matchLabels"], pod["metadata"]["labels"]
    assert wanted.items() <= labels.items(), f"the policy is about {wanted}, the pod is {labels}"
    assert all(rule.get("ports") for rule in policy["spec"]["ingress"]), "a rule without ports opens all of them"
    named = {port.get("name"): port["containerPort"] for each in containers(pod) for port in each.get("ports", ())}
    opened = (port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"])
    return {port if isinstance(port, int) else named[port] for port in opened}


def containers(pod: Json) -> list[Json]:
    """Return all containers of a pod, native sidecars included."""
    return [*pod["spec"]["containers"], *pod["spec"].get("initContainers", ())]


@pytest.fixture(scope="module")
def served(namespace: Namespace) -> Namespace:
    """The quickstart, Ready."""
    namespace.apply(quickstart())
    namespace.await_ready()
    return namespace


def test_the_policy_of_the_engines_opens_exactly_the_ports_in_use(served: Namespace) -> None:
    pod = served.the_pod()
    (policy,) = served.get("networkpolicies")["items"]

    assert listening(served.processes(pod, "engine")[0]) == admitted(policy, pod) == {8000, 9090}


def test_the_policy_of_the_operator_opens_its_metrics_and_leaves_its_probes_to_the_node(stage: Stage) -> None:
    pods = stage.kubectl.get("-n", chart.NAMESPACE, "pods")["items"]
    (policy,) = stage.kubectl.get("-n", chart.NAMESPACE, "networkpolicies")["items"]

    assert pods
    for pod in pods:
        assert listening(container_processes(stage.cluster, pod, "operator")[0]) == admitted(policy, pod) | {8080}
