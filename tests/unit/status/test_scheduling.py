"""Pods that no node takes: only fields that can be meant are named, and only causes that can be one."""

import pytest

from stoker.plan.snapshot import NodeView
from stoker.status.case import Case, Diagnosis
from stoker.status.diagnosis import diagnose
from tests.builders import last_words as said
from tests.builders.failures import unplaced
from tests.builders.layouts import a_layout
from tests.builders.specs import SpecBuilder, a_spec


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
