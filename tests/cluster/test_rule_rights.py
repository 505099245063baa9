"""N17: the shipped roles are enough for every flow, and hold nothing more."""

from __future__ import annotations

import asyncio
import base64

from stoker.kube.permissions import CLUSTER, LEASE_NAME, NAMESPACED, OWN_NAMESPACE
from stoker.kube.resources import CHILDREN, CONFIG_MAP, INFERENCE_SERVICE, PERSISTENT_VOLUME_CLAIM, SECRET
from tests.builders.specs import a_spec
from tests.cluster.support import SYSTEM, USER, Audit, Json, Stage, until
from tests.cluster.test_rule_optional import leader_worker_sets

Right = tuple[str, str, str]
CRASH = {"kwok.stoker.dev/outcome": "CrashLoopBackOff"}


def granted() -> set[Right]:
    """Return what the code says it needs: API group, resource, verb."""
    return {rule[:3] for grant in (*NAMESPACED, *CLUSTER, *OWN_NAMESPACE) for rule in grant.rules}


def asked(audit: Audit) -> list[tuple[Right, str]]:
    """Return what the operator asked for, and the authorizer's word; reviews of its own rights are everybody's."""
    found = []
    for event in audit.events():
        ref = event.get("objectRef") or {}
        if event["user"]["username"] == USER and ref.get("resource") not in (None, "selfsubjectaccessreviews"):
            resource = "/".join(part for part in (ref["resource"], ref.get("subresource")) if part)
            right = (ref.get("apiGroup", ""), resource, event["verb"])
            found.append((right, event["annotations"]["authorization.k8s.io/decision"]))
    return found


async def exercise(stage: Stage, team: str) -> None:
    """Go through every flow that needs a verb."""
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "s"},
        "data": {"k": base64.b64encode(b"v").decode()},
    }
    await stage.client.create(SECRET, team, secret, "a-user")
    await stage.client.create(
        CONFIG_MAP,
        team,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}},
        "a-user",
    )
    claim = {
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "p"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }  # fmt: skip
    await stage.client.create(PERSISTENT_VOLUME_CLAIM, team, claim, "a-user")
    env = [
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "B", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
    ]
    volumes = [{"name": "v", "mountPath": "/v", "persistentVolumeClaim": {"claimName": "p"}}]
    await stage.create(a_spec().set("pod.volumes", volumes).manifest("with-claim", team))
    await stage.create(a_spec().set("pod.annotations", CRASH).manifest("crashes", team))
    await stage.create(a_spec().set("model.credentialsSecret", "absent").manifest("stalled", team))
    await stage.create(a_spec().replicas(2).set("pod.env", env).manifest("chat", team))
    await stage.until_ready(team)
    await heal_every_kind(stage, team)
    await prune(stage, team)
    await lose_labels(stage, team)


async def heal_every_kind(stage: Stage, team: str) -> None:
    """Have a child of each kind deleted, and one changed: they are created anew, and applied after a hand-over."""
    for kind in ("deployment", "service", "networkpolicy", "poddisruptionbudget"):
        stage.plane.kubectl("label", kind, "chat", f"-n{team}", "app.kubernetes.io/name=x", "--overwrite")
    stage.plane.kubectl(
        "label", "serviceaccount", "chat-engine", f"-n{team}", "app.kubernetes.io/name=x", "--overwrite"
    )

    async def healed() -> bool:
        found = [await stage.child(kind, team) for kind in CHILDREN if kind != "ControllerRevision"]
        return all(each and each["metadata"]["labels"]["app.kubernetes.io/name"] == "vllm" for each in found)

    await until(healed, "all children as they were rendered")


async def prune(stage: Stage, team: str) -> None:
    """Have what is surplus deleted: the budget at one replica, the sixth revision, a copy of a child of each kind."""
    for length in range(1000, 7000, 1000):
        await stage.change(team, "chat", replicas=0, context={"maxLength": length})
        await stage.until_condition(team, "Ready", "True", "Stopped")
    await stage.change(team, "chat", replicas=1)
    await stage.until_ready(team)
    for kind in ("Deployment", "Service", "ServiceAccount", "NetworkPolicy"):
        child = await stage.child(kind, team)
        assert child is not None
        await stage.client.create(CHILDREN[kind], team, a_copy(child), "a-user")

    async def pruned() -> bool:
        found = [await stage.get(CHILDREN[kind], team, "copy") for kind in ("Deployment", "Service", "NetworkPolicy")]
        return not any(found)

    await until(pruned, "no copies")


def a_copy(child: Json) -> Json:
    """Return a child under another name, owner and labels included, as somebody makes it who copies its YAML."""
    metadata = {key: child["metadata"][key] for key in ("labels", "annotations", "ownerReferences")}
    spec = {key: value for key, value in child.get("spec", {}).items() if not key.startswith("clusterIP")}
    return {**child, "metadata": {**metadata, "name": "copy"}, **({"spec": spec} if spec else {})}


async def lose_labels(stage: Stage, team: str) -> None:
    """Have the children lose our label: the watch shows them no more, and a create meets them."""
    for kind, resource in CHILDREN.items():
        child = await stage.child(kind, team) if kind != "ControllerRevision" else None
        if child is not None:
            name = child["metadata"]["name"]
            stage.plane.kubectl("label", resource.plural, name, f"-n{team}", "app.kubernetes.io/managed-by-")
    revision = (await stage.service(team))["status"]["revision"]["name"]
    stage.plane.kubectl("label", "controllerrevision", revision, f"-n{team}", "app.kubernetes.io/managed-by-")


async def test_N17_every_verb_is_granted_and_none_in_vain(stage: Stage, team: str) -> None:
    stage.stop_operator()
    stage.plane.kubectl("delete", "lease", LEASE_NAME, f"-n{SYSTEM}")
    audit = stage.audit()
    stage.start_operator()
    await stage.leader()
    with leader_worker_sets(stage):
        await exercise(stage, team)
        busy = asyncio.create_task(write_in_between(stage, team))

        async def complete() -> bool:
            return not granted() - {right for right, _ in asked(audit)}

        async def why() -> str:
            return f"granted in vain: {sorted(granted() - {right for right, _ in asked(audit)})}"

        try:
            await until(complete, "every verb used", 90.0, explain=why)
        finally:
            busy.cancel()
    assert [right for right, word in asked(audit) if word != "allow"] == []
    assert {right for right, _ in asked(audit)} <= granted()


async def write_in_between(stage: Stage, team: str) -> None:
    """Change the service again and again, so that a status meets a newer version sooner or later."""
    for turn in range(200):
        labels = {"metadata": {"labels": {"turn": str(turn)}}, "spec": {"replicas": 1 + turn % 2}}
        await stage.client.merge_patch(INFERENCE_SERVICE, team, "chat", labels, "a-user")
        await asyncio.sleep(0.05)
