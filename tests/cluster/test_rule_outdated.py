"""A CustomResourceDefinition that is older than the operator: services are served, and their status tells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stoker import __version__
from stoker.api.crd import VERSION_LABEL
from tests.builders.cluster import own_crd
from tests.builders.specs import a_spec
from tests.cluster.support import Json, Stage, until

POLL_SECONDS = 90.0
"""The operator looks at the schema every 30 s."""

LACKS = ("spec.speculation", "status.layout.origins")


def older() -> Json:
    """Return the CRD without some fields."""
    crd = own_crd()
    for path in LACKS:
        part = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        *parents, name = path.split(".")
        for parent in parents:
            part = part["properties"][parent]
        del part["properties"][name]
    return crd


def with_other_checks(version: str) -> Json:
    """Return the CRD as of a version that knows an engine fewer, and asks for more replicas by default."""
    crd = own_crd()
    crd["metadata"]["labels"][VERSION_LABEL] = version
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    spec["engine"]["properties"]["name"]["enum"].remove("llama.cpp")
    spec["replicas"]["default"] = 2
    return crd


@contextmanager
def another_crd(stage: Stage, crd: Json) -> Iterator[None]:
    """Have another CRD for a while."""
    stage.plane.apply(crd)
    try:
        yield
    finally:
        stage.plane.apply(own_crd())


async def test_an_older_crd_is_told_in_the_status_which_is_written_all_the_same(stage: Stage, team: str) -> None:
    await stage.create(a_spec().manifest("before", team))
    await stage.until_ready(team, "before")

    async def tells(name: str) -> bool:
        return "CRDOutdated" in (await stage.condition(team, "UpToDate", name)).get("message", "")

    async def told() -> bool:
        return await tells("before")

    with another_crd(stage, older()):
        await until(told, "CRDOutdated in the status", POLL_SECONDS)
        assert LACKS[0] in (await stage.condition(team, "UpToDate", "before"))["message"]
        await stage.create(a_spec().manifest("after", team))
        await stage.until_ready(team, "after")  # the status has a field that this schema refuses
        assert await tells("after")
        assert "origins" not in (await stage.service(team, "after"))["status"]["layout"]

    async def is_over() -> bool:
        return not await tells("before") and not await tells("after")

    await until(is_over, "the status without CRDOutdated", 2 * POLL_SECONDS)
    assert (await stage.service(team, "after"))["status"]["layout"]["origins"]


async def test_N7_other_checks_are_told_of_an_older_crd_and_not_of_a_newer_one(stage: Stage, team: str) -> None:
    """At an upgrade the CRD is the newer one for a while, and nothing is wrong."""
    await stage.create(a_spec().manifest("chat", team))
    await stage.until_ready(team)

    async def message() -> str:
        return str((await stage.condition(team, "UpToDate")).get("message", ""))

    async def told() -> bool:
        return "lacks a rule of spec.engine.name or more: other rules and defaults hold" in await message()

    async def is_over() -> bool:
        return "CRDOutdated" not in await message()

    with another_crd(stage, with_other_checks(__version__)):
        await until(told, "CRDOutdated in the status", POLL_SECONDS)
        stage.plane.apply(with_other_checks("99.0.0"))
        await until(is_over, "the status without CRDOutdated while the CRD is newer", POLL_SECONDS)
