"""The decision: paused, scaling, ways to replace, foreign objects."""

from dataclasses import replace

import pytest

from tests.builders.failures import crashed
from tests.builders.snapshots import an_object
from tests.builders.specs import a_spec
from tests.unit.reconcile.support import H100, TOO_LARGE, a_life, kinds, revision_of, stalled, strategy_of


# ---- paused, scaling, strategies -----------------------------------------------------------------------------------
def test_paused_freezes_new_revisions_only() -> None:
    life = a_life()
    life.reconcile()
    before = life.template()
    life.set("paused", True).set("context.maxLength", 4096).set("replicas", 3)
    life.touch("Service")
    decision = life.reconcile()
    assert decision.create_revision is None
    assert kinds(decision) == ["Service", "PodDisruptionBudget", "Deployment"]
    assert life.template() == before
    assert life.set("paused", None).reconcile().create_revision is not None


def test_paused_freezes_the_way_back_too() -> None:
    life = a_life()
    life.reconcile()
    life.set("context.maxLength", 4096).reconcile()
    before = life.template()
    life.set("paused", True).set("context", None).reconcile()
    assert life.template() == before


@pytest.mark.parametrize(("path", "value"), [("paused", True), ("model.source", TOO_LARGE)])
def test_a_spec_that_is_not_rolled_out_does_not_make_what_runs_outdated(path: str, value: object) -> None:
    """Outdated is what today's renderer would do otherwise for the same spec; this is another spec."""
    life = a_life()
    life.reconcile()
    decision = life.set("context.maxLength", 4096).set(path, value).reconcile()
    assert decision.create_revision is None
    assert decision.status is not None
    assert decision.status["revision"].get("outdated") is None


def test_a_deployment_that_somebody_deleted_comes_back_as_it_was_while_paused() -> None:
    """Not at the newest revision: the spec had gone back to an earlier one."""
    life = a_life()
    life.reconcile()
    life.set("context.maxLength", 4096).reconcile()
    life.set("context", None).reconcile()
    before = life.template()
    life.set("paused", True).set("context.maxLength", 2048)
    del life.children[("Deployment", "chat")]
    life.reconcile()
    assert life.template() == before


def test_pods_that_fail_while_paused_are_told_by_what_they_were_rendered_from() -> None:
    life = a_life(a_spec().on(H100).set("resources.memory", "64Gi"), ready=0)
    life.reconcile()
    life.pods = (replace(crashed("", 137, terminated_reason="OOMKilled"), revision=revision_of(life)),)
    condition = stalled(life.set("paused", True).set("resources.memory", "128Gi").reconcile())
    assert condition is not None
    assert "its memory limit of 64Gi" in condition["message"]


def test_a_service_that_is_born_paused_gets_nothing() -> None:
    decision = a_life(a_spec().on(H100).set("paused", True)).reconcile()
    assert (decision.create_revision, decision.apply) == (None, ())


@pytest.mark.parametrize("replicas", [0, 1, 2, 5])
def test_replicas_reach_the_deployment(replicas: int) -> None:
    life = a_life()
    life.reconcile()
    life.set("replicas", replicas).reconcile()
    assert life.bodies[("Deployment", "chat")]["spec"]["replicas"] == replicas
    assert (("PodDisruptionBudget", "chat") in life.children) == (replicas > 1)


def test_a_budget_that_is_no_longer_wanted_goes() -> None:
    life = a_life(a_spec().on(H100).replicas(2))
    life.reconcile()
    decision = life.set("replicas", 1).reconcile()
    assert [(ref.kind, ref.name) for ref in decision.delete] == [("PodDisruptionBudget", "chat")]


def test_N2_a_child_on_its_way_out_is_not_deleted_again() -> None:
    """Somebody's finalizer may hold it for as long as it likes."""
    life = a_life(a_spec().on(H100).replicas(2))
    life.reconcile()
    key = ("PodDisruptionBudget", "chat")
    life.children[key] = replace(life.children[key], terminating=True)
    assert life.set("replicas", 1).reconcile().delete == ()


