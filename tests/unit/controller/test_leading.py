"""What a replica does while it leads and while it does not, and what makes it unfit to go on."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from kubernetes.aio.client import Configuration

from stoker.controller.operator import STUCK_SECONDS, Operator
from stoker.controller.options import parse_options
from stoker.kube.expectations import Expectation
from stoker.kube.resources import DEPLOYMENT, INFERENCE_SERVICE, POD
from tests.builders.objects import a_stored_pod, an_object

KEY = ("team-a", "chat")


@pytest.fixture
async def replica() -> AsyncIterator[Operator]:
    """A replica that has listed everything, does not lead, and talks to nobody."""
    found = Operator(parse_options(["--metrics-port", "0"], {}), Configuration(), (INFERENCE_SERVICE, DEPLOYMENT, POD))
    found.complete()
    yield found
    found.elector.state.lost()  # there is no Lease to give back
    await found.stop()


async def test_a_replica_that_does_not_lead_queues_nothing(replica: Operator) -> None:
    """It would grow for as long as it does not lead, and call itself stuck."""
    replica.seen("InferenceService", an_object("InferenceService", uid="svc", spec={}))
    replica.seen("Deployment", an_object("Deployment", version=5, owner="svc"))
    replica.seen("Pod", a_stored_pod())
    replica.gone("Pod", a_stored_pod(version=2))
    assert (len(replica.queue.core), replica.queue.core.delayed) == (0, 0)


async def test_nothing_is_queued_before_everything_is_listed(replica: Operator) -> None:
    """Half a picture would make children anew that are merely not listed yet."""
    replica.elector.led, replica._complete = True, False
    replica.seen("InferenceService", an_object("InferenceService", uid="svc", spec={}))
    assert len(replica.queue.core) == 0


async def test_who_begins_to_lead_looks_at_everything(replica: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica._workers, "start", lambda: None)
    replica.seen("InferenceService", an_object("InferenceService", uid="svc", spec={}))
    replica.elector.state.renewed(replica._loop.time())
    replica.elector._announce()
    assert replica.queue.core.take(replica._loop.time()) == KEY


async def test_a_silent_watch_makes_a_replica_unfit(replica: Operator) -> None:
    assert replica.problems() == []
    replica.expectations.expect("uid-Deployment-chat", Expectation("Deployment", *KEY, 5, since=-1e9))
    assert replica.problems() == ["the watch of Deployment is silent"]


@pytest.mark.parametrize(
    ("leads", "waited", "since_result", "unfit"),
    [(True, 2.0, 2.0, True), (True, 2.0, 0.5, False), (True, 0.5, 2.0, False), (False, 2.0, 2.0, False)],
    ids=["nothing moves", "much to do", "idle before", "another leads"],
)
async def test_a_queue_that_does_not_move_makes_the_leader_unfit(
    replica: Operator, leads: bool, waited: float, since_result: float, unfit: bool
) -> None:
    now = replica._loop.time()
    replica.elector.led = leads
    replica.queue.core.add(KEY, now - waited * STUCK_SECONDS)
    replica._last_result_at = now - since_result * STUCK_SECONDS
    assert bool(replica.problems()) is unfit
