"""The diagnosis understands what a real scheduler, API server and quota say, in the words of this version."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from clusters.controlplane import ControlPlane
from clusters.errors import ClusterError
from stoker.kube.views import deployment_view, node_view, object_ref, pod_view
from stoker.plan.snapshot import NodeView
from stoker.status.case import Case, Diagnosis
from stoker.status.creation import child_not_applied, pods_not_created
from stoker.status.diagnosis import diagnose
from tests.builders.layouts import a_layout
from tests.builders.nodes import node
from tests.builders.specs import H100, SpecBuilder, a_spec
from tests.cluster.test_control_plane import deployment, pods

MESSAGE_SECONDS = 30.0
NEW_NODE_TAINT = "node.kubernetes.io/not-ready"
POOL = {"example.com/pool": "messages"}
GPU_NODE, TAINTED = "messages-gpu", "messages-tainted"
CLAIM = {"name": "data", "persistentVolumeClaim": {"claimName": "models"}}


@pytest.fixture(scope="module")
def nodes(control_plane: ControlPlane) -> Iterator[tuple[NodeView, ...]]:
    """A node with two GPUs and a tainted one, both of a pool of their own."""
    made = (
        node(GPU_NODE).gpus(2).label("example.com/pool", "messages").build(),
        node(TAINTED).gpus(8).label("example.com/pool", "tainted").taint("team", "other").build(),
    )
    control_plane.apply(*made)
    yield _when_admitted(control_plane)
    control_plane.kubectl("delete", "node", GPU_NODE, TAINTED)


def _when_admitted(plane: ControlPlane) -> tuple[NodeView, ...]:
    """The nodes once they are ready, and the taint is gone that admission gives every new node whatever its status."""
    deadline = time.monotonic() + MESSAGE_SECONDS
    while True:
        seen = tuple(node_view(plane.call("GET", f"/api/v1/nodes/{name}")) for name in (GPU_NODE, TAINTED))
        if all(each.ready and NEW_NODE_TAINT not in (taint[0] for taint in each.taints) for each in seen):
            return seen
        assert time.monotonic() < deadline, seen
        time.sleep(0.2)


@dataclass(frozen=True, slots=True)
class Situation:
    """A pod that does not come up on a real control plane, and what has to be said of it."""

    reason: str
    says: tuple[str, ...]
    gpus: int = 1
    pod: Mapping[str, Any] = field(default_factory=dict)
    spec: SpecBuilder = field(default_factory=a_spec)
    before: tuple[Mapping[str, Any], ...] = ()


def _claim(storage_class: str) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    meta = {"name": "models"}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta,
            "spec": {**spec, "storageClassName": storage_class}}  # fmt: skip


def _quota(**hard: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "quota"}, "spec": {"hard": hard}}


SPREAD = [
    {"maxSkew": 1, "topologyKey": "example.com/none", "whenUnsatisfiable": "DoNotSchedule",
     "labelSelector": {"matchLabels": {"app": "chat"}}}
]  # fmt: skip

UNPLACED = {
    "more GPUs than the node has": Situation(
        "Unschedulable", ("it needs 4 nvidia.com/gpu", f"{GPU_NODE} has 2 of 2 free", "spec.parallelism"), gpus=4,
        spec=a_spec().set("pod.nodeSelector", POOL),
        pod={"nodeSelector": POOL},
    ),
    "a product that no node has": Situation(
        "Unschedulable", ("nvidia.com/gpu.product NVIDIA-A100", f"the nodes have: {H100}"),
        pod={"nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-A100"}}, spec=a_spec().on("NVIDIA-A100"),
    ),
    "a taint": Situation(
        "Unschedulable", ("team=other:NoSchedule", "spec.pod.tolerations"),
        pod={"nodeSelector": {"example.com/pool": "tainted"}},
    ),
    "topology spread": Situation(
        "Unschedulable", ("spec.pod.topologySpreadConstraints",),
        pod={"nodeSelector": POOL, "topologySpreadConstraints": SPREAD},
    ),
    "too much memory": Situation(
        "Unschedulable", ("spec.resources.memory",), pod={"nodeSelector": POOL, "overhead": "memory"},
    ),
    "a claim that does not exist": Situation(
        "PersistentVolumeClaimNotFound", ("models", "spec.model.source"), spec=a_spec().model("pvc://models"),
        pod={"nodeSelector": POOL, "volumes": [CLAIM]},
    ),
    "a claim without a volume": Situation(
        "VolumeNotBound", ("spec.pod.volumes",), pod={"nodeSelector": POOL, "volumes": [CLAIM]},
        before=(_claim(""),),
    ),
}  # fmt: skip

NOT_CREATED = {
    "quota": Situation("QuotaExceeded", ("limited: requests.nvidia.com/gpu=0", "spec.replicas"),
                       before=(_quota(**{"requests.nvidia.com/gpu": "0"}),)),
    "quota that wants memory stated": Situation("QuotaExceeded", ("memory", "spec.resources.memory"),
                                                before=(_quota(**{"requests.memory": "1Gi"}),)),
    "Pod Security": Situation("PodSecurityViolation", ("hostPath", "spec.pod.volumes"),
                              pod={"volumes": [{"name": "data", "hostPath": {"path": "/"}}]}),
    "account": Situation("ServiceAccountNotFound", ("runner", "spec.pod.serviceAccountName"),
                         pod={"serviceAccountName": "runner"}),
    "priority class": Situation("PriorityClassNotFound", ("urgent", "spec.pod.priorityClassName"),
                                pod={"priorityClassName": "urgent"}),
    "runtime class": Situation("RuntimeClassNotFound", ("nvidia", "spec.pod.runtimeClassName"),
                               pod={"runtimeClassName": "nvidia"}),
}  # fmt: skip


def _apply(plane: ControlPlane, situation: Situation, namespace: str) -> None:
    pod = dict(situation.pod)
    needs_memory = pod.pop("overhead", None)
    child = deployment("chat", namespace, **pod)
    (engine,) = child["spec"]["template"]["spec"]["containers"]
    engine["resources"]["limits"] = {"nvidia.com/gpu": str(situation.gpus)}
    if needs_memory:
        engine["resources"]["limits"]["memory"] = "900Ti"
    for document in situation.before:
        plane.apply({**document, "metadata": {**document["metadata"], "namespace": namespace}})
    plane.apply(child)


def _until(ask: Callable[[], Diagnosis | None], reason: str) -> Diagnosis:
    """Ask until the reason is told, or fail with what was told last."""
    deadline = time.monotonic() + MESSAGE_SECONDS
    while (told := ask()) is None or told.reason != reason:
        assert time.monotonic() < deadline, told
        time.sleep(0.2)
    return told


@pytest.mark.parametrize("situation", UNPLACED.values(), ids=UNPLACED.keys())
def test_a_pod_that_no_node_takes_is_explained(
    control_plane: ControlPlane, nodes: tuple[NodeView, ...], namespace: str, situation: Situation
) -> None:
    _apply(control_plane, situation, namespace)

    def told() -> Diagnosis | None:
        raw = pods(control_plane, namespace)
        cases = (Case(pod_view(pod), situation.spec.build(), a_layout(), nodes) for pod in raw)
        return next((found for case in cases if (found := diagnose(case))), None)

    diagnosis = _until(told, situation.reason)
    for part in situation.says:
        assert part in diagnosis.message


@pytest.mark.parametrize("situation", NOT_CREATED.values(), ids=NOT_CREATED.keys())
def test_a_pod_that_cannot_be_created_is_explained(
    control_plane: ControlPlane, namespace: str, situation: Situation
) -> None:
    _apply(control_plane, situation, namespace)

    def told() -> Diagnosis | None:
        raw = control_plane.call("GET", f"/apis/apps/v1/namespaces/{namespace}/deployments/chat")
        seen = deployment_view(raw, object_ref("Deployment", raw))
        return pods_not_created(tuple(c.message for c in seen.conditions if c.type == "ReplicaFailure"))

    diagnosis = _until(told, situation.reason)
    for part in situation.says:
        assert part in diagnosis.message


def test_a_child_that_the_api_server_refuses_is_explained(control_plane: ControlPlane, namespace: str) -> None:
    child = deployment("chat", namespace, volumes=[{"name": "data", "csi": {"driver": ""}}])
    with pytest.raises(ClusterError) as refused:
        control_plane.apply(child)
    diagnosis = child_not_applied("Deployment/chat", str(refused.value))
    assert (diagnosis.reason, diagnosis.stalled) == ("ChildRefused", True)
