"""Pods that no node takes: only fields that can be meant are named, and only causes that can be one."""

import pytest

from stoker.plan.snapshot import NodeView
from stoker.status.case import Case, Diagnosis
from stoker.status.diagnosis import diagnose
from tests.builders import last_words as said
from tests.builders.failures import unplaced
from tests.builders.layouts import a_layout
from tests.builders.specs import H100, SpecBuilder, a_spec
from tests.builders.views import GIB, a_node


def told(words: str, spec: SpecBuilder, *nodes: NodeView, gpus: int = 0) -> Diagnosis:
    """What is said of a pod of ``spec`` about which the scheduler says ``words``."""
    diagnosis = diagnose(Case(unplaced(words, gpus=gpus), spec.build(), a_layout(gpus), nodes))
    assert diagnosis is not None
    assert not diagnosis.stalled
    return diagnosis


def a_claim(name: str) -> dict[str, object]:
    """A volume of the user from a claim."""
    return {"name": name, "mountPath": f"/data/{name}", "persistentVolumeClaim": {"claimName": name}}


# ---- claims --------------------------------------------------------------------------------------------------------
ONE_OF_TWO = (
    "no volume for one of the claims models (spec.model.source) and "
    "unbound (spec.pod.volumes[1].persistentVolumeClaim.claimName)"
)
SCRATCH = {"name": "scratch", "mountPath": "/scratch", "emptyDir": {}}
WANTED = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
MADE = {"name": "made", "mountPath": "/made", "ephemeral": {"volumeClaimTemplate": {"spec": WANTED}}}


@pytest.mark.parametrize(
    ("source", "volumes", "names"),
    [
        ("pvc://models/llama", [SCRATCH, a_claim("unbound")], f"{ONE_OF_TWO}: "),
        ("pvc://models/llama", [SCRATCH], "no volume for the claim models (spec.model.source): "),
        ("hf://a/b", [a_claim("u")], "the claim u (spec.pod.volumes[0].persistentVolumeClaim.claimName): "),
        ("hf://a/b", [MADE], "the claim of volume made (spec.pod.volumes[0].ephemeral): "),
        ("hf://a/b", [], "no volume for a claim of the pod (spec.model.source or spec.pod.volumes): "),
    ],
)
def test_every_claim_that_may_have_no_volume_is_named(source: str, volumes: list[object], names: str) -> None:
    spec = a_spec().model(source).set("pod.volumes", volumes or None)
    diagnosis = told(said.UNBOUND, spec)
    assert diagnosis.reason == "VolumeNotBound"
    assert names in diagnosis.message


def test_a_claim_that_does_not_exist_leads_to_its_own_field() -> None:
    spec = a_spec().model("pvc://other/llama").set("pod.volumes", [SCRATCH, a_claim("models")])
    diagnosis = diagnose(Case(unplaced(said.NO_CLAIM), spec.build()))
    assert diagnosis is not None
    assert diagnosis.message.endswith("in spec.pod.volumes[1].persistentVolumeClaim.claimName")


def test_the_end_of_the_schedulers_sentence_is_left_out() -> None:
    diagnosis = told(said.UNBOUND, a_spec().model("pvc://models"))
    assert "PersistentVolumeClaims; look at the claim" in diagnosis.message
    new = "0/1 nodes are available: 1 node(s) were purple. no new claims to deallocate, preemption: 0/1 nodes are."
    assert told(new, a_spec()).message.endswith("1 node(s) were purple")


def test_the_way_out_outlives_any_number_of_claims() -> None:
    for names in ("x", "x" * 40):
        volumes = [a_claim(f"{names}{index}") for index in range(12)]
        message = told(f"{said.UNBOUND} {'y' * 2000}", a_spec().set("pod.volumes", volumes)).message
        assert "StorageClass" in message
        assert len(message) <= 1024
        assert (" and 7 more" in message) is (names == "x")


# ---- CPU and memory ------------------------------------------------------------------------------------------------
ALL_SHORT = "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 Insufficient nvidia.com/gpu. x"
SMALL = a_node("small", gpus=4, cpu_millicores=2000, memory_bytes=8 * GIB)


