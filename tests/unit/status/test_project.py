"""Conditions: Ready never lies (N4), times are kept, everything is bounded, and the whole follows the schema."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.api.crd import object_schema
from stoker.api.faults import Fault
from stoker.api.structural import check
from stoker.plan.snapshot import ConditionView, DeploymentView, PodView, Snapshot
from stoker.plan.types import Layout, RankMemory, Suggestion, Verdict
from stoker.status.outcome import Finding, Outcome, TargetRevision
from stoker.status.project import project
from tests.builders import last_words as said
from tests.builders.failures import KNOWN, a_container, crashed, unplaced, with_containers
from tests.builders.layouts import a_layout
from tests.builders.snapshots import an_object
from tests.builders.specs import SpecBuilder, a_spec
from tests.builders.views import a_pod

OLD, NEW = "r1", "r2"
SCHEMA = object_schema()["properties"]["status"]
EARLIER, NOW = "2026-03-01T12:00:00Z", "2026-03-01T12:30:00Z"


@dataclass(frozen=True, slots=True)
class Seen:
    """What is seen of a service, and what the decision came to. By default: two pods, all of the revision, serving."""

    spec: SpecBuilder = field(default_factory=a_spec)
    generation: int = 3
    counts: tuple[int, int, int, int] = (2, 2, 2, 2)
    """existing, updated, ready, available"""
    wanted: int = 2
    deployed: str | None = NEW
    seen_generation: int = 1
    deployed_replicas: int | None = None
    deployment_conditions: tuple[ConditionView, ...] = ()
    pods: tuple[PodView, ...] = ()
    findings: tuple[Finding, ...] = ()
    is_wanted: bool = True
    revision: bool = True
    paused: bool = False
    layout: Layout | None = field(default_factory=a_layout)
    before: Mapping[str, Any] | None = None
    create_failures: tuple[str, ...] = ()
    apply_failures: Mapping[str, str] = field(default_factory=dict)
    now: str = NOW
    crd_outdated: str | None = None
    nodes_are_known: bool = True

    def snapshot(self) -> Snapshot:
        """What is observed."""
        service = self.spec.manifest()
        service["metadata"]["generation"] = self.generation
        if self.before is not None:
            service["status"] = dict(self.before)
        return Snapshot(
            service, self.now, self.deployment(), pods=self.pods, create_failures=self.create_failures,
            apply_failures=self.apply_failures, crd_outdated=self.crd_outdated, nodes_are_known=self.nodes_are_known,
        )  # fmt: skip

    def deployment(self) -> DeploymentView | None:
        """The Deployment; none where `deployed` is None."""
        if self.deployed is None:
            return None
        existing, updated, ready, available = self.counts
        replicas = self.wanted if self.deployed_replicas is None else self.deployed_replicas
        return DeploymentView(
            an_object("Deployment"), self.seen_generation, replicas, existing, updated, ready, available, self.deployed,
            self.deployment_conditions,
        )  # fmt: skip

    def outcome(self) -> Outcome:
        """What the decision came to."""
        revision = TargetRevision(NEW, "chat-r2", 2, "Surge", "two GPUs are free", self.is_wanted, is_new=False)
        return Outcome(
            self.spec.build(), self.layout, revision if self.revision else None, self.findings,
            "http://chat.team-a.svc:8000", "serving.stoker.dev/service=chat", self.wanted, self.paused,
        )  # fmt: skip

    def status(self) -> dict[str, Any]:
        """The status, through JSON and back."""
        projected: dict[str, Any] = json.loads(json.dumps(project(self.snapshot(), self.outcome())))
        return projected


def conditions(status: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return status and reason of each condition."""
    return {condition["type"]: (condition["status"], condition["reason"]) for condition in status["conditions"]}


def message(status: Mapping[str, Any], kind: str) -> str:
    """Return the message of a condition."""
    return next(str(condition["message"]) for condition in status["conditions"] if condition["type"] == kind)


HF = ("Unknown", "NotVerified")
FITS = ("True", "Fits")
STALLED = Finding("SecretNotFound", "there is no Secret keys", stalled=True)
UNREADABLE = Finding("ReferenceUnreadable", "Secret keys could not be read: forbidden", stalled=False)
PAUSED = Finding("Paused", "spec.paused is true", stalled=False)
OOM = replace(crashed("", 137, terminated_reason="OOMKilled"), revision=NEW)


