"""Situations, and every condition of each: Ready never lies (N4), and kstatus reads one thing only."""

from dataclasses import replace

import pytest

from stoker.api.crd import SchemaGap
from stoker.api.structural import check
from stoker.plan.snapshot import ConditionView
from stoker.plan.types import Verdict
from stoker.status.outcome import Finding
from tests.builders import last_words as said
from tests.builders.failures import unplaced
from tests.builders.layouts import a_layout
from tests.builders.specs import a_spec
from tests.builders.views import a_pod
from tests.unit.status.support import NEW, OLD, OOM, SCHEMA, Seen, conditions, message

HF = ("Unknown", "NotVerified")
FITS = ("True", "Fits")
STALLED = Finding("SecretNotFound", "there is no Secret keys", stalled=True)
UNREADABLE = Finding("ReferenceUnreadable", "Secret keys could not be read: forbidden", stalled=False)
PAUSED = Finding("Paused", "spec.paused is true", stalled=False)


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


@pytest.mark.parametrize("seen", [seen for seen, _ in STATES.values()], ids=STATES.keys())
def test_N7_an_older_crd_is_told_in_a_message_and_moves_no_condition(seen: Seen) -> None:
    """A condition that is False by default would make every service look as if it were on its way."""
    outdated = replace(seen, crd_outdated=SchemaGap("spec.warmup"))
    assert conditions(outdated.status()) == conditions(seen.status())
    told = message(outdated.status(), "UpToDate")
    assert told.startswith(message(seen.status(), "UpToDate"))
    assert "CRDOutdated: the served CustomResourceDefinition lacks spec.warmup" in told
    assert "CRDOutdated" not in str(seen.status())
