"""N2, N3: nothing is written without a reason, and never the spec."""

from __future__ import annotations

import asyncio

from tests.builders.specs import a_spec
from tests.cluster.support import Stage

SERVICES = 20
IDLE_SECONDS = 60.0


async def test_N2_a_fleet_of_ready_services_is_left_alone_by_two_replicas(stage: Stage, team: str) -> None:
    names = [f"chat-{index}" for index in range(SERVICES)]
    for name in names:
        await stage.create(a_spec().manifest(name, team))
    await stage.until_ready(team, *names)
    await stage.until_quiet(5.0, team)
    audit = stage.audit()
    await stage.change(team, names[0], context={"maxLength": 4096})
    await stage.until_ready(team, names[0])
    assert [write for write in audit.writes() if f"{team}/{names[0]}" in write]  # the counter does move
    await stage.until_quiet(5.0, team)
    idle = stage.audit()
    await asyncio.sleep(IDLE_SECONDS)
    others = (write for write in idle.writes() if " team-" in write and f" {team}/" not in write)
    assert sorted(idle.writes()) == sorted(others)  # what other tests left behind is on its way out


async def test_N3_the_stored_spec_is_the_applied_one(stage: Stage, team: str) -> None:
    manifest = a_spec().set("pod.env", [{"name": "A", "value": "1"}]).manifest("chat", team)
    await stage.create(manifest)
    await stage.until_ready(team)
    service = await stage.service(team)
    assert service["spec"] == {**manifest["spec"], "replicas": 1}
    managers = {entry["manager"] for entry in service["metadata"]["managedFields"] if not entry.get("subresource")}
    assert managers == {"a-user"}