def test_what_the_service_does_not_control_is_never_deleted() -> None:
    life = a_life()
    life.reconcile()
    life.children[("PodDisruptionBudget", "chat")] = an_object("PodDisruptionBudget", uid=None)
    life.children[("Service", "other")] = an_object("Service", "other", uid="another")
    assert life.reconcile().delete == ()


def test_N18_the_way_to_replace_is_chosen_once_per_revision() -> None:
    life = a_life()
    life.reconcile()
    assert strategy_of(life) == "Surge"
    life.held = {"node-0": {"nvidia.com/gpu": 8}}
    life.touch("Deployment")
    life.reconcile()
    assert strategy_of(life) == "Surge"
    life.set("context.maxLength", 4096).reconcile()
    assert strategy_of(life) == "Recreate"


def test_N18_the_users_way_acts_at_once_and_its_removal_leads_back() -> None:
    life = a_life()
    life.reconcile()
    for chosen, expected in (("Recreate", "Recreate"), ("Replace", "Replace"), ("Auto", "Surge"), (None, "Surge")):
        life.set("rollout.strategy", chosen).reconcile()
        assert strategy_of(life) == expected
        assert life.status is not None
        assert life.status["revision"]["strategy"] == expected
        assert ("spec.rollout.strategy" in life.status["revision"]["strategyReason"]) == (chosen == expected)


# ---- foreign objects (N22) -----------------------------------------------------------------------------------------
FOREIGN = [("ServiceAccount", "chat-engine"), ("NetworkPolicy", "chat"), ("Service", "chat"), ("Deployment", "chat")]


@pytest.mark.parametrize(("kind", "name"), FOREIGN)
@pytest.mark.parametrize("owner", [None, "another"])
def test_N22_a_foreign_object_is_named_and_nothing_is_created(kind: str, name: str, owner: str | None) -> None:
    life = a_life()
    life.children[(kind, name)] = an_object(kind, name, uid=owner)
    decision = life.reconcile()
    condition = stalled(decision)
    assert condition is not None
    assert condition["reason"] == "NameConflict"
    assert f"{kind} {name}" in condition["message"]
    assert (decision.create_revision, decision.apply, decision.delete) == (None, (), ())


def test_N22_a_foreign_object_beside_a_serving_one_stops_only_its_own_kind() -> None:
    life = a_life()
    life.reconcile()
    life.children[("PodDisruptionBudget", "chat")] = an_object("PodDisruptionBudget", uid="another")
    decision = life.set("replicas", 2).reconcile()
    assert kinds(decision) == ["Deployment"]
    condition = stalled(decision)
    assert condition is not None
    assert "PodDisruptionBudget chat" in condition["message"]


def test_N22_a_foreign_revision_is_named_and_what_serves_goes_on() -> None:
    life = a_life()
    life.reconcile()
    before = life.template()
    wanted = life.set("context.maxLength", 4096).decide().create_revision
    assert wanted is not None
    name = wanted["metadata"]["name"]
    life.children[("ControllerRevision", name)] = an_object("ControllerRevision", name, uid="another")
    decision = life.reconcile()
    assert (decision.create_revision, decision.apply) == (None, ())
    condition = stalled(decision)
    assert condition is not None
    assert f"ControllerRevision {name}" in condition["message"]
    assert life.template() == before


def test_N22_a_foreign_object_that_goes_away_is_replaced() -> None:
    life = a_life()
    life.children[("Service", "chat")] = an_object("Service", uid="another")
    life.reconcile()
    del life.children[("Service", "chat")]
    decision = life.reconcile()
    assert stalled(decision) is None
    assert "Service" in kinds(decision)


def test_N15_a_service_with_a_hard_name_gets_its_children() -> None:
    life = a_life(name="7.b" + "x" * 200)
    decision = life.reconcile()
    assert all(len(child["metadata"]["name"]) <= 63 for child in decision.apply)
    again = life.decide()
    assert again.apply == ()
