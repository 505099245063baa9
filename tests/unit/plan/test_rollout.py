"""N18: how a revision replaces the one before is chosen from what is free, so that a full cluster does not deadlock."""

import pytest

from stoker.plan.rollout import Strategy, choose_strategy
from stoker.plan.snapshot import NodeView, Snapshot
from tests.builders.layouts import GIB, planned
from tests.builders.specs import H100, SpecBuilder, a_spec
from tests.builders.views import a_node, a_pod

GPU = "nvidia.com/gpu"


def chosen(spec: SpecBuilder, *nodes: NodeView, held: int = 0, pods: int = 0) -> tuple[Strategy, str]:
    seen = Snapshot(
        service={},
        now="2026-01-01T00:00:00Z",
        nodes=nodes,
        held={node.name: {GPU: held} for node in nodes},
        pods=tuple(a_pod(f"p{index}", node="node-0", gpus=1, ready=True) for index in range(pods)),
    )
    return choose_strategy(spec.build(), planned(spec), seen)


@pytest.mark.parametrize(
    ("free", "tensor", "replicas", "expected"),
    [
        (1, 1, 1, Strategy.SURGE),
        (1, 1, 3, Strategy.SURGE),
        (0, 1, 1, Strategy.RECREATE),
        (0, 1, 2, Strategy.REPLACE),
        (0, 1, 0, Strategy.RECREATE),
        (3, 4, 1, Strategy.RECREATE),
        (3, 4, 2, Strategy.REPLACE),
        (4, 4, 2, Strategy.SURGE),
    ],
)
def test_N18_the_way_follows_from_the_free_gpus(free: int, tensor: int, replicas: int, expected: Strategy) -> None:
    spec = a_spec().on(H100).tensor(tensor).replicas(replicas)
    assert chosen(spec, a_node(gpus=8), held=8 - free)[0] is expected


def test_N18_gpus_scattered_over_nodes_are_no_room_for_one_pod() -> None:
    spec = a_spec().on(H100).tensor(4).replicas(1)
    assert chosen(spec, a_node("a", gpus=8), a_node("b", gpus=8), held=6)[0] is Strategy.RECREATE


def test_N18_gpus_of_another_product_are_no_room() -> None:
    assert chosen(a_spec().on(H100), a_node(gpus=8, product="NVIDIA-L4"))[0] is Strategy.RECREATE


def test_without_a_node_nothing_is_taken_for_free() -> None:
    strategy, reason = chosen(a_spec().on(H100).replicas(2))
    assert strategy is Strategy.REPLACE
    assert reason == "no node is known on which 1 GPU would be free, and 1 of 2 replicas serve meanwhile"


@pytest.mark.parametrize(("replicas", "expected"), [(1, Strategy.RECREATE), (2, Strategy.REPLACE)])
def test_N18_what_is_not_known_to_be_free_counts_as_taken(replicas: int, expected: Strategy) -> None:
    spec = a_spec().on(H100).replicas(replicas)
    seen = Snapshot(service={}, now="2026-01-01T00:00:00Z", nodes=(a_node(gpus=8),), held_is_known=False)
    strategy, reason = choose_strategy(spec.build(), planned(spec), seen)
    assert strategy is expected
    assert reason.startswith("what the pods of others hold is not known")


@pytest.mark.parametrize("named", ["Surge", "Replace", "Recreate"])
def test_a_strategy_that_the_spec_names_wins(named: str) -> None:
    spec = a_spec().on(H100).set("rollout.strategy", named)
    assert chosen(spec, a_node(gpus=8)) == (Strategy(named), f"spec.rollout.strategy is {named}")
    assert chosen(spec, a_node(gpus=8), held=8)[0] is Strategy(named)


def test_auto_by_name_is_auto() -> None:
    spec = a_spec().on(H100).set("rollout.strategy", "Auto")
    assert chosen(spec, a_node(gpus=8)) == (Strategy.SURGE, "1 GPU of one more replica is free")


def test_the_reason_counts_the_gpus() -> None:
    spec = a_spec().on(H100).tensor(2).replicas(1)
    assert chosen(spec, a_node(gpus=8))[1] == "2 GPUs of one more replica are free"
    expected = "no node that takes the pods has 2 GPUs free, and there is no second replica to serve meanwhile"
    assert chosen(spec, a_node(gpus=8), held=7)[1] == expected


def test_N18_engines_on_the_cpu_by_cpu_and_memory() -> None:
    spec = a_spec().model("hf://HuggingFaceTB/SmolLM2-135M").on_cpu("8Gi", "4")
    free, full = a_node(memory_bytes=64 * GIB), a_node(memory_bytes=4 * GIB)
    assert chosen(spec, free) == (Strategy.SURGE, "CPU and memory of one more replica are free")
    assert chosen(spec, full)[0] is Strategy.RECREATE
