"""N4: Ready never lies."""

from __future__ import annotations

from tests.builders.specs import a_spec
from tests.cluster.support import Stage, condition_of, until

CRASH = {"kwok.stoker.dev/outcome": "CrashLoopBackOff", "kwok.stoker.dev/message": "RuntimeError: engine core died"}


async def test_N4_an_old_revision_that_serves_while_the_new_one_crashes_is_available_and_not_ready(
    stage: Stage, team: str
) -> None:
    await stage.create(a_spec().manifest("chat", team))
    await stage.until_ready(team)
    await stage.change(team, "chat", pod={"annotations": CRASH})
    await stage.until_condition(team, "Ready", "False")

    async def crashes() -> bool:
        pods = await stage.pods(team)
        return len(pods) == 2 and "engine core died" in str((await stage.service(team)).get("status"))

    await until(crashes, "the crash in the status, with its last words")
    service = await stage.service(team)
    states = {type_: condition_of(service, type_).get("status") for type_ in ("Available", "UpToDate", "Ready")}
    assert states == {"Available": "True", "UpToDate": "False", "Ready": "False"}
    assert service["status"]["observedGeneration"] == service["metadata"]["generation"]


async def test_N4_counts_of_a_generation_that_the_deployment_controller_has_not_seen_do_not_count(
    stage: Stage, team: str
) -> None:
    await stage.create(a_spec().manifest("chat", team))
    await stage.until_ready(team)
    stage.plane.pause_process("kube-controller-manager")
    try:
        await stage.change(team, "chat", context={"maxLength": 4096})
        await stage.until_condition(team, "Ready", "False")
        await stage.until_quiet(3.0, team)  # everything is said that can be said of what is known
        deployment = await stage.child("Deployment", team)
        assert deployment is not None
        assert deployment["status"]["observedGeneration"] < deployment["metadata"]["generation"]
        assert deployment["status"]["readyReplicas"] == deployment["status"]["updatedReplicas"] == 1
        states = {type_: (await stage.condition(team, type_))["status"] for type_ in ("Available", "UpToDate", "Ready")}
        assert states == {"Available": "True", "UpToDate": "False", "Ready": "False"}
    finally:
        stage.plane.resume_process("kube-controller-manager")
    await stage.until_ready(team)


async def test_N4_replicas_zero_is_ready_and_says_stopped(stage: Stage, team: str) -> None:
    await stage.create(a_spec().replicas(0).manifest("chat", team))
    await stage.until_condition(team, "Ready", "True", "Stopped")
    assert await stage.pods(team) == []
