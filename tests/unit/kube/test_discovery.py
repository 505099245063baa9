"""N7: what the cluster serves, told from answers alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from stoker.api.crd import SchemaGap, inference_service_crd
from stoker.kube.client import Client
from stoker.kube.discovery import LEADER_WORKER_SET, Discovery
from stoker.kube.errors import ApiError, Forbidden, NotFound, Unauthorized, Unavailable

API = "leaderworkerset.x-k8s.io/v1/LeaderWorkerSet"
CRD = {**inference_service_crd(), "metadata": {"resourceVersion": "1"}}
SERVED = {"resources": [{"name": LEADER_WORKER_SET.plural}]}


class Cluster:
    """The reads of a client. ``fault`` is what discovery answers, ``listing`` what a list answers."""

    def __init__(self) -> None:
        self.fault: ApiError | None = None
        self.listing: ApiError | None = None
        self.served: dict[str, Any] = SERVED
        self.crd: dict[str, Any] = CRD

    async def discover(self, path: str) -> dict[str, Any]:
        if self.fault:
            raise self.fault
        return self.served

    async def pages(self, *_: object) -> AsyncIterator[list[dict[str, Any]]]:
        if self.listing:
            raise self.listing
        yield []

    async def get_metadata(self, *_: object) -> dict[str, Any]:
        return self.crd

    async def get(self, *_: object) -> dict[str, Any]:
        return self.crd


class Watcher:
    """Discovery over such a cluster, and how often it told of a change."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.changes = 0
        self.discovery = Discovery(cast(Client, self.cluster), self._changed)

    def _changed(self) -> None:
        self.changes += 1

    async def state(self) -> str:
        await self.discovery.poll()
        found = self.discovery.capabilities
        return "served" if API in found.served else found.broken.get(API, "absent")


@pytest.mark.parametrize(
    ("fault", "listing", "state"),
    [
        (None, None, "served"),
        (NotFound("no such API", code=404), None, "absent"),
        (None, Unavailable("the conversion webhook is dead", code=500), "the conversion webhook is dead"),
        (None, Forbidden("no", code=403), "the operator's role does not allow to list it"),
    ],
)
async def test_N7_an_api_is_served_absent_or_broken(
    fault: ApiError | None, listing: ApiError | None, state: str
) -> None:
    watcher = Watcher()
    watcher.cluster.fault, watcher.cluster.listing = fault, listing
    assert await watcher.state() == state


async def test_N7_an_api_whose_group_lacks_the_kind_is_absent() -> None:
    watcher = Watcher()
    watcher.cluster.served = {"resources": [{"name": "others"}]}
    assert await watcher.state() == "absent"


@pytest.mark.parametrize("before", [None, NotFound("no", code=404), Unavailable("a dead webhook", code=500)])
@pytest.mark.parametrize(
    "silence", [Unavailable("no answer within 10 s"), Unauthorized("who?", code=401), Unavailable("busy", code=429)]
)
async def test_N7_an_api_server_that_does_not_answer_changes_nothing_that_is_known(
    before: ApiError | None, silence: ApiError
) -> None:
    watcher = Watcher()
    watcher.cluster.fault = before
    known, changes = await watcher.state(), watcher.changes
    watcher.cluster.fault = silence
    assert await watcher.state() == known
    assert watcher.changes == changes


async def test_an_older_crd_is_read_once_for_each_version_and_kept_while_it_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watcher = Watcher()
    await watcher.discovery.poll()
    assert watcher.discovery.capabilities.crd_outdated is None
    watcher.cluster.crd = {"spec": {"versions": []}, "metadata": {"resourceVersion": "2"}}
    await watcher.discovery.poll()
    assert watcher.discovery.capabilities.crd_outdated == SchemaGap("version v1alpha1")

    async def refused(*_: object) -> dict[str, Any]:
        raise Forbidden("no", code=403)

    monkeypatch.setattr(watcher.cluster, "get_metadata", refused)
    await watcher.discovery.poll()
    assert watcher.discovery.capabilities.crd_outdated == SchemaGap("version v1alpha1")


async def test_N7_a_change_is_told_once_and_nothing_else_is() -> None:
    watcher = Watcher()
    await watcher.state()
    assert watcher.changes == 1
    await watcher.state()
    assert watcher.changes == 1
    watcher.cluster.fault = NotFound("no such API", code=404)
    await watcher.state()
    assert watcher.changes == 2
