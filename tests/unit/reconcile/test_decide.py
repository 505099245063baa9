"""The decision, by rule."""

from dataclasses import replace
from typing import Any

import pytest

from stoker.plan.snapshot import ReferenceView
from stoker.reconcile.decision import Decision
from stoker.render.labels import REVISION
from tests.builders.snapshots import UID, Life, an_object
from tests.builders.specs import SpecBuilder, a_spec
from tests.builders.views import a_node, a_pod

H100 = "NVIDIA-H100-80GB-HBM3"
T1, T2 = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
TOO_LARGE = "hf://meta-llama/Llama-3.1-70B-Instruct"


def a_life(spec: SpecBuilder | None = None, **changes: Any) -> Life:
    return Life(spec or a_spec().on(H100), nodes=(a_node(gpus=8),), **changes)


def kinds(decision: Decision) -> list[str]:
    return [child["kind"] for child in decision.apply]


def stalled(decision: Decision) -> dict[str, Any] | None:
    assert decision.status is not None
    found = [c for c in decision.status["conditions"] if c["type"] == "Stalled" and c["status"] == "True"]
    return found[0] if found else None


def secret(digest: str | None = "d1", **changes: Any) -> ReferenceView:
    view = ReferenceView(
        "Secret", "keys", "spec.pod.env[0].valueFrom.secretKeyRef.name", exists=digest is not None, digest=digest
    )
    return replace(view, **changes)


WITH_SECRET = (
    a_spec().on(H100).set("pod.env", [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}}])
)


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
def revision_of(life: Life) -> str:
    label: str = life.template()["metadata"]["labels"][REVISION]
    return label


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
    life.pods = (a_pod(node="node-0", revision=old, service_uid=UID),)
    for length in range(2000, 10_000, 1000):
        life.set("context.maxLength", length).reconcile()
    assert f"chat-{old}" in life.revisions
    assert len(life.revisions) == 6


def test_foreign_revisions_are_left_alone() -> None:
    life = a_life()
    for length in range(1000, 8000, 1000):
        life.set("context.maxLength", length).reconcile()
    name, view = next(iter(life.revisions.items()))
    life.revisions[name] = replace(view, number=0, ref=replace(view.ref, controller_uid="another"))
    for length in range(1000, 8000, 900):
        life.set("context.maxLength", length).reconcile()
    assert name in life.revisions


# ---- references (N19) and bad input --------------------------------------------------------------------------------
def test_N19_the_content_of_a_secret_in_the_environment_makes_a_revision() -> None:
    life = a_life(WITH_SECRET, references=(secret("d1"),))
    life.reconcile()
    first = revision_of(life)
    assert life.reconcile().create_revision is None
    life.references = (secret("d2"),)
    assert life.reconcile().create_revision is not None
    assert revision_of(life) != first


def test_N19_the_credentials_of_the_hub_make_none() -> None:
    view = ReferenceView("Secret", "hub", "spec.model.credentialsSecret", exists=True, digest="d1")
    life = a_life(a_spec().on(H100).set("model.credentialsSecret", "hub"), references=(view,))
    life.reconcile()
    life.references = (replace(view, digest="d2"),)
    assert life.reconcile().create_revision is None


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Secret", "spec.pod.env[0].valueFrom.secretKeyRef.name"),
        ("Secret", "spec.model.credentialsSecret"),
        ("ConfigMap", "spec.model.facts.configMapName"),
        ("PersistentVolumeClaim", "spec.model.source"),
        ("ServiceAccount", "spec.pod.serviceAccountName"),
    ],
)
def test_a_missing_object_stalls_until_it_appears(kind: str, path: str) -> None:
    life = a_life(references=(ReferenceView(kind, "x", path, exists=False),))
    decision = life.reconcile()
    condition = stalled(decision)
    assert condition is not None
    assert condition["reason"] == f"{kind}NotFound"
    assert path in condition["message"]
    assert (decision.create_revision, decision.apply) == (None, ())
    assert decision.requeue_after_seconds is not None
    assert [event.reason for event in decision.events] == [f"{kind}NotFound"]
    life.references = (ReferenceView(kind, "x", path, exists=True, digest="d"),)
    decision = life.reconcile()
    assert stalled(decision) is None
    assert "Deployment" in kinds(decision)


def test_an_event_is_sent_once() -> None:
    life = a_life(references=(secret(None),))
    assert life.reconcile().events
    assert not life.reconcile().events


def test_a_missing_secret_touches_nothing_that_serves() -> None:
    life = a_life(WITH_SECRET, references=(secret("d1"),))
    life.reconcile()
    before = life.template()
    life.references = (secret(None),)
    decision = life.reconcile()
    assert stalled(decision) is not None
    assert (decision.create_revision, decision.apply, decision.delete) == (None, (), ())
    assert life.template() == before


