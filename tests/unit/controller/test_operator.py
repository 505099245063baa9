"""What the operator makes of objects that were seen, read or missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kubernetes.aio.client import Configuration

from stoker.api.crd import SchemaGap
from stoker.controller.operator import Operator
from stoker.controller.options import parse_options
from stoker.controller.reconciler import WAITING_SECONDS, Attempt, Memory, Reconciler
from stoker.kube.client import Client
from stoker.kube.discovery import Capabilities
from stoker.kube.errors import Forbidden
from stoker.kube.expectations import Expectation
from stoker.kube.held import ForeignHeld
from stoker.kube.lease import RENEW_DEADLINE_SECONDS
from stoker.kube.naming import Named
from stoker.kube.references import _Read
from stoker.kube.resources import DEPLOYMENT, INFERENCE_SERVICE, NODE, POD, Resource
from stoker.kube.views import pod_view
from stoker.plan.snapshot import Snapshot
from tests.builders.objects import a_stored_pod, an_object
from tests.builders.specs import a_spec

KEY = ("team-a", "chat")
NO_PLACE = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}


def an_operator(*resources: Resource) -> Operator:
    """An operator that watches some kinds, and knows one service."""
    found = Operator(parse_options(["--metrics-port", "0"], {}), Configuration(), resources)
    found.seen("InferenceService", an_object("InferenceService", uid="svc", spec={}))
    return found


@pytest.fixture
async def operator() -> AsyncIterator[Operator]:
    """An operator that leads, has listed everything, and talks to nobody."""
    found = an_operator(INFERENCE_SERVICE, DEPLOYMENT, POD)
    found.elector.state.renewed(found._loop.time())
    found.elector.led = True
    found._complete = True
    yield found
    found.elector.state.lost()  # there is no Lease to give back
    await found.stop()


def a_child(version: int) -> dict[str, Any]:
    return an_object("Deployment", version=version, owner="svc")


async def test_a_write_that_was_read_and_not_watched_is_still_owed_by_the_stream(operator: Operator) -> None:
    operator.expectations.expect("uid-Deployment-chat", Expectation("Deployment", *KEY, 5, since=0.0))
    operator._upkeep.seen("Deployment", a_child(5))
    assert operator.expectations.silent_kinds(61.0) == ["Deployment"]
    operator.seen("Deployment", a_child(5))
    assert operator.expectations.silent_kinds(61.0) == []


async def test_what_was_read_instead_of_watched_queues_its_service(operator: Operator) -> None:
    operator._upkeep.seen("Deployment", a_child(5))
    assert operator.queue.core.delayed == 1


async def test_a_pod_whose_deletion_was_missed_queues_its_service(operator: Operator) -> None:
    pod = a_stored_pod()
    operator.seen("Pod", pod)
    operator.queue.core._later.clear()
    uid = pod["metadata"]["uid"]
    operator._upkeep.gone("Pod", {"metadata": {"uid": uid, "namespace": "team-a", "name": "chat-0"}})
    assert operator.queue.core.take(operator._loop.time()) == KEY


async def test_the_references_of_a_service_that_is_gone_are_not_read_any_more(operator: Operator) -> None:
    operator._references._keep(KEY, _Read(1, 0.0, (), (Named("Secret", "key", "spec.pod.env"),), "svc"))
    operator.elector.state.lost()  # a replica that does not lead reconciles nothing
    operator.gone("InferenceService", an_object("InferenceService", uid="svc", version=2, spec={}))
    assert operator._references._read == {}


async def test_a_replica_that_does_not_lead_reads_no_references(operator: Operator) -> None:
    assert operator._references._leads()
    operator.elector.state.lost()
    operator.elector._announce()
    assert not operator._references._leads()


@pytest.fixture
async def late(operator: Operator) -> Operator:
    """A leader that stood still, or whose renewal takes long: it may not write, and leads on once it has renewed."""
    operator.elector.state.renewed(operator._loop.time() - RENEW_DEADLINE_SECONDS)
    assert not operator.elector.leads()
    return operator


async def test_what_is_seen_while_a_renewal_is_late_is_not_lost(late: Operator) -> None:
    late.seen("Deployment", a_child(5))
    assert late.queue.core.delayed == 1


async def test_references_are_not_forgotten_while_a_renewal_is_late(late: Operator) -> None:
    assert late._references._leads()


async def test_a_leader_that_has_listed_everything_while_a_renewal_is_late_works(late: Operator) -> None:
    late._complete = False
    late.complete()
    assert late.queue.core.take(late._loop.time()) == KEY


async def test_keys_that_a_full_queue_refused_are_queued_when_it_is_empty(operator: Operator) -> None:
    operator.queue.core.max_keys = 0
    operator.queue.add(KEY)
    operator.queue.core.max_keys = 10
    operator._count("done", 0.1)
    assert operator.queue.core.take(operator._loop.time()) == KEY


async def look(operator: Operator, unschedulable: bool) -> Snapshot:
    """Let the operator look at a service that its last status was about."""
    service = an_object("InferenceService", uid="svc", version=2, spec={}, status={"observedGeneration": 1})
    operator.seen("InferenceService", service)
    pod = a_stored_pod(version=2 if unschedulable else 1, status={"conditions": [NO_PLACE] if unschedulable else []})
    operator.seen("Pod", pod)
    entry = operator.cache.service(KEY)
    assert entry is not None
    snapshot, _ = await operator._reconciler._decide(KEY, entry, Memory("svc"))
    return snapshot


async def test_what_pods_of_others_hold_is_asked_for_when_a_pod_finds_no_place(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def listed(_: ForeignHeld) -> dict[str, dict[str, int]]:
        return {"node": {"nvidia.com/gpu": 2}}

    monkeypatch.setattr(ForeignHeld, "_list", listed)
    assert (await look(operator, unschedulable=False)).held == {}
    assert (await look(operator, unschedulable=True)).held == {"node": {"nvidia.com/gpu": 2}}


@pytest.mark.parametrize(("replaces", "waits", "lists"), [(True, False, 2), (True, True, 2), (False, False, 1)])
async def test_N18_pods_are_never_replaced_by_an_old_list(
    monkeypatch: pytest.MonkeyPatch, replaces: bool, waits: bool, lists: int
) -> None:
    """Of two revisions made at once, the second must not go by what was free for the first."""
    operator, listed = an_operator(INFERENCE_SERVICE, DEPLOYMENT, POD, NODE), []

    async def count(_: ForeignHeld) -> dict[str, dict[str, int]]:
        listed.append(1)
        return {}

    monkeypatch.setattr(ForeignHeld, "_list", count)
    await operator._reconciler._parts.foreign_held.refresh()
    manifest = a_spec().manifest("chat", "team-a")
    stored = an_object("InferenceService", uid="svc", version=2)["metadata"]
    operator.seen("InferenceService", manifest | {"metadata": stored})
    if replaces:
        operator.seen("Deployment", a_child(5))
    if waits:
        operator.seen("Pod", a_stored_pod(status={"conditions": [NO_PLACE]}))
    entry = operator.cache.service(KEY)
    assert entry is not None
    _, decision = await operator._reconciler._decide(KEY, entry, Memory("svc"))
    assert decision.create_revision is not None
    assert len(listed) == lists
    await operator.stop()


@pytest.mark.parametrize("waits", [True, False])
async def test_a_service_whose_pod_finds_no_place_is_looked_at_again(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    """Its status tells what is free, and nothing tells when others give GPUs back."""

    async def nothing(*_: object) -> dict[str, dict[str, int]]:
        return {}

    async def no_attempt(*_: object) -> Attempt:
        return Attempt()

    async def no_delay(*_: object) -> None:
        return None

    monkeypatch.setattr(ForeignHeld, "_list", nothing)
    monkeypatch.setattr(Reconciler, "_write", no_attempt)
    monkeypatch.setattr(Reconciler, "_write_status", no_delay)
    await look(operator, unschedulable=waits)
    seconds = await operator._reconciler.reconcile(KEY)
    assert seconds is not None
    assert (seconds <= WAITING_SECONDS) is waits


async def test_N18_pods_of_others_that_cannot_be_listed_are_not_taken_for_none(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(_: ForeignHeld) -> dict[str, dict[str, int]]:
        raise Forbidden("pods is forbidden")

    monkeypatch.setattr(ForeignHeld, "_list", refused)
    assert not (await look(operator, unschedulable=True)).held_is_known


async def test_N7_an_older_crd_is_in_a_gauge_and_in_what_decisions_see(operator: Operator) -> None:
    assert operator.metrics.registry.get_sample_value("stoker_crd_outdated") == 0
    assert (await look(operator, unschedulable=False)).crd_outdated is None
    operator.discovery.capabilities = Capabilities(crd_outdated=SchemaGap("spec.warmup"))
    assert operator.metrics.registry.get_sample_value("stoker_crd_outdated") == 1
    assert (await look(operator, unschedulable=False)).crd_outdated == SchemaGap("spec.warmup")


async def test_N7_an_optional_api_that_does_not_answer_is_in_a_gauge(operator: Operator) -> None:
    operator.discovery.capabilities = Capabilities(broken={"x/v1/X": "a dead webhook"})
    operator._on_capabilities()
    state = {"api": "x/v1/X", "state": "broken"}
    assert operator.metrics.registry.get_sample_value("stoker_optional_api", state) == 1


async def test_N7_services_are_looked_at_for_what_their_decisions_read_and_for_nothing_else(operator: Operator) -> None:
    operator.queue.core.take(operator._loop.time())
    operator.queue.core.done(KEY)
    operator.discovery.capabilities = Capabilities(frozenset({"x/v1/X"}))
    operator._on_capabilities()
    assert len(operator.queue.core) == 0
    operator.discovery.capabilities = Capabilities(crd_outdated=SchemaGap("spec.warmup"))
    operator._on_capabilities()
    assert operator.queue.core.take(operator._loop.time()) == KEY


async def test_a_node_that_goes_is_told_to_those_who_wait_for_a_place(operator: Operator) -> None:
    operator.seen("Node", {"metadata": {"name": "n", "uid": "n", "resourceVersion": "1"}})
    operator._nodes_changed = False
    operator.gone("Node", {"metadata": {"name": "n", "uid": "n", "resourceVersion": "2"}})
    assert operator._nodes_changed


@pytest.mark.parametrize("watched", [True, False])
async def test_N7_nodes_that_may_not_be_listed_are_no_empty_cluster(watched: bool) -> None:
    resources = (INFERENCE_SERVICE, DEPLOYMENT, POD, *([NODE] if watched else []))
    found = an_operator(*resources)
    assert (await look(found, unschedulable=False)).nodes_are_known is watched
    assert found.metrics.registry.get_sample_value("stoker_nodes_known") == watched
    await found.stop()


async def test_a_log_that_breaks_its_reader_ends_no_reader(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object, **__: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setattr(Client, "log_tail", broken)
    logs = operator._logs
    ended = {"name": "engine", "restartCount": 1, "lastState": {"terminated": {"exitCode": 1}}}
    pod = pod_view(a_stored_pod(status={"containerStatuses": [ended]}))
    logs.complete(KEY, pod)
    reading = asyncio.create_task(logs.run())
    while logs._asked:
        await asyncio.sleep(0)
        assert not reading.done()
    reading.cancel()