@pytest.mark.parametrize("field", ["cpu", "memory"])
def test_an_amount_that_nobody_stated_is_said_to_be_derived(field: str) -> None:
    words = f"0/1 nodes are available: 1 Insufficient {field}. preemption: none."
    derived = told(words, a_spec(), SMALL, gpus=1).message
    assert f"(derived; spec.resources.{field} sets it)" in derived
    assert f"set a lower spec.resources.{field}, or add larger nodes" in derived
    stated = told(words, a_spec().set(f"resources.{field}", {"cpu": "4", "memory": "24Gi"}[field]), SMALL, gpus=1)
    assert f"(spec.resources.{field})" in stated.message
    assert f"; lower spec.resources.{field}, or add larger nodes" in stated.message


@pytest.mark.parametrize(("gpus", "node"), [(1, a_node("cpu")), (8, SMALL)])
def test_cpu_and_memory_are_no_cause_where_no_node_has_the_gpus(gpus: int, node: NodeView) -> None:
    message = told(ALL_SHORT, a_spec(), node, gpus=gpus).message
    assert f"it needs {gpus} nvidia.com/gpu on one node" in message
    assert "too little" not in message
    assert message.count(";") == 1


def test_cpu_and_memory_are_a_cause_where_a_node_has_the_gpus() -> None:
    message = told(ALL_SHORT, a_spec(), SMALL, a_node("cpu"), gpus=2).message
    assert "too little CPU is free" in message
    assert "too little memory is free" in message


# ---- selection -----------------------------------------------------------------------------------------------------
NODE_AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]}]
        }
    }
}
PODS_ONLY: dict[str, object] = {"podAntiAffinity": {}}
SOME_MATCH = (
    "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 node(s) didn't match Pod's node affinity/selector."
)
A, B = a_node("a", labels={"pool": "a", "disk": "hdd"}), a_node("b", labels={"pool": "b", "disk": "ssd"})
PLAIN = a_spec().set("accelerator", None)


@pytest.mark.parametrize(
    ("words", "selector", "affinity", "names"),
    [
        (said.NO_MATCH, {"pool": "c"}, None, "no node has the label pool=c (spec.pod.nodeSelector)"),
        (said.NO_MATCH, {"pool": "c"}, NODE_AFFINITY, "no node has the label pool=c (spec.pod.nodeSelector)"),
        (said.NO_MATCH, {"pool": "c", "x": "1"}, None, "no node has the labels pool=c, x=1 (spec.pod.nodeSelector)"),
        (
            said.NO_MATCH,
            {"pool": "a", "disk": "ssd"},
            None,
            "no node has the labels disk=ssd, pool=a together (spec.pod.nodeSelector)",
        ),
        (said.NO_MATCH, None, NODE_AFFINITY, "no node matches spec.pod.affinity"),
        (said.NO_MATCH, {"pool": "a"}, NODE_AFFINITY, "no node matches spec.pod.nodeSelector and spec.pod.affinity"),
        (said.NO_MATCH, {"pool": "a"}, PODS_ONLY, "no node matches spec.pod.nodeSelector"),
        (SOME_MATCH, {"x": "1"}, None, "nodes that do not match spec.pod.nodeSelector are left out"),
        (SOME_MATCH, None, NODE_AFFINITY, "nodes that do not match spec.pod.affinity are left out"),
        (
            said.NO_MATCH,
            None,
            None,
            "no node matches what the pod asks of it (spec.accelerator.products, spec.pod.nodeSelector, "
            "spec.pod.affinity)",
        ),
    ],
)
def test_only_what_is_set_is_named_as_what_leaves_nodes_out(
    words: str, selector: dict[str, str] | None, affinity: dict[str, object] | None, names: str
) -> None:
    spec = PLAIN.set("pod", {}).set("pod.nodeSelector", selector).set("pod.affinity", affinity)
    message = told(words, spec, A, B).message
    assert message.endswith(f": {names}") or message.endswith(f"; {names}")


def test_a_label_that_nodes_of_other_products_have_is_told_with_the_product() -> None:
    nodes = (a_node("h", gpus=8, product=H100), a_node("l", gpus=8, product="NVIDIA-L4", labels={"pool": "c"}))
    spec = a_spec().on(H100).set("pod.nodeSelector", {"pool": "c"})
    assert told(said.NO_MATCH, spec, *nodes, gpus=1).message.endswith(
        ": no node of spec.accelerator.products has the label pool=c (spec.pod.nodeSelector)"
    )


def test_a_product_that_other_nodes_lack_is_no_cause() -> None:
    nodes = (a_node("h", gpus=8, product=H100), a_node("l", gpus=8, product="NVIDIA-L4"))
    message = told(SOME_MATCH, a_spec().on(H100), *nodes, gpus=9).message
    assert "products" not in message
    assert "left out" not in message