def test_an_optional_secret_may_be_missing() -> None:
    life = a_life(WITH_SECRET, references=(secret(None, optional=True),))
    assert "Deployment" in kinds(life.reconcile())
    first = revision_of(life)
    life.references = (secret("d1", optional=True),)
    life.reconcile()
    assert revision_of(life) != first


def test_N19_a_secret_that_cannot_be_read_rolls_nothing() -> None:
    life = a_life(WITH_SECRET, references=(secret("d1"),))
    life.reconcile()
    life.references = (secret(None, exists=None, problem="forbidden"),)
    decision = life.reconcile()
    assert (decision.create_revision, decision.apply) == (None, ())
    assert stalled(decision) is None
    assert decision.requeue_after_seconds is not None
    assert decision.status is not None
    ready = next(c for c in decision.status["conditions"] if c["type"] == "Ready")
    assert "forbidden" in ready["message"] + next(
        (c["message"] for c in decision.status["conditions"] if c["type"] == "UpToDate"), ""
    )


BAD = {
    "a model that does not fit": a_spec().on(H100).model(TOO_LARGE),
    "a tensor size that does not divide the heads": a_spec().on(H100).tensor(3),
    "an unknown quantization": a_spec().on(H100).weights("nonsense"),
    "an argument with two owners": a_spec().on(H100).set("engine.args", ["--max-model-len", "1"]),
    "a malformed source": a_spec().on(H100).model("nonsense"),
    "a field that does not exist": a_spec().on(H100).set("engine.nonsense", 1),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_stalls_within_one_reconcile_and_creates_nothing(name: str) -> None:
    decision = a_life(BAD[name]).reconcile()
    condition = stalled(decision)
    assert condition is not None
    assert "spec." in condition["message"]
    assert (decision.create_revision, decision.apply, decision.delete) == (None, (), ())


@pytest.mark.parametrize("name", BAD)
def test_bad_input_touches_nothing_that_serves(name: str) -> None:
    life = a_life()
    life.reconcile()
    before = dict(life.bodies)
    life.spec = BAD[name]
    decision = life.reconcile()
    assert stalled(decision) is not None
    assert (decision.create_revision, decision.apply, decision.delete) == (None, (), ())
    assert life.bodies == before


def test_bad_input_does_not_stop_healing_and_scaling() -> None:
    life = a_life()
    life.reconcile()
    before = life.template()
    life.spec = BAD["a tensor size that does not divide the heads"].replicas(3)
    life.touch("Service")
    assert kinds(life.reconcile()) == ["Service", "PodDisruptionBudget", "Deployment"]
    assert life.template() == before


def test_bad_input_that_is_corrected_goes_on() -> None:
    life = a_life(BAD["a model that does not fit"])
    life.reconcile()
    life.spec = a_spec().on(H100)
    decision = life.reconcile()
    assert stalled(decision) is None
    assert "Deployment" in kinds(decision)


def test_every_fault_is_told_at_once() -> None:
    spec = a_spec().on(H100).tensor(3).set("engine.args", ["--max-model-len", "1"])
    condition = stalled(a_life(spec).reconcile())
    assert condition is not None
    assert "spec.parallelism.tensor" in condition["message"]
    assert "spec.engine.args" in condition["message"]


def test_an_unknown_model_starts_all_the_same() -> None:
    decision = a_life(a_spec().on(H100).model("hf://acme/unheard-of")).reconcile()
    assert "Deployment" in kinds(decision)
    assert stalled(decision) is None


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


def test_what_the_service_does_not_control_is_never_deleted() -> None:
    life = a_life()
    life.reconcile()
    life.children[("PodDisruptionBudget", "chat")] = an_object("PodDisruptionBudget", uid=None)
    life.children[("Service", "other")] = an_object("Service", "other", uid="another")
    assert life.reconcile().delete == ()


def _strategy(life: Life) -> str:
    spec = life.bodies[("Deployment", "chat")]["spec"]["strategy"]
    if spec["type"] == "Recreate":
        return "Recreate"
    return "Surge" if spec["rollingUpdate"]["maxSurge"] else "Replace"


def test_N18_the_way_to_replace_is_chosen_once_per_revision() -> None:
    life = a_life()
    life.reconcile()
    assert _strategy(life) == "Surge"
    life.held = {"node-0": {"nvidia.com/gpu": 8}}
    life.touch("Deployment")
    life.reconcile()
    assert _strategy(life) == "Surge"
    life.set("context.maxLength", 4096).reconcile()
    assert _strategy(life) == "Recreate"


def test_N18_the_users_way_acts_at_once_and_its_removal_leads_back() -> None:
    life = a_life()
    life.reconcile()
    for chosen, expected in (("Recreate", "Recreate"), ("Replace", "Replace"), ("Auto", "Surge"), (None, "Surge")):
        life.set("rollout.strategy", chosen).reconcile()
        assert _strategy(life) == expected
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
