"""In which order a reconcile writes: nothing runs that is not stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from stoker.controller.metrics import Metrics
from stoker.controller.reconciler import Parts, Reconciler
from stoker.kube.apply import Outcome, Result
from stoker.kube.errors import NotLeader
from stoker.kube.snapshot import Owner
from stoker.kube.views import service_entry
from stoker.reconcile.decision import Decision
from tests.builders.objects import an_object

DECISION = Decision(
    create_revision=an_object("ControllerRevision", "chat-1"),
    apply=(an_object("Deployment"), an_object("Service")),
)


class Writer:
    """Notes what is written; a revision ends as told."""

    def __init__(self, stored: Result) -> None:
        self.stored = stored
        self.written: list[str] = []

    async def ensure_revision(self, manifest: Mapping[str, Any], _: Owner) -> Outcome:
        self.written.append(manifest["kind"])
        return Outcome(self.stored)

    async def ensure(self, manifest: Mapping[str, Any], _: Owner) -> Outcome:
        self.written.append(manifest["kind"])
        return Outcome(Result.CREATED)


@pytest.fixture(scope="module")
def metrics() -> Metrics:
    return Metrics()


@pytest.mark.parametrize(
    ("stored", "written"),
    [
        (Result.CREATED, ["ControllerRevision", "Service", "Deployment"]),
        (Result.TERMINATING, ["ControllerRevision"]),
        (Result.FOREIGN, ["ControllerRevision"]),
    ],
)
async def test_children_follow_once_their_revision_is_stored(
    metrics: Metrics, stored: Result, written: list[str]
) -> None:
    writer = Writer(stored)
    reconciler = Reconciler(cast(Parts, SimpleNamespace(writer=writer, metrics=metrics)))
    await reconciler._write(service_entry(an_object("InferenceService", uid="svc", spec={})), DECISION)
    assert writer.written == written


class Losing(Writer):
    """The lead is lost while children are written: one write is held back, another is on its way."""

    def __init__(self) -> None:
        super().__init__(Result.CREATED)
        self.on_its_way = 0

    async def ensure(self, manifest: Mapping[str, Any], _: Owner) -> Outcome:
        if manifest["kind"] == "Service":
            raise NotLeader("this operator does not hold the Lease")
        self.on_its_way += 1
        await asyncio.sleep(0.05)
        self.on_its_way -= 1
        return Outcome(Result.CREATED)


async def test_no_write_outlives_its_reconcile_when_the_lead_is_lost(metrics: Metrics) -> None:
    """Else the next reconcile of the same service would write the same object beside it."""
    writer = Losing()
    reconciler = Reconciler(cast(Parts, SimpleNamespace(writer=writer, metrics=metrics)))
    decision = Decision(apply=(an_object("Service"), an_object("NetworkPolicy"), an_object("ServiceAccount")))
    with pytest.raises(NotLeader):
        await reconciler._write(service_entry(an_object("InferenceService", uid="svc", spec={})), decision)
    assert writer.on_its_way == 0
