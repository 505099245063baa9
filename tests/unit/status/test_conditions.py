"""What the conditions say beyond their reason: the layout, the pods on their way, the diagnosis, an older CRD."""

from dataclasses import replace
from typing import Any

import pytest

from stoker.api.crd import SchemaGap
from stoker.api.faults import Fault
from stoker.plan.snapshot import PodView
from stoker.plan.types import Suggestion, Verdict
from stoker.status.outcome import Finding
from stoker.status.project import project
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
    told = message(Seen(findings=(finding,), crd_outdated=SchemaGap("spec.warmup")).status(), "UpToDate")
    assert "CRDOutdated: the served CustomResourceDefinition lacks spec.warmup" in told
    assert told.endswith("then apply the manifest again")


@pytest.mark.parametrize(
    ("gap", "effect"),
    [
        (SchemaGap("spec.warmup"), "spec.warmup or more: fields are dropped"),
        (SchemaGap(check="a rule of spec.a"), "a rule of spec.a or more: other rules and defaults hold"),
        (SchemaGap("spec.b", "a rule of spec.a"), "spec.b or more: fields are dropped, other rules and defaults hold"),
    ],
)
def test_N7_of_an_older_crd_just_that_is_told_which_holds(gap: SchemaGap, effect: str) -> None:
    told = message(Seen(crd_outdated=gap).status(), "UpToDate")
    assert f"lacks {effect}; bring the CustomResourceDefinition and the operator to one version" in told


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


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("hf://a/b", "the engine downloads the weights itself"),
        ("pvc://models/llama", "as they lie on the volume"),
        ("s3://bucket/model", "spec.model.source is none"),
        ("hf", "spec.model.source is none"),
    ],
)
def test_N16_a_spec_with_faults_is_not_said_to_serve_from_elsewhere(source: str, says: str) -> None:
    seen = Seen(findings=(Finding("InvalidSpec", "spec.parallelism.tensor: 0", stalled=True),), is_wanted=False)
    stored = {"spec": {"model": {"source": source, "revision": "0e9e39f"}}, "metadata": {"generation": 1}}
    snapshot, outcome = replace(seen.snapshot(), service=stored), replace(seen.outcome(), spec=None)
    status = project(snapshot, outcome)
    assert says in message(status, "ModelVerified")
    assert conditions(status)["ModelVerified"] == ("Unknown", "NotVerified")


@pytest.mark.parametrize("spec", [None, {}, {"model": None}, {"model": []}, {"model": {"source": 3}}])
def test_a_stored_spec_of_any_shape_has_a_status(spec: object) -> None:
    seen = Seen(is_wanted=False)
    status = project(replace(seen.snapshot(), service={"spec": spec}), replace(seen.outcome(), spec=None))
    assert "spec.model.source is none" in message(status, "ModelVerified")


@pytest.mark.parametrize("revision", [None, "main", "0e9e39f249a16976918f6564b8830bc894c89659"])
def test_N16_a_pinned_model_is_not_said_to_be_verified(revision: str | None) -> None:
    """A commit says which weights are asked for; nothing compares those that came with it."""
    spec = a_spec() if revision is None else a_spec().set("model.revision", revision)
    assert conditions(Seen(spec=spec).status())["ModelVerified"] == ("Unknown", "NotVerified")


def test_what_is_held_back_is_not_said_to_start() -> None:
    layout = a_layout(verdict=Verdict.UNKNOWN, reasons=("the ConfigMap c does not exist",))
    missing = Finding("ConfigMapNotFound", "there is no ConfigMap c; create it", stalled=True)
    held_back = Seen(layout=layout, findings=(missing,), revision=False, deployed=None).status()
    assert message(held_back, "Fits") == "the ConfigMap c does not exist"
    in_the_way = Finding("NameConflict", "Service chat belongs to somebody else", stalled=True)
    assert "start all the same" in message(Seen(layout=layout, findings=(in_the_way,)).status(), "Fits")


COUNTED = {
    "surge": (Seen(wanted=2, counts=(3, 1, 2, 2)), "UpToDate", "1 of 3 pods is of revision r2, 2 of an older one"),
    "surge of one": (Seen(wanted=1, counts=(2, 1, 1, 1)), "UpToDate", "1 of 2 pods is of revision r2, 1 of an older"),
    "all are old": (Seen(wanted=1, counts=(1, 0, 1, 1)), "UpToDate", "the only pod is not of revision r2"),
    "too few": (Seen(wanted=2, counts=(1, 1, 1, 1)), "UpToDate", "1 of 2 pods is of revision r2"),
    "too many": (Seen(wanted=1, counts=(3, 3, 3, 3)), "UpToDate", "3 pods are of revision r2, and 1 is wanted"),
    "none serves": (Seen(wanted=2, counts=(2, 2, 0, 0)), "Available", "none of 2 pods serves"),
    "it does not serve": (Seen(wanted=1, counts=(1, 1, 0, 0)), "Available", "the only pod does not serve"),
    "no Deployment": (Seen(wanted=1, deployed=None), "Available", "there is no pod yet that could serve"),
    "no pod": (Seen(wanted=1, counts=(0, 0, 0, 0)), "Warm", "there is no pod yet that could be warmed up"),
    "not warm": (Seen(wanted=2, counts=(1, 1, 0, 0)), "Warm", "0 of 2 pods answered the warm-up"),
}


@pytest.mark.parametrize(("seen", "kind", "says"), COUNTED.values(), ids=COUNTED)
def test_counts_in_a_message_add_up(seen: Seen, kind: str, says: str) -> None:
    assert message(seen.status(), kind).startswith(says)
