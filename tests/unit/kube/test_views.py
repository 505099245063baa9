"""From API objects to views."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.kube.quantities import quantity
from stoker.kube.views import (
    MAX_LAST_WORDS,
    MAX_TEXT,
    child_entry,
    node_view,
    object_ref,
    pack,
    pod_view,
    resource_requests,
    service_entry,
)
from tests.builders.nodes import node
from tests.builders.objects import a_stored_pod, an_object


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", "1"), ("1500m", "1.5"), ("64Gi", str(64 * 2**30)), ("1e3", "1000"), ("2k", "2000"), ("0.5", "0.5"),
     ("+5", "5"), (" 8Gi ", str(8 * 2**30)), ("1K", "0"), ("1ki", "0"), ("e3", "0"),
     ("3E", "3e18"), ("5Ei", str(5 * 2**60)), ("100n", "1e-7"), ("", "0"), ("lots", "0"), ("1Qi", "0")],
)  # fmt: skip
def test_quantities(text: str, value: str) -> None:
    assert quantity(text) == Decimal(value)


@pytest.mark.parametrize("text", ["10e999999", "1e999999", "1e999999999", "1e100", "99999999E"])
def test_N21_a_quantity_that_nothing_has_is_as_large_as_kubernetes_counts(text: str) -> None:
    """The API server takes a pod with `memory: 1e1000000`, and shows it as `10e999999`."""
    most = 2**63 - 1
    assert [quantity(text), quantity(f"-{text}")] == [Decimal(most), -Decimal(most)]
    limits = {"nvidia.com/gpu": text, "memory": text, "cpu": text}
    held = resource_requests({"containers": [{"name": "c", "resources": {"limits": limits}}]})
    assert held == {"nvidia.com/gpu": most, "memory": most, "cpu": most * 1000}


@pytest.mark.parametrize("text", ["1e-999999", "1e-999999999", "NaN", "-NaN", "sNaN", "Infinity", "-Infinity", "inf"])
def test_a_quantity_that_is_no_number_or_next_to_none_is_nothing(text: str) -> None:
    assert quantity(text) == 0
    assert (
        node_view({"metadata": {"name": "n"}, "status": {"allocatable": {"memory": text}}}).allocatable["memory"] == 0
    )


def test_a_node_offers_its_extended_resources_cpu_and_memory() -> None:
    raw = node("n1", cpu="64", memory="512Gi").gpus(8).mig("1g.10gb", 7).taint("nvidia.com/gpu", "present").build()
    raw["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    view = node_view(raw)
    assert (view.ready, view.schedulable) == (True, True)
    assert view.allocatable == {
        "cpu": 64000,
        "memory": 512 * 2**30,
        "nvidia.com/gpu": 8,
        "nvidia.com/mig-1g.10gb": 7,
    }
    assert view.labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert view.taints == (("nvidia.com/gpu", "present", "NoSchedule"),)


def test_a_cordoned_or_unready_node_is_seen_as_such() -> None:
    view = node_view(node("n1").cordoned().build())
    assert (view.ready, view.schedulable) == (False, False)


def test_labels_that_planning_never_reads_are_left_out_and_their_number_is_bounded() -> None:
    labels = {f"feature.node.kubernetes.io/f{i}": "true" for i in range(300)} | {f"x/{i}": "v" for i in range(300)}
    assert len(node_view(an_object("Node", "n1", namespace="", labels=labels)).labels) == 128


def test_the_labels_that_describe_gpus_are_kept_however_many_others_there_are() -> None:
    gpu = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.memory": "23034"}
    labels = {f"example.com/{i:03}": "v" for i in range(300)} | gpu
    kept = node_view(an_object("Node", "n1", namespace="", labels=labels)).labels
    assert (len(kept), gpu.items() <= kept.items()) == (128, True)


def test_a_pod_that_waits_says_what_the_scheduler_said() -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available",
    }
    view = pod_view(a_stored_pod(status={"phase": "Pending", "conditions": [condition]}))
    assert (view.scheduled, view.ready, view.node) == (False, False, None)
    assert view.unschedulable_message == "0/3 nodes are available"
    assert (view.revision, view.requests) == ("r1", {"nvidia.com/gpu": 2})


def test_the_end_of_a_container_is_read_from_its_state_and_from_the_one_before() -> None:
    def a_status(**state: Any) -> dict[str, Any]:
        return {"containerStatuses": [{"name": "engine", "restartCount": 3, "ready": False, **state}]}

    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "message": "bye"}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}}
    for status in (a_status(state=ended), a_status(state=waiting, lastState=ended)):
        container = pod_view(a_stored_pod(status=status)).containers[0]
        assert (container.exit_code, container.terminated_reason, container.last_words) == (137, "OOMKilled", "bye")
    assert container.waiting_reason == "CrashLoopBackOff"


def test_texts_from_outside_are_bounded_last_words_at_their_end() -> None:
    terminated = {"terminated": {"exitCode": 1, "message": "a" * MAX_LAST_WORDS + "the cause"}}
    status = {"message": "b" * 10_000, "containerStatuses": [{"name": "engine", "state": terminated}]}
    view = pod_view(a_stored_pod(status=status))
    words = view.containers[0].last_words or ""
    assert (len(view.message or ""), len(words)) == (MAX_TEXT, MAX_LAST_WORDS)
    assert words.endswith("the cause")


def test_init_containers_give_back_what_they_held_and_sidecars_keep_it() -> None:
    def a_container(count: int, **more: Any) -> dict[str, Any]:
        return {"resources": {"limits": {"nvidia.com/gpu": str(count)}}, **more}

    spec = {"containers": [a_container(2)], "initContainers": [a_container(1, restartPolicy="Always"), a_container(4)]}
    assert resource_requests(spec) == {"nvidia.com/gpu": 4}
    assert resource_requests({**spec, "initContainers": spec["initContainers"][:1]}) == {"nvidia.com/gpu": 3}


def test_the_controlling_owner_counts_not_any_owner() -> None:
    raw = an_object("Service")
    raw["metadata"]["ownerReferences"] = [
        {"uid": "a", "controller": False},
        {"uid": "b", "controller": True},
        {"uid": "c"},
    ]
    assert object_ref("Service", raw).controller_uid == "b"
    assert object_ref("Service", an_object("Service")).controller_uid is None


def test_a_verified_ownership_stays_verified_until_ours_or_the_generation_changes() -> None:
    raw = an_object("Service", owner="svc")
    raw["metadata"]["managedFields"] = [{"manager": "stoker", "operation": "Update", "fieldsV1": {"f:spec": {}}}]
    known = child_entry("Service", raw).verified()
    assert child_entry("Service", raw, known).ref.intact
    raw["metadata"]["managedFields"].append({"manager": "other", "fieldsV1": {"f:status": {}}})
    assert child_entry("Service", raw, known).ref.intact
    raw["metadata"]["generation"] = 2
    assert not child_entry("Service", raw, known).ref.intact
    raw["metadata"].update(generation=1, managedFields=[])
    assert not child_entry("Service", raw, known).ref.intact


def test_a_service_is_kept_without_managed_fields_and_otherwise_as_it_was_stored() -> None:
    raw = an_object("InferenceService", spec={"replicas": 1}, status={"url": "x"})
    with_fields = {**raw, "metadata": {**raw["metadata"], "managedFields": [{"manager": "kubectl"}]}}
    assert service_entry(with_fields).stored() == raw


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_what_is_packed_comes_back_as_it_was(value: object) -> None:
    assert pack(value).unpack() == value


@given(
    st.dictionaries(st.sampled_from(["spec", "status"]), st.dictionaries(st.text(max_size=8), st.none(), max_size=3))
)
def test_a_pod_with_empty_parts_is_read_all_the_same(parts: dict[str, Any]) -> None:
    assert pod_view({**a_stored_pod(), **parts}).phase == "Pending"
