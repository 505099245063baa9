"""The decision: the first apply, deletion, revisions."""

from dataclasses import replace

import pytest

from stoker.api.crd import object_schema
from stoker.api.structural import check
from stoker.kube.views import revision_entry
from stoker.reconcile.decision import Decision
from tests.builders.objects import an_object
from tests.builders.snapshots import UID
from tests.builders.views import a_node, a_pod
from tests.unit.reconcile.support import T1, T2, WITH_SECRET, a_life, kinds, revision_of, secret, stalled

SCHEMA = object_schema()["properties"]["status"]


# ---- the first apply, and nothing after it (N2) --------------------------------------------------------------------
def test_a_new_service_gets_its_revision_and_its_children() -> None:
    decision = a_life().reconcile()
    assert decision.create_revision is not None
    assert kinds(decision) == ["ServiceAccount", "NetworkPolicy", "Service", "Deployment"]
    assert decision.delete == ()
    assert stalled(decision) is None


def test_N2_a_second_reconcile_writes_nothing() -> None:
    life = a_life()
    life.reconcile()
    life.reconcile()
    again = life.decide()
    assert (again.create_revision, again.apply, again.delete, again.events) == (None, (), (), ())
    assert again.status == life.status


def test_N2_a_child_that_somebody_touched_is_healed_and_no_other() -> None:
    life = a_life()
    life.reconcile()
    life.touch("Service")
    assert kinds(life.reconcile()) == ["Service"]


def test_a_child_that_somebody_deleted_comes_back() -> None:
    life = a_life()
    life.reconcile()
    del life.children[("NetworkPolicy", "chat")]
    assert kinds(life.decide()) == ["NetworkPolicy"]


def test_a_child_on_its_way_out_is_waited_for() -> None:
    life = a_life()
    life.reconcile()
    key = ("Service", "chat")
    life.children[key] = replace(life.children[key], terminating=True, intact=False)
    assert life.decide().apply == ()


def test_equal_snapshots_give_equal_decisions() -> None:
    snapshot = a_life().snapshot()
    life = a_life()
    assert life.decide() == a_life().decide()
    assert life.snapshot() == snapshot


# ---- deletion (N5) -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("reconciled", [False, True])
def test_N5_nothing_is_written_for_an_object_that_is_being_deleted(reconciled: bool) -> None:
    life = a_life()
    if reconciled:
        life.reconcile()
    life.deleting = True
    assert life.decide() == Decision()


def test_N5_not_even_where_everything_else_is_broken() -> None:
    life = a_life(WITH_SECRET.model("nonsense"), references=(secret(None),), deleting=True)
    assert life.decide() == Decision()


# ---- revisions (N6) ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("path", "value"), [("replicas", 4), ("rollout.strategy", "Recreate"), ("paused", True)])
def test_N6_what_concerns_no_pod_rolls_no_pod(path: str, value: object) -> None:
    life = a_life()
    life.reconcile()
    before = life.template()
    assert life.set(path, value).reconcile().create_revision is None
    assert life.template() == before


def test_N6_an_upgrade_of_the_operator_rolls_no_pod_and_is_told() -> None:
    life = a_life()
    life.reconcile()
    before = life.template()
    life.settings = replace(life.settings, agent_image="example.com/stoker:2", renderer_version="2.0.0")
    decision = life.reconcile()
    assert decision.create_revision is None
    assert "Deployment" not in kinds(decision)
    assert life.template() == before
    assert decision.status is not None
    outdated = decision.status["revision"]["outdated"]
    assert "initContainers[agent].image: example.com/stoker:1 -> example.com/stoker:2" in outdated


def test_N6_a_new_node_rolls_no_pod() -> None:
    life = a_life()
    life.reconcile()
    before = life.template()
    life.nodes = (a_node(gpus=8, memory_mib=40_000), a_node("other", gpus=8, product="NVIDIA-H200"))
    assert life.reconcile().create_revision is None
    assert life.template() == before


def test_N6_a_restart_mark_renders_afresh_once() -> None:
    life = a_life()
    life.reconcile()
    first = revision_of(life)
    life.settings = replace(life.settings, agent_image="example.com/stoker:2")
    decision = life.set("rollout.restartedAt", T1).reconcile()
    assert decision.create_revision is not None
    assert revision_of(life) != first
    assert life.template()["spec"]["initContainers"][0]["image"] == "example.com/stoker:2"
    assert life.reconcile().create_revision is None


def test_N6_taking_the_restart_mark_away_rolls_nothing() -> None:
    life = a_life()
    life.reconcile()
    life.set("rollout.restartedAt", T1).reconcile()
    before = life.template()
    decision = life.set("rollout.restartedAt", None).reconcile()
    assert decision.create_revision is None
    assert life.template() == before


