"""Which way to make room is advised: never one that is in force already (N18)."""

from dataclasses import replace

import pytest

from stoker.plan.snapshot import Snapshot
from stoker.status.diagnosis import diagnose_all
from stoker.status.outcome import Outcome, TargetRevision
from tests.builders import last_words as said
from tests.builders.failures import CPP, unplaced
from tests.builders.layouts import a_layout
from tests.builders.specs import H100, SpecBuilder, a_spec
from tests.builders.views import GIB, a_node, a_pod

GPUS = {"nvidia.com/gpu": 2}
HOST = {"cpu": 4050, "memory": 8 * GIB + 96 * 2**20}


def advice(strategy: str, spec: SpecBuilder, words: str, requests: dict[str, int]) -> str:
    """What is said of a new pod whose room the revision before it holds."""
    old = replace(a_pod("old", node="open", ready=True, revision="r0"), requests=requests)
    new = replace(unplaced(words), revision="r1", requests=requests)
    gpus = requests.get("nvidia.com/gpu", 0)
    node = a_node("open", gpus=gpus, cpu_millicores=HOST["cpu"], memory_bytes=HOST["memory"])
    snapshot = Snapshot(
        spec.manifest(), "2026-01-01T00:00:00Z", pods=(new, old), nodes=(node,), held={"open": requests}
    )
    target = TargetRevision("r1", "chat-r1", 2, strategy, "", is_wanted=True, is_new=False)
    built, layout = spec.build(), a_layout(gpus, memory_request_bytes=8 * GIB)
    diagnosis = diagnose_all(snapshot, Outcome(built, layout, target, (), None, "", built.replicas, False))
    assert diagnosis is not None
    return diagnosis.message


@pytest.mark.parametrize(
    ("words", "requests", "spec"),
    [
        (said.NO_GPU_FREE, GPUS, a_spec().on(H100)),
        (said.NO_CPU_FREE, HOST, CPP),
        (said.NO_MEMORY_FREE, HOST, CPP),
    ],
    ids=["GPUs", "CPU", "memory"],
)
@pytest.mark.parametrize(
    ("strategy", "replicas", "advised"),
    [
        ("Surge", 2, "Replace"),
        ("Surge", 1, "Recreate"),
        ("Replace", 2, "Recreate"),
        ("Replace", 1, "Recreate"),
        ("Recreate", 2, None),
        ("Recreate", 1, None),
    ],
)
def test_N18_what_is_advised_is_not_in_force_already(
    strategy: str, replicas: int, advised: str | None, words: str, requests: dict[str, int], spec: SpecBuilder
) -> None:
    told = advice(strategy, spec.replicas(replicas), words, requests)
    assert ("spec.rollout.strategy" in told) is (advised is not None)
    assert advised is None or f"set spec.rollout.strategy to {advised}," in told


def test_N18_cpu_that_the_old_revision_does_not_free_is_no_reason_to_recreate() -> None:
    spec = CPP.set("resources.cpu", "8")
    old = replace(a_pod("old", node="open", ready=True, revision="r0"), requests={"cpu": 1000})
    new = replace(unplaced(said.NO_CPU_FREE), revision="r1", requests=HOST)
    held = {"open": {"cpu": 8000}}
    nodes = (a_node("open", cpu_millicores=8000),)
    snapshot = Snapshot(spec.manifest(), "2026-01-01T00:00:00Z", pods=(new, old), nodes=nodes, held=held)
    target = TargetRevision("r1", "chat-r1", 2, "Surge", "", is_wanted=True, is_new=False)
    diagnosis = diagnose_all(snapshot, Outcome(spec.build(), a_layout(0), target, (), None, "", 1, False))
    assert diagnosis is not None
    assert "spec.rollout.strategy" not in diagnosis.message