def states() -> dict[str, tuple[Seen, dict[str, tuple[str, str]]]]:
    """Situations, and every condition of each."""
    serving, nothing = ("True", "Serving"), ("False", "NothingServes")
    current, warm, cold = ("True", "UpToDate"), ("True", "Warm"), ("False", "NotWarm")
    rest = {"Fits": FITS, "ModelVerified": HF}
    return {
        "serves": (Seen(), {"Ready": serving, "Available": serving, "UpToDate": current, "Warm": warm, **rest}),
        "no Deployment yet": (
            Seen(deployed=None),
            {"Ready": ("False", "Creating"), "Available": nothing, "UpToDate": ("False", "Applying"), "Warm": cold,
             "Reconciling": ("True", "Creating"), **rest},
        ),
        "N4 old revision serves, new one crashes": (
            Seen(counts=(3, 1, 2, 2), pods=(replace(a_pod("old", node="a", ready=True), revision=OLD), OOM)),
            {"Ready": ("False", "OOMKilled"), "Available": serving, "UpToDate": ("False", "RollingOut"), "Warm": cold,
             "Stalled": ("True", "OOMKilled"), **rest},
        ),
        "N4 old revision serves, new one loads": (
            Seen(counts=(3, 1, 2, 2), pods=(a_pod("new", node="a", revision=NEW),)),
            {"Ready": ("False", "RollingOut"), "Available": serving, "UpToDate": ("False", "RollingOut"), "Warm": cold,
             "Reconciling": ("True", "RollingOut"), **rest},
        ),
        "N4 only old pods are counted": (
            Seen(counts=(2, 0, 2, 2)),
            {"Ready": ("False", "RollingOut"), "Available": serving, "UpToDate": ("False", "RollingOut"), "Warm": warm,
             "Reconciling": ("True", "RollingOut"), **rest},
        ),
        "N4 an old pod is left beside all new ones": (
            Seen(counts=(3, 2, 3, 3)),
            {"Ready": ("False", "RollingOut"), "Available": serving, "UpToDate": ("False", "RollingOut"), "Warm": warm,
             "Reconciling": ("True", "RollingOut"), **rest},
        ),
        "N4 the Deployment's controller has not seen it": (
            Seen(seen_generation=0),
            {"Ready": ("False", "Applying"), "Available": serving, "UpToDate": ("False", "Applying"), "Warm": warm,
             "Reconciling": ("True", "Applying"), **rest},
        ),
        "N4 the Deployment is still at the old revision": (
            Seen(deployed=OLD),
            {"Ready": ("False", "Applying"), "Available": serving, "UpToDate": ("False", "Applying"), "Warm": warm,
             "Reconciling": ("True", "Applying"), **rest},
        ),
        "N4 the Deployment is still at the old count": (
            Seen(deployed_replicas=1, counts=(1, 1, 1, 1), wanted=2),
            {"Ready": ("False", "Applying"), "Available": serving, "UpToDate": ("False", "Applying"), "Warm": cold,
             "Reconciling": ("True", "Applying"), **rest},
        ),
        "Recreate: the new one crashes": (
            Seen(counts=(2, 2, 0, 0), pods=(OOM,)),
            {"Ready": ("False", "OOMKilled"), "Available": nothing, "UpToDate": current, "Warm": cold,
             "Stalled": ("True", "OOMKilled"), **rest},
        ),
        "one of two is starting": (
            Seen(counts=(2, 2, 1, 1), pods=(a_pod("b", node="a", revision=NEW),)),
            {"Ready": ("False", "Starting"), "Available": serving, "UpToDate": current, "Warm": cold,
             "Reconciling": ("True", "Starting"), **rest},
        ),
        "ready but not available yet": (
            Seen(counts=(2, 2, 2, 1)),
            {"Ready": ("False", "Starting"), "Available": serving, "UpToDate": current, "Warm": warm,
             "Reconciling": ("True", "Starting"), **rest},
        ),
        "no GPU is free": (
            Seen(counts=(2, 2, 0, 0), pods=(replace(unplaced(said.NO_GPU_FREE, gpus=1), revision=NEW),)),
            {"Ready": ("False", "Unschedulable"), "Available": nothing, "UpToDate": current, "Warm": cold,
             "Reconciling": ("True", "Unschedulable"), **rest},
        ),
        "quota": (
            Seen(counts=(0, 0, 0, 0), create_failures=(said.QUOTA.format("x"),)),
            {"Ready": ("False", "QuotaExceeded"), "Available": nothing, "UpToDate": ("False", "RollingOut"),
             "Warm": cold, "Reconciling": ("True", "QuotaExceeded"), **rest},
        ),
        "deadline": (
            Seen(counts=(2, 2, 0, 0),
                 deployment_conditions=(ConditionView("Progressing", "False", "ProgressDeadlineExceeded", ""),)),
            {"Ready": ("False", "ProgressDeadlineExceeded"), "Available": nothing, "UpToDate": current, "Warm": cold,
             "Reconciling": ("True", "ProgressDeadlineExceeded"), **rest},
        ),
        "stopped": (
            Seen(wanted=0, counts=(0, 0, 0, 0)),
            {"Ready": ("True", "Stopped"), "Available": ("False", "Stopped"), "UpToDate": current,
             "Warm": ("False", "Stopped"), **rest},
        ),
        "stopping": (
            Seen(wanted=0, counts=(1, 1, 1, 1)),
            {"Ready": ("False", "Stopping"), "Available": serving, "UpToDate": ("False", "RollingOut"),
             "Warm": ("False", "Stopped"), "Reconciling": ("True", "Stopping"), **rest},
        ),
        "a secret is missing while the old revision serves": (
            Seen(findings=(UNREADABLE, STALLED), is_wanted=False),
            {"Ready": ("False", "SecretNotFound"), "Available": serving, "UpToDate": ("False", "SecretNotFound"),
             "Warm": warm, "Stalled": ("True", "SecretNotFound"), **rest},
        ),
        "a secret cannot be read": (
            Seen(findings=(UNREADABLE,), is_wanted=False),
            {"Ready": ("Unknown", "ReferenceUnreadable"), "Available": serving,
             "UpToDate": ("Unknown", "ReferenceUnreadable"), "Warm": warm,
             "Reconciling": ("True", "ReferenceUnreadable"), **rest},
        ),
        "paused before a new revision": (
            Seen(findings=(PAUSED,), is_wanted=False, paused=True),
            {"Ready": ("False", "Paused"), "Available": serving, "UpToDate": ("False", "Paused"), "Warm": warm, **rest},
        ),
        "paused with nothing to do": (
            Seen(paused=True), {"Ready": serving, "Available": serving, "UpToDate": current, "Warm": warm, **rest},
        ),
        "a child is refused": (
            Seen(apply_failures={"Deployment/chat": said.INVALID, "Service/chat": "timeout"}),
            {"Ready": ("False", "ChildRefused"), "Available": serving, "UpToDate": current, "Warm": warm,
             "Stalled": ("True", "ChildRefused"), **rest},
        ),
        "no warm-up": (
            Seen(spec=a_spec().set("warmup.requests", 0)),
            {"Ready": serving, "Available": serving, "UpToDate": current, "Warm": ("Unknown", "WarmupOff"), **rest},
        ),
        "a model that nobody knows": (
            Seen(layout=a_layout(verdict=Verdict.UNKNOWN, reasons=("the model is not known",))),
            {"Ready": serving, "Available": serving, "UpToDate": current, "Warm": warm, "ModelVerified": HF,
             "Fits": ("Unknown", "NotEnoughKnown")},
        ),
        "nothing fits": (
            Seen(layout=a_layout(verdict=Verdict.TOO_SMALL, reasons=("short by 2 GiB",), short_by_bytes=2**31),
                 revision=False, deployed=None, findings=(Finding("DoesNotFit", "short", stalled=True),)),
            {"Ready": ("False", "DoesNotFit"), "Available": nothing, "UpToDate": ("False", "DoesNotFit"), "Warm": cold,
             "Fits": ("False", "DoesNotFit"), "ModelVerified": HF, "Stalled": ("True", "DoesNotFit")},
        ),
    }  # fmt: skip


