"""The control plane that all tests of this tier stand on is a real one."""

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from clusters.controlplane import ControlPlane
from clusters.errors import ClusterError
from tests.builders.nodes import node

MakeNodes = Callable[..., None]
READY_SECONDS = 30


def deployment(name: str, namespace: str, annotations: dict[str, str] | None = None, **pod: Any) -> dict[str, Any]:
    """A Deployment of one GPU with a native sidecar, fit for Pod Security `restricted`."""
    security = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    engine = {
        "name": "engine",
        "image": "engine:1",
        "securityContext": security,
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    agent = {"name": "agent", "image": "agent:1", "securityContext": security, "restartPolicy": "Always"}
    template = {
        "metadata": {"labels": {"app": name}, "annotations": annotations or {}},
        "spec": {"initContainers": [agent], "containers": [engine], **pod},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template},
    }


def pods(plane: ControlPlane, namespace: str) -> list[dict[str, Any]]:
    """The pods of a namespace."""
    return list(plane.call("GET", f"/api/v1/namespaces/{namespace}/pods")["items"])


def eventually(ask: Callable[[], bool], timeout_seconds: float = READY_SECONDS) -> None:
    """Ask until it is true, or fail."""
    deadline = time.monotonic() + timeout_seconds
    while not ask():
        assert time.monotonic() < deadline, f"not true within {timeout_seconds} s"
        time.sleep(0.1)


def await_available(plane: ControlPlane, name: str, namespace: str) -> None:
    """Wait until a Deployment is available."""
    limit = f"--timeout={READY_SECONDS}s"
    plane.kubectl("wait", "--for=condition=Available", f"deployment/{name}", f"--namespace={namespace}", limit)


def test_a_deployment_that_asks_for_a_gpu_gets_ready_on_a_kwok_node(
    control_plane: ControlPlane, namespace: str, new_nodes: MakeNodes
) -> None:
    new_nodes(node("gpu-a").gpus(8).build())
    control_plane.apply(deployment("chat", namespace))
    await_available(control_plane, "chat", namespace)
    (pod,) = pods(control_plane, namespace)
    assert pod["spec"]["nodeName"] == "gpu-a"
    assert pod["status"]["initContainerStatuses"][0]["started"] is True
    assert pod["status"]["podIP"]


def test_a_pod_that_asks_for_more_gpus_than_there_are_stays_pending(
    control_plane: ControlPlane, namespace: str, new_nodes: MakeNodes
) -> None:
    new_nodes(node("slices").mig("1g.10gb", 7).build())
    body = deployment("greedy", namespace, nodeSelector={"kubernetes.io/hostname": "slices"})
    control_plane.apply(body)

    def refused() -> bool:
        conditions = [each for pod in pods(control_plane, namespace) for each in pod["status"].get("conditions", [])]
        return any("Insufficient nvidia.com/gpu" in each.get("message", "") for each in conditions)

    eventually(refused)
    assert all(pod["status"]["phase"] == "Pending" for pod in pods(control_plane, namespace))


@pytest.mark.parametrize(
    ("outcome", "phase", "waiting", "last"),
    [
        ("NotReady", "Running", None, None),
        ("CrashLoopBackOff", "Running", "CrashLoopBackOff", "Error"),
        ("OOMKilled", "Running", "CrashLoopBackOff", "OOMKilled"),
        ("ImagePullBackOff", "Pending", "ImagePullBackOff", None),
    ],
)
def test_a_pod_fails_as_its_annotation_says(
    control_plane: ControlPlane,
    namespace: str,
    new_nodes: MakeNodes,
    outcome: str,
    phase: str,
    waiting: str | None,
    last: str | None,
) -> None:
    new_nodes(node(f"gpu-{outcome.lower()}").gpus(1).build())
    notes = {"kwok.stoker.dev/outcome": outcome, "kwok.stoker.dev/message": 'no "memory" left'}
    control_plane.apply(deployment("broken", namespace, notes))
    eventually(lambda: any(pod["status"].get("containerStatuses") for pod in pods(control_plane, namespace)))
    (pod,) = pods(control_plane, namespace)
    (status,) = pod["status"]["containerStatuses"]
    assert pod["status"]["phase"] == phase
    assert status["ready"] is False
    assert status["state"].get("waiting", {}).get("reason") == waiting
    ended = status.get("lastState", {}).get("terminated", {})
    assert ended.get("reason") == last
    assert last is None or ended["message"] == 'no "memory" left'
    control_plane.kubectl(
        "annotate", "pod", pod["metadata"]["name"], f"--namespace={namespace}", "kwok.stoker.dev/outcome-"
    )
    await_available(control_plane, "broken", namespace)


def test_a_namespace_enforces_pod_security_restricted(control_plane: ControlPlane, namespace: str) -> None:
    bare = {"name": "bare", "namespace": namespace}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": bare, "spec": {"containers": [{"name": "a", "image": "a"}]}}
    with pytest.raises(ClusterError, match=r'violates PodSecurity "restricted:latest"'):
        control_plane.apply(body)


def test_a_call_that_the_api_server_refuses_says_why(control_plane: ControlPlane) -> None:
    assert control_plane.call("GET", "/api/v1/namespaces/default")["metadata"]["name"] == "default"
    with pytest.raises(ClusterError, match='namespaces "absent" not found'):
        control_plane.call("GET", "/api/v1/namespaces/absent")


def test_the_audit_log_tells_who_wrote_what(control_plane: ControlPlane, namespace: str) -> None:
    control_plane.kubectl("create", "serviceaccount", "writer", f"--namespace={namespace}")
    user = f"system:serviceaccount:{namespace}:writer"
    token = control_plane.token_for(user)
    with pytest.raises(ClusterError, match=r"[Ff]orbidden"):
        control_plane.kubectl(f"--token={token}", "create", "configmap", "mine", f"--namespace={namespace}")
    entries = [json.loads(line) for line in control_plane.audit_log.read_text().splitlines()]
    seen = {(entry["verb"], entry["responseStatus"]["code"]) for entry in entries if entry["user"]["username"] == user}
    assert ("create", 403) in seen


def test_a_paused_controller_manager_creates_no_pods_until_it_is_resumed(
    control_plane: ControlPlane, namespace: str, new_nodes: MakeNodes
) -> None:
    new_nodes(node("gpu-paused").gpus(1).build())
    control_plane.pause_process("kube-controller-manager")
    try:
        control_plane.apply(deployment("late", namespace))
        time.sleep(1)
        assert pods(control_plane, namespace) == []
    finally:
        control_plane.resume_process("kube-controller-manager")
    await_available(control_plane, "late", namespace)


def test_two_control_planes_run_side_by_side(control_plane: ControlPlane) -> None:
    started = time.monotonic()
    with ControlPlane() as other:
        assert time.monotonic() - started < 60
        assert other.server != control_plane.server
        folder = other.folder
        assert "default" in other.kubectl("get", "namespaces", "-o", "name")
    assert not folder.exists()
    assert "default" in control_plane.kubectl("get", "namespaces", "-o", "name")
