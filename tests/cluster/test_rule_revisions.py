"""N6, N8, N14: what rolls pods, who writes replicas, which labels reach the children."""

from __future__ import annotations

import asyncio
from typing import Any

from stoker.kube.resources import CHILDREN, CONTROLLER_REVISION
from tests.builders.specs import a_spec
from tests.cluster.support import Json, Stage, until
from tests.revisions.harness import Stored, stored

SETTLE_SECONDS = 4.0


async def pod_uids(stage: Stage, team: str) -> set[str]:
    """Return the uids of the pods that are not on their way out."""
    return {pod["metadata"]["uid"] for pod in await stage.pods(team) if "deletionTimestamp" not in pod["metadata"]}


async def revisions(stage: Stage, team: str) -> list[Json]:
    """Return the stored revisions."""
    return await stage.every(CONTROLLER_REVISION, team)


async def until_rolled(stage: Stage, team: str, before: set[str]) -> set[str]:
    """Wait until the pods are others, and ready; returns their uids."""

    async def rolled() -> bool:
        now = await pod_uids(stage, team)
        return bool(now) and not now & before

    await until(rolled, "new pods")
    await stage.until_ready(team)
    return await pod_uids(stage, team)


async def test_N6_another_agent_image_rolls_nothing_until_a_restart_is_asked_for(stage: Stage, team: str) -> None:
    await stage.create(a_spec().manifest("chat", team))
    await stage.until_ready(team)
    pods = await pod_uids(stage, team)
    stage.stop_operator()
    stage.start_operator(agent_image="ghcr.io/stoker-dev/stoker:next")
    try:
        await stage.leader()

        async def outdated() -> bool:
            return "stoker:next" in str((await stage.service(team))["status"]["revision"].get("outdated"))

        await until(outdated, "the difference to today's renderer in the status")
        assert await pod_uids(stage, team) == pods
        await stage.change(team, "chat", rollout={"restartedAt": "2026-01-01T00:00:00Z"})
        pods = await until_rolled(stage, team, pods)
        await stage.change(team, "chat", rollout=None)
        await asyncio.sleep(SETTLE_SECONDS)
        assert await pod_uids(stage, team) == pods
    finally:
        await back_to_normal(stage)


async def back_to_normal(stage: Stage) -> None:
    """Have operators with the usual agent image again."""
    stage.stop_operator()
    del stage.settings["agent_image"]
    stage.start_operator()
    await stage.leader()


async def store(stage: Stage, team: str, earlier: Stored) -> None:
    """Have a service, and the revision that an earlier release stored for it."""
    name = earlier.service["metadata"]["name"]
    service = await stage.create({**earlier.service, "metadata": {"name": name, "namespace": team}})
    owner = {"apiVersion": service["apiVersion"], "kind": service["kind"], "name": name, "controller": True}
    owners = [{**owner, "uid": service["metadata"]["uid"], "blockOwnerDeletion": False}]
    metadata = {**earlier.revision["metadata"], "namespace": team, "ownerReferences": owners}
    await stage.client.create(CONTROLLER_REVISION, team, {**earlier.revision, "metadata": metadata}, "stoker")