STATES = states()


@pytest.mark.parametrize(("seen", "expected"), STATES.values(), ids=STATES.keys())
def test_N4_every_condition_of_a_situation(seen: Seen, expected: dict[str, tuple[str, str]]) -> None:
    assert conditions(seen.status()) == expected


@pytest.mark.parametrize("seen", [seen for seen, _ in STATES.values()], ids=STATES.keys())
def test_kstatus_reads_one_thing_only(seen: Seen) -> None:
    found = conditions(seen.status())
    assert len({"Reconciling", "Stalled"} & set(found)) <= 1
    if found["Ready"][0] == "True":
        assert not {"Reconciling", "Stalled"} & set(found)


@pytest.mark.parametrize("seen", [seen for seen, _ in STATES.values()], ids=STATES.keys())
def test_the_status_follows_the_schema_and_names_its_generation(seen: Seen) -> None:
    status = seen.status()
    assert list(check(SCHEMA, status, "status")) == []
    assert status["observedGeneration"] == 3
    assert {condition["observedGeneration"] for condition in status["conditions"]} == {3}


def test_N2_the_same_is_said_in_the_same_words() -> None:
    for seen, _ in STATES.values():
        first = seen.status()
        assert replace(seen, before=first, now="2026-03-01T13:00:00Z").status() == first