def test_N6_going_back_reuses_the_revision() -> None:
    life = a_life()
    life.reconcile()
    before = life.template()
    life.set("context.maxLength", 4096).reconcile()
    assert life.template() != before
    decision = life.set("context", None).reconcile()
    assert decision.create_revision is None
    assert life.template() == before


def test_N6_a_spec_that_today_is_refused_runs_on_where_its_revision_is_known() -> None:
    """An upgrade may refuse more than before: what serves goes on, and the status tells."""
    life = a_life()
    life.reconcile()
    life.nodes = (a_node(gpus=8, memory_mib=4_000),)
    decision = life.reconcile()
    assert stalled(decision) is None
    assert decision.apply == ()
    assert decision.status is not None
    assert any("refused" in line for line in decision.status["revision"]["outdated"])


def test_the_last_five_revisions_stay_and_what_runs_stays() -> None:
    life = a_life()
    for length in range(1024, 1024 * 9, 1024):
        life.set("context.maxLength", length).reconcile()
    assert len(life.revisions) == 5
    first = min(view.number for view in life.revisions.values())
    assert first == 4
    oldest = next(view for view in life.revisions.values() if view.number == first)
    life.set("context.maxLength", oldest.data["inputs"]["spec"]["context"]["maxLength"]).reconcile()
    for length in range(1000, 6000, 1000):
        life.set("paused", True).set("context.maxLength", length).reconcile()
    assert revision_of(life) == oldest.data["key"]
    assert oldest.ref.name in life.revisions


def test_a_revision_that_still_has_pods_stays() -> None:
    life = a_life()
    life.set("context.maxLength", 1000).reconcile()
    old = revision_of(life)
    life.pods = (a_pod(node="node-0", revision=old),)
    for length in range(2000, 10_000, 1000):
        life.set("context.maxLength", length).reconcile()
    assert f"chat-{old}" in life.revisions
    assert len(life.revisions) == 6


def test_what_the_deployment_runs_stays_until_it_runs_another() -> None:
    """Without replicas it has no pods, and the apply that brings the next revision may still be refused."""
    life = a_life().set("replicas", 0)
    for length in (1000, 2000, 3000, 4000, 5000, 1000):
        life.set("context.maxLength", length).reconcile()
    oldest = f"chat-{revision_of(life)}"
    assert life.set("context.maxLength", 9000).reconcile().delete == ()
    assert [ref.name for ref in life.reconcile().delete] == [oldest]


def test_N2_a_revision_on_its_way_out_is_not_deleted_again() -> None:
    life = a_life()
    for length in range(1000, 6000, 1000):
        life.set("context.maxLength", length).reconcile()
    oldest = min(life.revisions.values(), key=lambda view: view.number)
    life.revisions[oldest.ref.name] = replace(oldest, ref=replace(oldest.ref, terminating=True))
    assert life.set("context.maxLength", 9000).reconcile().delete == ()


@pytest.mark.parametrize("number", [-(2**63), -1, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, None])
def test_N21_a_revision_whose_number_somebody_edited_stops_no_status(number: int | None) -> None:
    """Only its data is immutable, and the API server takes every number of 64 bits that is not negative."""
    life = a_life()
    created = life.reconcile().create_revision
    assert created is not None
    entry = revision_entry(an_object("ControllerRevision", owner=UID, data=created["data"], revision=number))
    name = created["metadata"]["name"]
    life.revisions[name] = replace(life.revisions[name], number=entry.number)
    before = life.template()
    for decision in (life.reconcile(), life.set("context.maxLength", 4096).reconcile(), life.reconcile()):
        assert decision.status is not None
        assert list(check(SCHEMA, decision.status, "status")) == []
    assert life.template() != before
    assert max(view.number for view in life.revisions.values()) <= 2**53


def test_foreign_revisions_are_left_alone() -> None:
    life = a_life()
    for length in range(1000, 8000, 1000):
        life.set("context.maxLength", length).reconcile()
    name, view = next(iter(life.revisions.items()))
    life.revisions[name] = replace(view, number=0, ref=replace(view.ref, controller_uid="another"))
    for length in range(1000, 8000, 900):
        life.set("context.maxLength", length).reconcile()
    assert name in life.revisions


def test_N6_taking_an_earlier_restart_mark_away_rolls_nothing() -> None:
    life = a_life()
    life.reconcile()
    for mark in (T1, T2, T1):
        life.set("rollout.restartedAt", mark).reconcile()
    before = life.template()
    decision = life.set("rollout.restartedAt", None).reconcile()
    assert (decision.create_revision, decision.apply) == (None, ())
    assert life.template() == before
