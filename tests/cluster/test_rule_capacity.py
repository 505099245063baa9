"""N18: a rollout on a full cluster does not deadlock."""

from __future__ import annotations

import json
import re

import pytest

from tests.builders.nodes import node
from tests.builders.specs import SpecBuilder, a_spec
from tests.cluster.support import Json, Stage, a_node


def a_foreign_pod(team: str, on: str) -> Json:
    """Return a pod of somebody else that holds one GPU of a node."""
    security = {
        "allowPrivilegeEscalation": False, "runAsNonRoot": True, "runAsUser": 1000,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
    }  # fmt: skip
    container = {
        "name": "c", "image": "x", "resources": {"limits": {"nvidia.com/gpu": "1"}}, "securityContext": security,
    }  # fmt: skip
    spec = {"nodeName": on, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "foreign", "namespace": team}, "spec": spec}


def a_small_service(product: str) -> SpecBuilder:
    """Return a service that fits every GPU."""
    numbers = {"parameterCount": 1_000_000, "layers": 2, "attentionHeads": 4, "kvHeads": 4, "hiddenSize": 64}
    return a_spec().on(product).max_length(1024).facts(**numbers)


async def strategy_of_a_change(stage: Stage, team: str) -> str:
    """Change the service, and return how the change was rolled out."""
    await stage.change(team, "chat", context={"maxLength": 2048})
    await stage.until_ready(team)
    strategy: str = (await stage.service(team))["status"]["revision"]["strategy"]
    return strategy


async def test_N18_where_all_gpus_are_taken_the_old_pod_makes_room(stage: Stage, team: str) -> None:
    """The GPU is taken at the last moment: what was listed for the first revision says that it is free."""
    with a_node(stage.plane, node("full").gpus(2, "Tesla-T4")):
        await stage.create(a_small_service("Tesla-T4").manifest("chat", team))
        await stage.until_ready(team)
        stage.plane.kubectl("create", "-f", "-", stdin=json.dumps(a_foreign_pod(team, "full")))
        assert await strategy_of_a_change(stage, team) == "Recreate"


async def test_N18_where_a_gpu_is_free_the_new_pod_starts_first(stage: Stage, team: str) -> None:
    with a_node(stage.plane, node("roomy").gpus(2, "NVIDIA-L4")):
        await stage.create(a_small_service("NVIDIA-L4").manifest("chat", team))
        await stage.until_ready(team)
        assert await strategy_of_a_change(stage, team) == "Surge"


@pytest.mark.parametrize(("replicas", "product"), [(1, "NVIDIA-L40S"), (2, "NVIDIA-H200")])
async def test_N18_a_rollout_that_is_stuck_gets_free_by_the_strategy_that_its_message_advises(
    stage: Stage, team: str, replicas: int, product: str
) -> None:
    with a_node(stage.plane, node(f"stuck-{replicas}").gpus(replicas, product)):
        surging = a_small_service(product).replicas(replicas).set("rollout.strategy", "Surge")
        await stage.create(surging.manifest("chat", team))
        await stage.until_ready(team)
        await stage.change(team, "chat", context={"maxLength": 2048})
        ready = await stage.until_condition(team, "Ready", "False", "Unschedulable")
        advised = re.search(r"set spec\.rollout\.strategy to (\w+)", ready["message"])
        assert advised, ready["message"]
        await stage.change(team, "chat", rollout={"strategy": advised[1]})
        await stage.until_ready(team)
        assert {pod["metadata"]["labels"]["serving.stoker.dev/revision"] for pod in await stage.pods(team)} == {
            (await stage.service(team))["status"]["revision"]["name"].rpartition("-")[2]
        }
