"""N22, and healing: what is not ours is never written, what is ours is kept as it was rendered."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stoker.kube.resources import CHILDREN
from tests.builders.specs import a_spec
from tests.cluster.support import Json, Stage, until

PORTS = [{"port": 80}]
SELECTOR = {"matchLabels": {"app": "x"}}
POD = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
FOREIGN: dict[str, tuple[str, Json]] = {
    "Deployment": ("chat", {"spec": {"replicas": 0, "selector": SELECTOR, "template": POD}}),
    "Service": ("chat", {"spec": {"ports": PORTS}}),
    "ServiceAccount": ("chat-engine", {}),
    "NetworkPolicy": ("chat", {"spec": {"podSelector": {}}}),
    "PodDisruptionBudget": ("chat", {"spec": {"minAvailable": 1, "selector": SELECTOR}}),
}


@pytest.mark.parametrize("labelled", [False, True], ids=["unlabelled", "with our label"])
@pytest.mark.parametrize("kind", FOREIGN)
async def test_N22_a_foreign_object_stalls_the_service_and_is_not_touched(
    stage: Stage, team: str, kind: str, labelled: bool
) -> None:
    name, more = FOREIGN[kind]
    labels = {"app.kubernetes.io/managed-by": "stoker"} if labelled else {}
    body: Json = {
        "apiVersion": CHILDREN[kind].api_version,
        "kind": kind,
        "metadata": {"name": name, "labels": labels},
        **more,
    }
    before = await stage.client.create(CHILDREN[kind], team, body, "somebody")
    await stage.create(a_spec().replicas(2).manifest("chat", team))
    stalled = await stage.until_condition(team, "Stalled", "True", "NameConflict")
    assert f"{kind} {name}" in stalled["message"]
    assert (await stage.condition(team, "Ready"))["status"] == "False"
    after = await stage.get(CHILDREN[kind], team, name)
    assert after is not None
    assert after.get("spec") == before.get("spec")
    assert {entry["manager"] for entry in after["metadata"].get("managedFields") or ()}.isdisjoint({"stoker"})
    assert await stage.pods(team) == []
    await stage.client.delete(CHILDREN[kind], team, name, uid=before["metadata"]["uid"])
    await stage.until_ready(team)


async def test_N22_a_foreign_object_that_comes_later_leaves_what_serves_alone(stage: Stage, team: str) -> None:
    await stage.create(a_spec().manifest("chat", team))
    await stage.until_ready(team)
    name, more = FOREIGN["PodDisruptionBudget"]
    body: Json = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, **more}
    await stage.client.create(CHILDREN["PodDisruptionBudget"], team, body, "somebody")
    await stage.change(team, "chat", replicas=2)
    await stage.until_condition(team, "Stalled", "True", "NameConflict")
    assert (await stage.condition(team, "Available"))["status"] == "True"


SABOTAGE: dict[str, list[str]] = {
    "the Deployment is deleted": ["delete", "deployment", "chat"],
    "the Service is deleted": ["delete", "service", "chat"],
    "the policy is deleted": ["delete", "networkpolicy", "chat"],
    "the account is deleted": ["delete", "serviceaccount", "chat-engine"],
    "the image is changed": ["set", "image", "deployment/chat", "engine=evil"],
    "our label is removed": ["label", "deployment", "chat", "app.kubernetes.io/managed-by-"],
    "the hash is forged": ["annotate", "service", "chat", "--overwrite", "serving.stoker.dev/applied-hash=x"],
    "a port is changed": [
        "patch", "service", "chat", "--type=json", "-p", '[{"op":"replace","path":"/spec/ports/0/port","value":1}]',
    ],
    "the policy is opened": ["patch", "networkpolicy", "chat", "--type=merge", "-p", '{"spec":{"ingress":[{}]}}'],
}  # fmt: skip


def essence(child: Json) -> Any:
    """Return what was rendered of a child, and nothing that the cluster adds."""
    labels = child["metadata"]["labels"]
    spec = json.loads(json.dumps(child.get("spec") or {}))
    for assigned in ("clusterIP", "clusterIPs"):
        spec.pop(assigned, None)
    return labels, spec, child["metadata"]["annotations"]["serving.stoker.dev/applied-hash"]


async def whole(stage: Stage, team: str) -> dict[str, Any] | None:
    """Return what was rendered of all children; None while one is missing."""
    found = {kind: await stage.child(kind, team) for kind in FOREIGN if kind != "PodDisruptionBudget"}
    return None if None in found.values() else {kind: essence(child) for kind, child in found.items() if child}


@pytest.mark.parametrize("how", SABOTAGE)
async def test_a_sabotaged_child_is_healed(stage: Stage, team: str, how: str) -> None:
    await stage.create(a_spec().manifest("chat", team))
    await stage.until_ready(team)
    before = await whole(stage, team)
    stage.plane.kubectl(*SABOTAGE[how], f"-n{team}")

    async def healed() -> bool:
        return await whole(stage, team) == before

    await until(healed, how)
    await stage.until_ready(team)
    await stage.until_quiet(2.0, team)
