"""Failures are diagnosed, not repeated: each named case gets its reason, the field to change, and the value it has."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.plan.snapshot import NodeView, PodView, Snapshot
from stoker.status.case import NODES_UNKNOWN, Case, Diagnosis
from stoker.status.creation import child_not_applied, pods_not_created
from stoker.status.diagnosis import POLICIES, diagnose, diagnose_all
from stoker.status.outcome import Outcome, TargetRevision
from tests.builders import last_words as said
from tests.builders.failures import (
    HELD,
    KNOWN,
    NODES,
    REFUSED,
    Known,
    a_container,
    crashed,
    refused,
    unplaced,
    waiting,
)
from tests.builders.layouts import a_layout
from tests.builders.specs import H100, a_spec
from tests.builders.views import a_node, a_pod


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN.keys())
def test_a_failure_is_named_with_its_field_and_its_value(known: Known) -> None:
    diagnosis = diagnose(known.case())
    assert diagnosis is not None
    assert (diagnosis.reason, diagnosis.stalled) == (known.reason, known.stalled), diagnosis
    for part in known.says:
        assert part in diagnosis.message, diagnosis.message


@pytest.mark.parametrize("known", KNOWN.values(), ids=KNOWN.keys())
def test_a_diagnosis_needs_neither_spec_nor_layout_nor_nodes(known: Known) -> None:
    """A stored spec may have faults, and a layout may be one that this operator cannot read."""
    diagnosis = diagnose(Case(known.pod))
    assert diagnosis is not None
    assert diagnosis.reason in {known.reason, "CrashLoop", "Unschedulable"}


def test_every_policy_has_a_case() -> None:
    used = {next(policy for policy in POLICIES if policy(known.case())) for known in KNOWN.values()}
    assert [policy for policy in POLICIES if policy not in used] == []


@pytest.mark.parametrize(
    "pod",
    [
        a_pod(),
        a_pod(node="a"),
        replace(a_pod(node="a"), containers=(a_container(started=True), a_container("agent", ready=True))),
        replace(a_pod(node="a"), containers=(a_container(waiting_reason="ContainerCreating"),)),
        replace(a_pod(node="a"), containers=(a_container(waiting_reason="PodInitializing"),)),
        replace(a_pod(node="a"), containers=(a_container(exit_code=0, terminated_reason="Completed"),)),
    ],
)
def test_a_pod_on_its_way_has_no_diagnosis(pod: PodView) -> None:
    assert diagnose(Case(pod, a_spec().build(), a_layout())) is None


def test_an_engine_that_ended_well_is_not_judged_by_old_words() -> None:
    pod = replace(a_pod(node="a"), containers=(a_container(exit_code=0, last_words=said.VLLM_OOM),))
    assert diagnose(Case(pod)) is None


OPEN = a_node("open", gpus=2, labels={"pool": "a"})


@pytest.mark.parametrize(
    "closed",
    [
        a_node("closed", gpus=8, taints=(("team", "other", "NoSchedule"),)),
        a_node("closed", gpus=8, labels={"pool": "b"}),
        a_node("closed", gpus=8, product="NVIDIA-L4", labels={"pool": "a"}),
        a_node("closed", gpus=8, labels={"pool": "a"}, ready=False),
        a_node("closed", gpus=8, labels={"pool": "a"}, schedulable=False),
    ],
    ids=["taint", "label", "product", "not ready", "cordoned"],
)
def test_nodes_that_the_pod_may_not_use_offer_nothing(closed: NodeView) -> None:
    spec = a_spec().on(H100).set("pod.nodeSelector", {"pool": "a"}).build()
    diagnosis = diagnose(Case(unplaced(said.NO_GPU_FREE, gpus=4), spec, a_layout(), (OPEN, closed)))
    assert diagnosis is not None
    assert "open has 2 of 2 free; lower spec.parallelism.tensor x pipeline to 2" in diagnosis.message


def test_what_is_free_is_not_claimed_where_it_is_not_known() -> None:
    case = Case(unplaced(said.NO_GPU_FREE, gpus=4), a_spec().build(), a_layout(), (OPEN,), held_is_known=False)
    diagnosis = diagnose(case)
    assert diagnosis is not None
    assert "open has 2 in all (how much of it is free is not known)" in diagnosis.message


@pytest.mark.parametrize("words", [said.NO_GPU_FREE, said.NO_CPU_FREE, said.NO_MEMORY_FREE, said.NO_MATCH])
def test_nothing_is_claimed_of_nodes_that_may_not_be_listed(words: str) -> None:
    spec = a_spec().on(H100).build()
    diagnosis = diagnose(Case(unplaced(words, gpus=4), spec, a_layout(), nodes_are_known=False))
    assert diagnosis is not None
    assert "no node that it may use" not in diagnosis.message
    assert "the nodes have" not in diagnosis.message.replace(NODES_UNKNOWN, "")
    assert (NODES_UNKNOWN in diagnosis.message) or words == said.NO_MATCH


def test_a_pod_without_a_gpu_may_not_use_nodes_whose_taint_keeps_them_for_gpus() -> None:
    tainted = a_node("gpus", gpus=8, taints=(("nvidia.com/gpu", "", "NoSchedule"),))
    layout = a_layout(0, memory_request_bytes=8 * 2**30)
    spec = a_spec().llama_cpp().on_cpu().build()
    diagnosis = diagnose(Case(unplaced(said.NO_MEMORY_FREE), spec, layout, (tainted,)))
    assert diagnosis is not None
    assert "no node that it may use has any" in diagnosis.message


@pytest.mark.parametrize("toleration", [{"key": "team", "operator": "Exists"}, {"operator": "Exists"}])
def test_a_tolerated_node_offers_what_it_has(toleration: dict[str, str]) -> None:
    tainted = a_node("tainted", gpus=8, taints=(("team", "x", "NoSchedule"), ("nvidia.com/gpu", "", "NoSchedule")))
    spec = a_spec().set("pod.tolerations", [toleration]).build()
    diagnosis = diagnose(Case(unplaced(said.NO_GPU_FREE, gpus=4), spec, a_layout(), (tainted,)))
    assert diagnosis is not None
    assert "tainted has 8 of 8 free" in diagnosis.message


@pytest.mark.parametrize(
    ("held", "old", "ends", "waits"),
    [(2, 2, True, True), (2, 1, True, False), (2, 2, False, False), (0, 2, True, False)],
    ids=["enough", "others hold the rest", "it does not end", "there is room, so something else is missing"],
)
def test_a_pod_that_waits_for_its_own_predecessors_is_told_to_wait(
    held: int, old: int, ends: bool, waits: bool
) -> None:
    before = replace(a_pod("old", node="open", gpus=old, ready=True, terminating=ends), revision="r0")
    pods, taken = (unplaced(said.NO_GPU_FREE, gpus=2), before), {"open": {"nvidia.com/gpu": held}}
    snapshot = Snapshot(a_spec().manifest(), "2026-01-01T00:00:00Z", pods=pods, nodes=(OPEN,), held=taken)
    diagnosis = diagnose_all(snapshot, Outcome(a_spec().build(), a_layout(), None, (), None, "", 1, False))
    assert diagnosis is not None
    assert (diagnosis.reason == "WaitingForEndingPods") is waits
    assert not diagnosis.stalled
    assert ("add nodes" in diagnosis.message) is not waits


@pytest.mark.parametrize("ends", [True, False])
def test_N18_a_pod_that_waits_for_the_revision_before_it_is_told_how_that_makes_room(ends: bool) -> None:
    before = replace(a_pod("old", node="open", gpus=2, ready=True, terminating=ends), revision="r0")
    new = replace(unplaced(said.NO_GPU_FREE, gpus=2), revision="r1")
    held = {"open": {"nvidia.com/gpu": 2}}
    snapshot = Snapshot(a_spec().manifest(), "2026-01-01T00:00:00Z", pods=(new, before), nodes=(OPEN,), held=held)
    target = TargetRevision("r1", "chat-r1", 2, "Surge", "", is_wanted=True, is_new=False)
    diagnosis = diagnose_all(snapshot, Outcome(a_spec().build(), a_layout(), target, (), None, "", 1, False))
    assert diagnosis is not None
    assert ("set spec.rollout.strategy to Recreate" in diagnosis.message) is not ends


# ---- pods and children that were not taken -------------------------------------------------------------------------
@pytest.mark.parametrize(("message", "reason", "says", "stalled"), REFUSED.values(), ids=REFUSED.keys())
def test_a_pod_that_cannot_be_created_is_explained(
    message: str, reason: str, says: tuple[str, ...], stalled: bool
) -> None:
    diagnosis = pods_not_created((message,))
    assert diagnosis is not None
    assert (diagnosis.reason, diagnosis.stalled) == (reason, stalled)
    for part in says:
        assert part in diagnosis.message


def test_N2_the_random_name_of_a_refused_pod_does_not_move_the_status() -> None:
    assert pods_not_created((said.QUOTA.format("abcde"),)) == pods_not_created((said.QUOTA.format("fghij"),))


def test_a_child_that_is_refused_is_named() -> None:
    diagnosis = child_not_applied("Deployment/chat", said.INVALID)
    assert (diagnosis.reason, diagnosis.stalled) == ("ChildRefused", True)
    assert "Deployment/chat" in diagnosis.message
    assert "csi.driver: Required value" in diagnosis.message


LONG = " and more" * 400


@pytest.mark.parametrize(
    ("diagnosis", "remedy"),
    [
        (child_not_applied("Deployment/chat", said.INVALID + LONG), "correct the field of spec.pod"),
        (pods_not_created((f"pods is forbidden: exceeded quota: q, requested: requests.cpu=1{LONG}",)), "lower spec."),
        (diagnose(Case(waiting("RunContainerError", f"exec failed: no such file or directory{LONG}"))), "spec.engine."),
        (diagnose(Case(refused("Evicted", f"The node was low on memory{LONG}"))), "raise spec.resources.memory"),
        (diagnose(Case(refused("UnexpectedAdmissionError", f"Allocate failed{LONG}"))), "device plugin"),
    ],
)
def test_the_way_out_outlives_however_much_others_said(diagnosis: Diagnosis | None, remedy: str) -> None:
    assert diagnosis is not None
    assert remedy in diagnosis.message
    assert "..." in diagnosis.message
    assert len(diagnosis.message) <= 1024


def test_a_child_that_could_not_be_sent_is_tried_again() -> None:
    diagnosis = child_not_applied("Service/chat", "connection refused")
    assert (diagnosis.reason, diagnosis.stalled) == ("ApplyFailed", False)


# ---- what engines print is untrusted -------------------------------------------------------------------------------
SECRETS = {
    "hub token": "hf_abcdefghijklmnopqrstuvwxyz012345",
    "bearer": "Authorization: Bearer abcdef0123456789.xyz",
    "api key": "VLLM_API_KEY=topsecretvalue",
    "url": "https://user:topsecretvalue@example.com/x",
    "signed url": "https://s.example/x?X-Signature=topsecretvalue&y=1",
    "json": """{"password": "topsecretvalue"}""",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
    "openai": "sk-abcdefghijklmnop",
}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS.keys())
def test_N20_a_secret_in_the_last_words_reaches_no_status(secret: str) -> None:
    for words in (
        f"RuntimeError: refused {secret}",
        f"error: argument --x: bad {secret}",
        f"OSError: No space left on device {secret}",
    ):
        diagnosis = diagnose(Case(crashed(words)))
        assert diagnosis is not None
        assert "[redacted]" in diagnosis.message
        for part in ("topsecretvalue", "abcdefghijkl", "0123456789.xyz", "IOSFODNN7", "eyJzdWIi"):
            assert part not in diagnosis.message


@settings(deadline=None)
@given(st.text(max_size=3000), st.sampled_from([1, 2, 137]))
def test_any_last_words_give_a_bounded_line(words: str, code: int) -> None:
    diagnosis = diagnose(Case(crashed(words, code), a_spec().build(), a_layout(), NODES, HELD))
    assert isinstance(diagnosis, Diagnosis)
    assert len(diagnosis.message.encode()) <= 1024
    assert diagnosis.message.isprintable()


@settings(deadline=None)
@given(st.text(max_size=2000))
def test_any_message_of_the_scheduler_gives_a_bounded_line(message: str) -> None:
    diagnosis = diagnose(Case(unplaced(message, gpus=1), a_spec().build(), a_layout(), NODES, HELD))
    assert isinstance(diagnosis, Diagnosis)
    assert len(diagnosis.message.encode()) <= 1024


def test_the_same_end_reads_the_same_twice() -> None:
    first = diagnose(Case(crashed(said.VLLM_UNKNOWN)))
    later = said.VLLM_UNKNOWN.replace("03-01 12:00:01", "03-02 13:14:15").replace("pid=9", "pid=10")
    assert first == diagnose(Case(crashed(later)))
