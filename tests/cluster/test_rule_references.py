"""N19, N20: what a change of a named object does, and what the operator may read."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from stoker.kube.resources import CONFIG_MAP, CONTROLLER_REVISION, SECRET
from tests.builders.specs import a_spec
from tests.cluster.support import USER, Json, Stage, until

AGAIN_SECONDS = 100.0
"""Secrets are read again every 48 to 72 s."""


def a_secret(name: str, **data: str) -> Json:
    """Return a Secret."""
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded}


def an_env(kind: str, name: str, **more: Any) -> list[Json]:
    """Return a variable that is taken from an object."""
    return [{"name": "KEY", "valueFrom": {kind: {"name": name, "key": "k", **more}}}]


async def revisions(stage: Stage, team: str) -> int:
    """Return how many revisions there are."""
    return len(await stage.every(CONTROLLER_REVISION, team))


async def test_N19_a_changed_secret_of_a_variable_rolls_and_a_changed_credential_does_not(
    stage: Stage, team: str
) -> None:
    for name in ("rolls", "credential", "other-key"):
        await stage.client.create(SECRET, team, a_secret(name, k="1", HF_TOKEN="t", unused="x"), "a-user")
    env = an_env("secretKeyRef", "rolls")
    spec = a_spec().set("pod.env", env).set("model.credentialsSecret", "credential")
    await stage.create(spec.manifest("chat", team))
    await stage.until_ready(team)
    for name, change in (("credential", {"HF_TOKEN": "dDI="}), ("rolls", {"unused": "eTI="})):
        await stage.client.merge_patch(SECRET, team, name, {"data": change}, "a-user")
    await stage.change(team, "chat", replicas=2)  # what a changed spec names is read again at once
    await stage.until_ready(team)
    assert await revisions(stage, team) == 1
    before = {pod["metadata"]["uid"] for pod in await stage.pods(team)}
    await stage.client.merge_patch(SECRET, team, "rolls", {"data": {"k": "Mg=="}}, "a-user")

    async def rolled() -> bool:
        now = {pod["metadata"]["uid"] for pod in await stage.pods(team)}
        return bool(now) and not now & before

    await until(rolled, "new pods", AGAIN_SECONDS)
    await stage.until_ready(team)
    assert await revisions(stage, team) == 2
    stored = await stage.every(CONTROLLER_REVISION, team)
    assert "Mg==" not in str(stored)


@pytest.mark.parametrize(
    ("path", "value", "kind", "name"),
    [
        ("pod.env", an_env("secretKeyRef", "absent"), "Secret", "absent"),
        ("pod.env", an_env("configMapKeyRef", "absent"), "ConfigMap", "absent"),
        ("model.credentialsSecret", "absent", "Secret", "absent"),
        ("pod.serviceAccountName", "absent", "ServiceAccount", "absent"),
        ("pod.volumes", [{"name": "v", "mountPath": "/v", "persistentVolumeClaim": {"claimName": "absent"}}],
         "PersistentVolumeClaim", "absent"),
    ],
    ids=["secret of a variable", "config map of a variable", "credential", "account", "claim"],
)  # fmt: skip
async def test_a_missing_object_stalls_the_service_within_one_reconcile(
    stage: Stage, team: str, path: str, value: Any, kind: str, name: str
) -> None:
    await stage.create(a_spec().set(path, value).manifest("chat", team))
    stalled = await stage.until_condition(team, "Stalled", "True", f"{kind}NotFound")
    assert f"spec.{path}" in stalled["message"]
    assert f"{kind} {name}" in stalled["message"]
    assert await stage.child("Deployment", team) is None


async def test_a_missing_object_that_appears_is_noticed(stage: Stage, team: str) -> None:
    await stage.create(a_spec().set("pod.env", an_env("configMapKeyRef", "late")).manifest("chat", team))
    await stage.until_condition(team, "Stalled", "True")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "late"}, "data": {"k": "v"}}
    await stage.client.create(CONFIG_MAP, team, body, "a-user")
    await stage.until_ready(team)
    assert await stage.condition(team, "Stalled") == {}


async def test_an_optional_object_may_be_missing(stage: Stage, team: str) -> None:
    env = an_env("secretKeyRef", "absent", optional=True)
    await stage.create(a_spec().set("pod.env", env).manifest("chat", team))
    await stage.until_ready(team)


async def test_N20_secrets_are_read_one_by_one_in_the_services_own_namespace(stage: Stage, team: str) -> None:
    audit = stage.audit()
    await stage.client.create(SECRET, team, a_secret("mine", k="1"), "a-user")
    await stage.create(a_spec().set("pod.env", an_env("secretKeyRef", "mine")).manifest("chat", team))
    await stage.until_ready(team)
    reads = [
        (event["verb"], event["objectRef"]["namespace"], event["objectRef"].get("name"))
        for event in audit.events()
        if event["user"]["username"] == USER and event.get("objectRef", {}).get("resource") == "secrets"
    ]
    assert (("get", team, "mine") in reads, {verb for verb, _, _ in reads}) == (True, {"get"})


async def test_a_spec_that_cannot_be_rendered_touches_nothing_that_serves(stage: Stage, team: str) -> None:
    await stage.create(a_spec().manifest("chat", team))
    await stage.until_ready(team)
    before = {pod["metadata"]["uid"] for pod in await stage.pods(team)}
    await stage.change(team, "chat", pod={"env": an_env("secretKeyRef", "absent")}, replicas=2)
    await stage.until_condition(team, "Stalled", "True")

    async def scaled() -> bool:
        return len(await stage.pods(team)) == 2

    await until(scaled, "scaling goes on")
    assert before < {pod["metadata"]["uid"] for pod in await stage.pods(team)}
    assert (await stage.condition(team, "Available"))["status"] == "True"
