"""What the conditions say beyond their reason: the layout, the pods on their way, the diagnosis, an older CRD."""

from dataclasses import replace
from typing import Any

import pytest

from stoker.api.faults import Fault
from stoker.plan.snapshot import PodView
from stoker.plan.types import Suggestion, Verdict
from stoker.status.outcome import Finding
from tests.builders import last_words as said
from tests.builders.failures import KNOWN, a_container, unplaced, with_containers
from tests.builders.layouts import a_layout
from tests.builders.specs import a_spec
from tests.unit.status.support import NEW, OLD, OOM, Seen, conditions, message


def test_a_layout_with_a_contradiction_does_not_fit() -> None:
    fault = Fault("spec.parallelism.tensor", "3 does not divide 32 heads", "take 1, 2, 4", "TensorDoesNotDivideHeads")
    status = Seen(layout=a_layout(verdict=Verdict.FITS, faults=(fault,))).status()

    assert conditions(status)["Fits"] == ("False", "TensorDoesNotDivideHeads")
    assert message(status, "Fits") == str(fault)


def test_what_would_fit_is_said_with_what_does_not() -> None:
    ways = (Suggestion({}, "spec.parallelism.tensor 2: 100 tokens"), Suggestion({}, "spec.quantization.weights fp8"))
    layout = a_layout(verdict=Verdict.TOO_SMALL, reasons=("short by 2 GiB on each GPU",), suggestions=ways)
    told = message(Seen(layout=layout).status(), "Fits")
    assert told == (
        "short by 2 GiB on each GPU; would fit: spec.parallelism.tensor 2: 100 tokens; or spec.quantization.weights fp8"
    )


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("no size; set spec.a", "no size; set spec.a; the pods start all the same"),
        ("no size", "no size; state the numbers in spec.model.facts; the pods start all the same"),
    ],
)
def test_what_is_not_known_is_followed_by_one_piece_of_advice(reason: str, expected: str) -> None:
    seen = Seen(layout=a_layout(verdict=Verdict.UNKNOWN, reasons=(reason,)))
    assert message(seen.status(), "Fits") == expected


def test_N7_an_older_crd_is_told_however_many_faults_there_are() -> None:
    finding = Finding("InvalidSpec", "spec.pod: is wrong; correct it | " * 100, stalled=True)
    told = message(Seen(findings=(finding,), crd_outdated="spec.warmup").status(), "UpToDate")
    assert "CRDOutdated: the served CustomResourceDefinition lacks spec.warmup" in told
    assert told.endswith("then apply the manifest again")


def test_N7_nodes_that_may_not_be_listed_are_told_where_the_device_is_not_known() -> None:
    layout = a_layout(verdict=Verdict.UNKNOWN, reasons=("no node has the label; set spec.accelerator.memory",))
    assert "role does not allow" in message(Seen(layout=layout, nodes_are_known=False).status(), "Fits")
    assert "role does not allow" not in message(Seen(layout=layout).status(), "Fits")
    on_cpu = replace(layout, gpus_per_pod=0)
    assert "role does not allow" not in message(Seen(layout=on_cpu, nodes_are_known=False).status(), "Fits")


def test_stages_of_pods_are_counted() -> None:
    agent = a_container("agent", started=True, ready=True)
    pods = (
        with_containers(agent, a_container(started=True), revision=NEW, name="a"),
        with_containers(agent, a_container(), revision=NEW, name="b"),
        with_containers(agent, a_container(), revision=NEW, name="c"),
        with_containers(a_container("agent"), revision=NEW, name="d"),
        with_containers(agent, a_container(), revision=OLD, name="e"),
    )
    told = message(Seen(wanted=4, counts=(4, 4, 0, 0), pods=pods).status(), "Ready")
    assert told == "0 of 4 pods serving: 1 warming up, 2 loading the model, 1 getting ready to start"


def test_what_somebody_has_to_act_on_goes_before_what_passes() -> None:
    pods = (replace(unplaced(said.NO_GPU_FREE), revision=NEW), OOM)
    assert conditions(Seen(counts=(2, 2, 0, 0), pods=pods).status())["Ready"] == ("False", "OOMKilled")


@pytest.mark.parametrize("pod", [replace(OOM, revision=OLD), replace(OOM, terminating=True), replace(OOM, ready=True)])
def test_pods_of_no_concern_are_not_diagnosed(pod: PodView) -> None:
    assert conditions(Seen(counts=(2, 2, 1, 1), pods=(pod,)).status())["Ready"] == ("False", "Starting")


def test_an_old_crash_does_not_stall_a_service_that_serves() -> None:
    assert "Stalled" not in conditions(Seen(pods=(OOM,)).status())


def test_hub_models_say_that_nothing_verified_them() -> None:
    assert "with a commit" in message(Seen().status(), "ModelVerified")
    pinned = Seen(spec=a_spec().set("model.revision", "0e9e39f")).status()
    assert "with a commit" not in message(pinned, "ModelVerified")
    assert "volume" in message(Seen(spec=a_spec().model("pvc://models/llama")).status(), "ModelVerified")


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN.keys())
def test_a_diagnosis_is_the_reason_of_ready_and_of_one_of_the_pair(known: Any) -> None:
    found = conditions(Seen(counts=(2, 2, 0, 0), pods=(replace(known.pod, revision=NEW),)).status())
    assert found["Ready"][0] == "False"
    pair = "Stalled" if known.stalled else "Reconciling"
    assert found[pair] == ("True", found["Ready"][1])