def test_a_transition_time_moves_with_the_status_alone() -> None:
    first = Seen(counts=(2, 2, 1, 1), now=EARLIER).status()
    then = Seen(before=first).status()
    times = {condition["type"]: condition["lastTransitionTime"] for condition in then["conditions"]}
    assert times["Ready"] == NOW
    assert times["Available"] == times["UpToDate"] == times["Fits"] == EARLIER


@pytest.mark.parametrize("before", [{}, {"conditions": None}, {"conditions": ["x", {}, {"type": "Ready"}]}, {"a": 1}])
def test_a_status_that_somebody_spoiled_is_replaced(before: Mapping[str, Any]) -> None:
    assert Seen(before=before).status() == Seen().status()


def test_the_counts_and_the_addresses_are_told() -> None:
    pods = tuple(a_pod(f"p{i}", node="a", gpus=2, ready=True, revision=NEW) for i in range(2))
    ended = replace(a_pod("gone", gpus=2), phase="Failed")
    status = Seen(counts=(3, 2, 1, 1), pods=(*pods, ended)).status()
    assert [status[key] for key in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")] == [
        3,
        2,
        1,
        1,
    ]
    assert status["gpus"] == 4
    assert status["url"] == "http://chat.team-a.svc:8000"
    assert status["selector"] == "serving.stoker.dev/service=chat"


def test_N21_a_pod_with_our_label_that_asks_for_what_nothing_has_breaks_no_status() -> None:
    """Whoever may create pods may label one so, and the API server takes any number of GPUs."""
    assert Seen(pods=(a_pod("p", gpus=2**63 - 1), a_pod("q", gpus=1))).status()["gpus"] == 2**31 - 1


def test_the_layout_and_the_revision_are_told() -> None:
    rank = RankMemory(0, 32, 16 * 2**30, 2**30, 2**29, 2**30, 131072, 0, 72 * 2**30, 40 * 2**30, 327680)
    layout = a_layout(
        ranks=(rank,),
        origins={"memory": "node label"},
        suggestions=(Suggestion({"spec.parallelism.tensor": "2"}, "use 2"),),
    )
    status = Seen(layout=layout).status()
    told = status["layout"]
    assert (told["weightBytesPerRank"], told["kvBytesPerTokenPerRank"], told["kvTokens"]) == (
        16 * 2**30,
        131072,
        400_000,
    )
    assert (told["verdict"], told["maxConcurrency"], told["gpusPerPod"]) == ("Fits", "48.8", 1)
    assert told["origins"] == [{"name": "memory", "origin": "node label"}]
    assert told["suggestions"] == ["use 2"]
    assert status["revision"] == {
        "key": NEW, "name": "chat-r2", "number": 2, "strategy": "Surge", "strategyReason": "two GPUs are free",
    }  # fmt: skip


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


@pytest.mark.parametrize("seen", [seen for seen, _ in STATES.values()], ids=STATES.keys())
def test_N7_an_older_crd_is_told_in_a_message_and_moves_no_condition(seen: Seen) -> None:
    """A condition that is False by default would make every service look as if it were on its way."""
    outdated = replace(seen, crd_outdated="spec.warmup")
    assert conditions(outdated.status()) == conditions(seen.status())
    told = message(outdated.status(), "UpToDate")
    assert told.startswith(message(seen.status(), "UpToDate"))
    assert "CRDOutdated: the served CustomResourceDefinition lacks spec.warmup" in told
    assert "CRDOutdated" not in str(seen.status())


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


@settings(deadline=None)
@given(st.text(max_size=5000), st.text(max_size=80))
def test_the_status_is_bounded_whatever_is_found(text: str, reason: str) -> None:
    seen = Seen(
        findings=(Finding(reason, text, stalled=True), Finding("Other", text, stalled=True)),
        layout=a_layout(reasons=(text,) * 40, origins={f"{text}{i}": text for i in range(50)}),
    )
    status = seen.status()
    assert list(check(SCHEMA, status, "status")) == []
    assert max(len(condition["message"].encode()) for condition in status["conditions"]) <= 1024


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN.keys())
def test_a_diagnosis_is_the_reason_of_ready_and_of_one_of_the_pair(known: Any) -> None:
    found = conditions(Seen(counts=(2, 2, 0, 0), pods=(replace(known.pod, revision=NEW),)).status())
    assert found["Ready"][0] == "False"
    pair = "Stalled" if known.stalled else "Reconciling"
    assert found[pair] == ("True", found["Ready"][1])
