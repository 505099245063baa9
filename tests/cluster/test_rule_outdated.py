"""A CustomResourceDefinition that is older than the operator: services are served, and their status tells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def an_older_crd(stage: Stage) -> Iterator[None]:
    """Have an older CRD for a while."""
    stage.plane.apply(older())
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

    with an_older_crd(stage):
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
