"""What is free, and for whom."""

from collections.abc import Mapping
from typing import Any

import pytest

from stoker.plan.capacity import room_for_pods
from stoker.plan.snapshot import NodeView, PodView, Snapshot
from tests.builders.layouts import GIB, planned
from tests.builders.specs import H100, SpecBuilder, a_spec
from tests.builders.views import a_node, a_pod

GPU = "nvidia.com/gpu"


def snapshot(
    *nodes: NodeView, held: Mapping[str, Mapping[str, int]] | None = None, pods: tuple[PodView, ...] = ()
) -> Snapshot:
    return Snapshot(service={}, now="2026-01-01T00:00:00Z", nodes=nodes, held=held or {}, pods=pods)


def room(spec: SpecBuilder, seen: Snapshot) -> int:
    return room_for_pods(spec.build(), planned(spec), seen)


def test_room_is_counted_by_node_not_by_the_sum() -> None:
    seen = snapshot(a_node("a", gpus=8), a_node("b", gpus=8), held={"a": {GPU: 5}, "b": {GPU: 5}})
    assert room(a_spec().on(H100).tensor(4), seen) == 0
    assert room(a_spec().on(H100).tensor(2), seen) == 2
    assert room(a_spec().on(H100), seen) == 6


def test_a_node_that_holds_more_than_it_has_takes_no_room_from_others() -> None:
    seen = snapshot(a_node("a", gpus=8), a_node("b", gpus=2), held={"b": {GPU: 5}})
    assert room(a_spec().on(H100), seen) == 8


def test_pods_that_wait_take_their_room_first() -> None:
    seen = snapshot(a_node("a", gpus=2), pods=(a_pod("one", gpus=1), a_pod("gone", gpus=1, terminating=True)))
    assert room(a_spec().on(H100), seen) == 1


@pytest.mark.parametrize(
    ("node", "changes", "expected"),
    [
        (a_node(gpus=1, product="NVIDIA-L4"), {}, 0),
        (a_node(gpus=1, ready=False), {}, 0),
        (a_node(gpus=1, schedulable=False), {}, 0),
        (a_node(gpus=1, taints=(("team", "a", "NoSchedule"),)), {}, 0),
        (a_node(gpus=1, taints=(("team", "a", "PreferNoSchedule"),)), {}, 1),
        (a_node(gpus=1, taints=((GPU, "present", "NoSchedule"),)), {}, 1),
        (a_node(gpus=1, taints=((GPU, "present", "NoExecute"),)), {}, 0),
        (a_node(gpus=1, taints=(("team", "a", "NoSchedule"),)), {"tolerations": [{"operator": "Exists"}]}, 1),
        (
            a_node(gpus=1, taints=(("team", "a", "NoSchedule"),)),
            {"tolerations": [{"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}]},
            1,
        ),
        (a_node(gpus=1, taints=(("team", "a", "NoSchedule"),)), {"tolerations": [{"key": "team", "value": "b"}]}, 0),
        (
            a_node(gpus=1, taints=(("team", "a", "NoExecute"),)),
            {"tolerations": [{"key": "team", "operator": "Exists", "effect": "NoSchedule"}]},
            0,
        ),
        (a_node(gpus=1), {"nodeSelector": {"zone": "x"}}, 0),
        (a_node(gpus=1, labels={"zone": "x"}), {"nodeSelector": {"zone": "x"}}, 1),
    ],
)
def test_only_nodes_that_take_the_pods_count(node: NodeView, changes: dict[str, Any], expected: int) -> None:
    spec = a_spec().on(H100)
    for field, value in changes.items():
        spec = spec.set(f"pod.{field}", value)
    assert room(spec, snapshot(node)) == expected


def test_N18_room_counts_the_agent_beside_the_engine() -> None:
    spec = a_spec().model("hf://HuggingFaceTB/SmolLM2-135M").on_cpu("8Gi", "4")
    node = a_node(cpu_millicores=16_000, memory_bytes=64 * GIB)
    assert room(spec, snapshot(node, held={"node-0": {"cpu": 16_000 - 4_049}})) == 0
    assert room(spec, snapshot(node, held={"node-0": {"cpu": 16_000 - 4_050}})) == 1
    assert room(spec, snapshot(node, held={"node-0": {"memory": 56 * GIB - 95 * 2**20}})) == 0
    assert room(spec, snapshot(node, held={"node-0": {"memory": 56 * GIB - 96 * 2**20}})) == 1


def test_room_for_engines_on_the_cpu_is_by_cpu_and_memory() -> None:
    spec = a_spec().model("hf://HuggingFaceTB/SmolLM2-135M").on_cpu("8Gi", "4")
    node = a_node(cpu_millicores=16_000, memory_bytes=64 * GIB)
    assert room(spec, snapshot(node)) == 3
    assert room(spec, snapshot(node, held={"node-0": {"cpu": 9_000, "memory": GIB}})) == 1
    assert room(spec, snapshot(node, held={"node-0": {"cpu": 1_000, "memory": 60 * GIB}})) == 0
    assert room(spec, snapshot(a_node(taints=((GPU, "present", "NoSchedule"),)))) == 0
