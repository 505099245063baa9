"""N18: what pods of others hold is asked for, and how old an answer may be depends on what hangs on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from stoker.kube import held
from stoker.kube.client import Client
from stoker.kube.held import FRESH_SECONDS, REPLACING_SECONDS, ForeignHeld
from tests.builders.objects import a_stored_pod

GPU = "nvidia.com/gpu"


class Cluster:
    """An API server with one pod of somebody else, which holds more at each list. A list may take its time."""

    def __init__(self) -> None:
        self.lists, self.now, self.seconds = 0, 0.0, 0.0

    async def pages(self, *_: object, **__: object) -> AsyncIterator[list[dict[str, Any]]]:
        """List the pods in two pages, the second of them empty."""
        self.lists += 1
        limits = {GPU: str(self.lists)}
        await asyncio.sleep(0)
        self.now += self.seconds
        yield [a_stored_pod(spec={"nodeName": "n", "containers": [{"resources": {"limits": limits}}]}, status={})]
        yield []


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    found = Cluster()
    monkeypatch.setattr(held, "_now", lambda: found.now)
    return found


def asking(cluster: Cluster) -> ForeignHeld:
    return ForeignHeld(cast(Client, cluster))


async def test_a_list_counts_what_pods_hold(cluster: Cluster) -> None:
    foreign = asking(cluster)
    assert foreign.last == {}
    await foreign.refresh()
    assert foreign.last == {"n": {GPU: 1}}


@pytest.mark.parametrize("age", [FRESH_SECONDS, REPLACING_SECONDS])
async def test_N18_a_list_serves_those_who_allow_its_age(cluster: Cluster, age: float) -> None:
    foreign = asking(cluster)
    await foreign.refresh()
    cluster.now += age
    assert foreign.is_fresh(age)
    await foreign.refresh(age)
    assert cluster.lists == 1
    cluster.now += 0.1
    assert not foreign.is_fresh(age)
    await foreign.refresh(age)
    assert (cluster.lists, foreign.last) == (2, {"n": {GPU: 2}})


async def test_N18_a_list_is_as_old_as_its_beginning(cluster: Cluster) -> None:
    foreign, cluster.seconds = asking(cluster), FRESH_SECONDS + 1
    await foreign.refresh()
    assert not foreign.is_fresh()


async def test_all_who_ask_during_a_slow_list_share_the_next(cluster: Cluster) -> None:
    foreign, cluster.seconds = asking(cluster), 10.0
    first = asyncio.create_task(foreign.refresh(REPLACING_SECONDS))
    await asyncio.sleep(0)  # the list runs: those who come now need one that was begun after they asked
    await asyncio.gather(first, *(foreign.refresh(REPLACING_SECONDS) for _ in range(16)))
    assert cluster.lists == 2
