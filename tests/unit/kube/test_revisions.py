"""Storing a revision where one of that name stands already."""

from __future__ import annotations

from typing import Any, cast

import pytest

from stoker.kube.apply import ChildWriter, Outcome, Result
from stoker.kube.cache import Cache
from stoker.kube.client import Client
from stoker.kube.errors import AlreadyExists, NotFound
from stoker.kube.expectations import Expectations
from stoker.kube.ledger import Ledger
from stoker.kube.snapshot import Owner
from tests.builders.objects import an_object


class Standing:
    """The calls of a client, answered by one object that stands."""

    def __init__(self, raw: dict[str, Any] | None) -> None:
        self.raw = raw

    async def create(self, *_: object) -> dict[str, Any]:
        raise AlreadyExists("it stands")

    async def get(self, *_: object) -> dict[str, Any]:
        if self.raw is None:
            raise NotFound("it went")
        return self.raw


async def stored_over(raw: dict[str, Any] | None) -> Outcome:
    cache = Cache(("Deployment",))
    ledger = Ledger(cache, Expectations(), lambda: 0.0)
    writer = ChildWriter(cast(Client, Standing(raw)), cache, ledger)
    return await writer.ensure_revision(an_object("ControllerRevision", "chat-1"), Owner("new", "chat"))


@pytest.mark.parametrize(
    ("owner", "result"),
    [("new", Result.CREATED), ("of an earlier chat", Result.TERMINATING), (None, Result.FOREIGN)],
)
async def test_N22_a_revision_that_stands_is_ours_or_goes_or_is_foreign(owner: str | None, result: Result) -> None:
    assert (await stored_over(an_object("ControllerRevision", "chat-1", owner=owner))).result is result


async def test_N22_our_own_revision_that_is_being_deleted_does_not_count_as_stored() -> None:
    raw = an_object("ControllerRevision", "chat-1", owner="new")
    raw["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z"
    assert (await stored_over(raw)).result is Result.TERMINATING


async def test_a_revision_that_stood_and_went_is_no_failure_but_looked_at_again() -> None:
    assert (await stored_over(None)).result is Result.STALE