def missing(wanted: Any, found: Any, path: str = "") -> list[str]:
    """Return where ``found`` is not what ``wanted`` says; what the API server adds beside it does not count."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return [it for key in wanted for it in missing(wanted[key], found.get(key), f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        return [it for index, (one, other) in pairs for it in missing(one, other, f"{path}[{index}]")]
    return [] if wanted == found or (wanted == {} and found is None) else [f"{path}: {found!r}, not {wanted!r}"]


async def test_N6_what_an_earlier_release_stored_runs_as_it_is(stage: Stage, team: str) -> None:
    earlier = next(each for each in stored() if each.file.stem == "vllm-cpu")
    name = earlier.service["metadata"]["name"]
    stage.stop_operator()
    try:
        await store(stage, team, earlier)
        stage.start_operator(agent_image="ghcr.io/stoker-dev/stoker:next")
        await stage.until_ready(team, name)
        told = (await stage.service(team, name))["status"]["revision"]
        assert "STOKER_AGENT_CONFIG" in str(told["outdated"])  # today's renderer writes another one
        assert [each["metadata"]["name"] for each in await revisions(stage, team)] == [told["name"]]
        assert told["name"] == earlier.revision["metadata"]["name"]
        deployment = await stage.child("Deployment", team, name)
        assert deployment is not None
        assert missing(earlier.revision["data"]["template"], deployment["spec"]["template"]) == []
    finally:
        await back_to_normal(stage)


async def test_going_back_to_an_earlier_spec_reuses_its_revision(stage: Stage, team: str) -> None:
    await stage.create(a_spec().manifest("chat", team))
    await stage.until_ready(team)
    pods, first = await pod_uids(stage, team), (await stage.service(team))["status"]["revision"]
    await stage.change(team, "chat", context={"maxLength": 4096})
    pods = await until_rolled(stage, team, pods)
    assert len(await revisions(stage, team)) == 2
    await stage.change(team, "chat", context=None)
    await until_rolled(stage, team, pods)
    assert len(await revisions(stage, team)) == 2
    assert (await stage.service(team))["status"]["revision"]["name"] == first["name"]


async def test_N21_a_revision_whose_number_somebody_edited_stops_nothing(stage: Stage, team: str) -> None:
    await stage.create(a_spec().manifest("chat", team))
    await stage.until_ready(team)
    pods, (first,) = await pod_uids(stage, team), await revisions(stage, team)
    patch = f'{{"revision":{2**63 - 1}}}'
    stage.plane.kubectl(
        "patch", "controllerrevision", first["metadata"]["name"], f"-n{team}", "--type=merge", "-p", patch
    )
    await stage.change(team, "chat", context={"maxLength": 4096})
    await until_rolled(stage, team, pods)
    assert (await stage.service(team))["status"]["revision"]["number"] == 1


async def test_no_more_than_five_revisions_stay(stage: Stage, team: str) -> None:
    await stage.create(a_spec().replicas(0).manifest("chat", team))
    for length in range(1000, 8000, 1000):
        await stage.change(team, "chat", context={"maxLength": length})
        await stage.until_condition(team, "Ready", "True", "Stopped")

    async def pruned() -> bool:
        return len(await revisions(stage, team)) == 5

    await until(pruned, "five revisions")


async def test_N6_a_change_of_metadata_or_of_what_concerns_no_pod_rolls_nothing(stage: Stage, team: str) -> None:
    await stage.create(a_spec().manifest("chat", team))
    await stage.until_ready(team)
    pods = await pod_uids(stage, team)
    stage.plane.kubectl("label", "infsvc", "chat", f"-n{team}", "team=blue")
    await stage.change(team, "chat", replicas=2)
    await stage.until_ready(team)
    assert pods < await pod_uids(stage, team)
    assert len(await revisions(stage, team)) == 1


async def test_a_field_that_is_removed_from_the_spec_disappears_from_the_pods(stage: Stage, team: str) -> None:
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    await stage.create(a_spec().set("pod.env", env).set("pod.nodeSelector", {"type": "kwok"}).manifest("chat", team))
    await stage.until_ready(team)
    pods = await pod_uids(stage, team)
    await stage.change(team, "chat", pod={"env": env[:1], "nodeSelector": None})
    await until_rolled(stage, team, pods)
    deployment = await stage.child("Deployment", team)
    assert deployment is not None
    pod = deployment["spec"]["template"]["spec"]
    engine = next(container for container in pod["containers"] if container["name"] == "engine")
    assert [each["name"] for each in engine["env"] if each["name"] in "AB"] == ["A"]
    assert "nodeSelector" not in pod


async def test_N8_replicas_follow_the_scale_subresource_and_nobody_else(stage: Stage, team: str) -> None:
    await stage.create(a_spec().manifest("chat", team))
    await stage.until_ready(team)

    async def replicas(wanted: int) -> bool:
        deployment = await stage.child("Deployment", team)
        return deployment is not None and deployment["spec"]["replicas"] == wanted

    stage.plane.kubectl("scale", "infsvc", "chat", f"-n{team}", "--replicas=3")
    await until(lambda: replicas(3), "three replicas")
    await stage.until_ready(team)
    assert (await stage.child("PodDisruptionBudget", team)) is not None
    stage.plane.kubectl("scale", "deployment", "chat", f"-n{team}", "--replicas=5")
    await until(lambda: replicas(3), "three replicas again")
    stage.plane.kubectl("scale", "infsvc", "chat", f"-n{team}", "--replicas=1")
    await until(lambda: replicas(1), "one replica")
    deployment = await stage.child("Deployment", team)
    assert deployment is not None
    owners = [
        entry["manager"] for entry in deployment["metadata"]["managedFields"]
        if "f:replicas" in entry.get("fieldsV1", {}).get("f:spec", {})
    ]  # fmt: skip
    assert owners == ["stoker"]

    async def no_budget() -> bool:
        return await stage.child("PodDisruptionBudget", team) is None

    await until(no_budget, "no budget at one replica")


FOREIGN_METADATA = {
    "argocd.argoproj.io/instance": "app",
    "app.kubernetes.io/instance": "release",
    "helm.toolkit.fluxcd.io/name": "release",
    "kustomize.toolkit.fluxcd.io/name": "apps",
    "app.kubernetes.io/managed-by": "Helm",
}


async def test_N14_labels_of_argo_flux_and_helm_reach_no_child(stage: Stage, team: str) -> None:
    manifest = a_spec().replicas(2).manifest("chat", team)
    manifest["metadata"]["labels"] = FOREIGN_METADATA
    manifest["metadata"]["annotations"] = {
        "argocd.argoproj.io/tracking-id": "x", "meta.helm.sh/release-name": "y",
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
    }  # fmt: skip
    await stage.create(manifest)
    await stage.until_ready(team)
    children = [await stage.child(kind, team) for kind in CHILDREN if kind != "ControllerRevision"]
    for child in [*children, *await revisions(stage, team), *await stage.pods(team)]:
        assert child is not None
        metadata = child["metadata"]
        found = {**metadata["labels"], **(metadata.get("annotations") or {})}
        assert not found.keys() & {*manifest["metadata"]["annotations"], *FOREIGN_METADATA} - {
            "app.kubernetes.io/managed-by"
        }
        assert metadata["labels"]["app.kubernetes.io/managed-by"] == "stoker"
    deployment, service = await stage.child("Deployment", team), await stage.child("Service", team)
    assert deployment is not None
    assert service is not None
    wanted = {"serving.stoker.dev/service": "chat", "serving.stoker.dev/component": "engine"}
    assert deployment["spec"]["selector"] == {"matchLabels": wanted}
    assert service["spec"]["selector"] == wanted
