"""Keeping the cache true where a watch stream failed to."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from stoker.controller.upkeep import Upkeep
from stoker.kube.cache import Cache
from stoker.kube.client import Client, Selection
from stoker.kube.discovery import LEADER_WORKER_SET, Discovery
from stoker.kube.expectations import Expectations
from stoker.kube.resources import DEPLOYMENT, INFERENCE_SERVICE, NODE, POD, Resource
from tests.builders.objects import a_stored_pod


class Listing:
    """The reads of a client, answered by what is stored, by kind; notes what was listed where."""

    def __init__(self, **stored: list[dict[str, Any]]) -> None:
        self.stored = stored
        self.listed: list[tuple[str, str | None]] = []

    async def pages(
        self, resource: Resource, namespace: str | None = None, selection: Selection | None = None
    ) -> AsyncIterator[list[dict[str, Any]]]:
        self.listed.append((resource.kind, namespace))
        yield self.stored.get(resource.kind, [])

    async def discover(self, path: str) -> dict[str, Any]:
        return {"resources": [{"name": LEADER_WORKER_SET.plural}]}

    async def get_metadata(self, *_: object) -> dict[str, Any]:
        return {"metadata": {"resourceVersion": "1"}}

    async def get(self, *_: object) -> dict[str, Any]:
        return {}


def an_upkeep(listing: Listing, cache: Cache, namespaces: tuple[str, ...] = ()) -> Upkeep:
    selections = [(resource, "") for resource in (INFERENCE_SERVICE, DEPLOYMENT, POD, NODE)]
    return Upkeep(cast(Client, listing), cache, Expectations(), selections, namespaces)


async def test_a_pod_that_is_gone_without_a_word_is_forgotten() -> None:
    cache, gone = Cache(("Deployment",)), []
    cache.put("Pod", a_stored_pod("chat-0"))
    cache.put("Pod", a_stored_pod("chat-1"))
    upkeep = an_upkeep(Listing(Pod=[a_stored_pod("chat-1")]), cache)
    upkeep.gone = lambda kind, raw: gone.append((kind, raw["metadata"]["name"]))
    assert await upkeep.sweep("Pod") == 1
    assert gone == [("Pod", "chat-0")]


@pytest.mark.parametrize(
    ("kind", "namespaces", "where"),
    [("Pod", (), [None]), ("Pod", ("a", "b"), ["a", "b"]), ("Node", ("a", "b"), [None])],
)
async def test_N17_only_what_may_be_listed_is(kind: str, namespaces: tuple[str, ...], where: list[str | None]) -> None:
    listing = Listing()
    await an_upkeep(listing, Cache(("Deployment",)), namespaces).sweep(kind)
    assert listing.listed == [(kind, namespace) for namespace in where]


async def test_N17_an_optional_api_is_asked_for_where_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    listing = Listing()
    discovery = Discovery(cast(Client, listing), lambda: None, "a")
    monkeypatch.setattr("stoker.kube.discovery.schema_gap", lambda served: None)
    await discovery.poll()
    assert listing.listed == [("LeaderWorkerSet", "a")]


class LateWatch(Listing):
    """A list that lacks a pod, since it was taken before the pod; asked for alone, it is there."""

    async def pages(
        self, resource: Resource, namespace: str | None = None, selection: Selection | None = None
    ) -> AsyncIterator[list[dict[str, Any]]]:
        yield self.stored["Pod"] if selection and selection.fields else []


async def test_what_a_list_lacks_is_asked_for_again_before_it_is_forgotten() -> None:
    """It may have lost its label, or have been made after the list: forgotten, its service would create another."""
    cache, gone, seen = Cache(("Deployment",)), [], []
    pod = a_stored_pod("chat-0")
    cache.put("Pod", pod)
    upkeep = an_upkeep(LateWatch(Pod=[pod]), cache)
    upkeep.gone = lambda kind, raw: gone.append(raw["metadata"]["name"])
    upkeep.seen = lambda kind, raw: seen.append(raw["metadata"]["name"])
    await upkeep.sweep("Pod")
    assert (gone, seen) == ([], ["chat-0"])
