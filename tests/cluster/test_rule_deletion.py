"""N5: a deleted service is gone, whatever is broken, absent or down; nothing is created for it any more."""

from __future__ import annotations

import asyncio

import pytest

from stoker.kube.resources import CHILDREN, INFERENCE_SERVICE
from tests.builders.specs import a_spec
from tests.cluster.support import Stage, until

GONE_SECONDS = 30.0


async def gone(stage: Stage, team: str) -> bool:
    """Return whether the service and all of its children are gone."""
    if await stage.get(INFERENCE_SERVICE, team, "chat") is not None:
        return False
    left = [await stage.every(kind, team, "app.kubernetes.io/managed-by=stoker") for kind in CHILDREN.values()]
    return not any(left) and not await stage.pods(team)


@pytest.mark.parametrize("cascade", ["background", "foreground"])
async def test_N5_a_deleted_service_is_gone_within_30_s(stage: Stage, team: str, cascade: str) -> None:
    await stage.create(a_spec().replicas(2).manifest("chat", team))
    await stage.until_ready(team)
    audit = stage.audit()
    stage.plane.kubectl("delete", "infsvc", "chat", f"-n{team}", f"--cascade={cascade}", "--wait=false")
    await until(lambda: gone(stage, team), "everything gone", GONE_SECONDS)
    assert [write for write in audit.writes() if write.startswith("create") and f" {team}/" in write] == []


async def test_N5_orphaned_children_stay_and_nothing_is_created(stage: Stage, team: str) -> None:
    await stage.create(a_spec().manifest("chat", team))
    await stage.until_ready(team)
    audit = stage.audit()
    stage.plane.kubectl("delete", "infsvc", "chat", f"-n{team}", "--cascade=orphan", "--wait=true", "--timeout=30s")
    await asyncio.sleep(3.0)
    deployment = await stage.child("Deployment", team)
    assert deployment is not None
    assert "ownerReferences" not in deployment["metadata"]
    assert [write for write in audit.writes() if f" {team}/" in write] == []


async def test_N5_a_service_whose_deletion_is_held_up_by_others_gets_no_new_children(stage: Stage, team: str) -> None:
    manifest = a_spec().manifest("chat", team)
    manifest["metadata"]["finalizers"] = ["example.com/hold"]
    await stage.create(manifest)
    await stage.until_ready(team)
    stage.plane.kubectl("delete", "infsvc", "chat", f"-n{team}", "--wait=false")
    stage.plane.kubectl("delete", "deployment", "chat", f"-n{team}", "--wait=true", "--timeout=30s")
    await asyncio.sleep(3.0)
    assert await stage.child("Deployment", team) is None
    await stage.client.merge_patch(INFERENCE_SERVICE, team, "chat", {"metadata": {"finalizers": None}}, "a-user")
    await until(lambda: gone(stage, team), "everything gone", GONE_SECONDS)


async def test_N5_a_service_is_gone_while_the_operator_is_down(stage: Stage, team: str) -> None:
    await stage.create(a_spec().manifest("chat", team))
    await stage.until_ready(team)
    stage.stop_operator()
    try:
        stage.plane.kubectl("delete", "infsvc", "chat", f"-n{team}", "--wait=false")
        await until(lambda: gone(stage, team), "everything gone", GONE_SECONDS)
    finally:
        stage.start_operator()
        await stage.leader()


async def test_N5_a_service_whose_secret_is_missing_is_gone(stage: Stage, team: str) -> None:
    env = [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "absent", "key": "k"}}}]
    await stage.create(a_spec().set("pod.env", env).manifest("chat", team))
    await stage.until_condition(team, "Stalled", "True")
    stage.plane.kubectl("delete", "infsvc", "chat", f"-n{team}", "--wait=false")
    await until(lambda: gone(stage, team), "everything gone", GONE_SECONDS)


async def test_a_service_that_is_deleted_and_created_anew_is_not_in_conflict_with_itself(
    stage: Stage, team: str
) -> None:
    manifest = a_spec().manifest("chat", team)
    await stage.create(manifest)
    await stage.until_ready(team)
    stage.plane.kubectl("delete", "infsvc", "chat", f"-n{team}", "--wait=true", "--timeout=30s")
    await stage.create(manifest)
    await stage.until_ready(team)
    deployment, service = await stage.child("Deployment", team), await stage.service(team)
    assert deployment is not None
    assert deployment["metadata"]["ownerReferences"][0]["uid"] == service["metadata"]["uid"]
