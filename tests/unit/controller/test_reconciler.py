"""One reconcile on its edges: what was written meanwhile, what stood in the way, a namespace that goes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from kubernetes.aio.client import Configuration

from stoker.api.crd import SchemaGap
from stoker.controller.operator import Operator
from stoker.controller.options import parse_options
from stoker.controller.reconciler import FOREIGN_SECONDS, Attempt, Memory, Reconciler
from stoker.kube.apply import ChildWriter, Outcome, Result
from stoker.kube.client import Client
from stoker.kube.discovery import Capabilities
from stoker.kube.errors import Conflict, Forbidden, NotFound
from stoker.kube.held import ForeignHeld
from stoker.kube.resources import DEPLOYMENT, INFERENCE_SERVICE, POD
from stoker.kube.snapshot import Owner
from stoker.kube.views import object_ref
from stoker.plan.snapshot import ObjectRef
from tests.builders.objects import an_object
from tests.builders.specs import a_spec

KEY = ("team-a", "chat")


def stored(version: int) -> dict[str, Any]:
    """The service, as somebody has written it for the `version`th time."""
    metadata = an_object("InferenceService", uid="svc", version=version)["metadata"]
    return a_spec().manifest("chat", "team-a") | {"metadata": metadata}


@pytest.fixture
async def operator(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Operator]:
    """A leader that knows one service; its children are not written unless a test says how."""

    async def nothing(*_: object) -> dict[str, dict[str, int]]:
        return {}

    async def no_children(*_: object) -> Attempt:
        return Attempt()

    monkeypatch.setattr(ForeignHeld, "_list", nothing)
    monkeypatch.setattr(Reconciler, "_write", no_children)
    found = Operator(parse_options(["--metrics-port", "0"], {}), Configuration(), (INFERENCE_SERVICE, DEPLOYMENT, POD))
    found.complete()
    found.elector.led = True
    found.seen("InferenceService", stored(2))
    yield found
    found.elector.state.lost()
    await found.stop()


def writes(monkeypatch: pytest.MonkeyPatch, answer: Exception | None = None) -> list[Mapping[str, Any]]:
    """The bodies of the statuses that are written from now on; `answer` is what the API server raises."""
    bodies: list[Mapping[str, Any]] = []

    async def update(_client: Client, _resource: object, _namespace: str, body: Mapping[str, Any], *_: object,
                     **__: object) -> Mapping[str, Any]:  # fmt: skip
        bodies.append(body)
        if answer is not None:
            raise answer
        return stored(10)

    monkeypatch.setattr(Client, "update", update)
    return bodies


@pytest.mark.parametrize(
    ("gap", "drops"),
    [
        (None, False),
        (SchemaGap(check="a rule of spec.engine"), False),
        (SchemaGap("status.layout.origins"), True),
        (SchemaGap("status.layout.origins", "a rule of spec.engine"), True),
    ],
)
async def test_N7_a_status_is_written_without_what_is_unknown_only_where_the_crd_lacks_a_field(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, gap: SchemaGap | None, drops: bool
) -> None:
    """Elsewhere a field that the API server does not know is a fault of the operator, and is not to pass unseen."""
    asked = []

    async def update(*_: object, drop_unknown: bool = False, **__: object) -> Mapping[str, Any]:
        asked.append(drop_unknown)
        return stored(10)

    monkeypatch.setattr(Client, "update", update)
    operator.discovery.capabilities = Capabilities(crd_outdated=gap)
    await operator._reconciler.reconcile(KEY)
    assert asked == [drops]


async def test_N22_a_status_is_written_for_the_version_that_it_was_computed_for(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the newest version it would be taken, and say of a new spec what is true of the old one."""
    bodies = writes(monkeypatch)

    async def overtaken(*_: object) -> Attempt:
        operator.seen("InferenceService", stored(9))
        return Attempt()

    monkeypatch.setattr(Reconciler, "_write", overtaken)
    await operator._reconciler.reconcile(KEY)
    assert [body["metadata"]["resourceVersion"] for body in bodies] == ["2"]


async def test_a_service_that_somebody_has_written_meanwhile_is_read_anew_and_looked_at_at_once(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch may show it late: until then every try would meet the same conflict."""
    writes(monkeypatch, Conflict("the object has been modified"))

    async def get(*_: object) -> dict[str, Any]:
        return stored(9)

    monkeypatch.setattr(Client, "get", get)
    assert await operator._reconciler.reconcile(KEY) == 0.0
    entry = operator.cache.service(KEY)
    assert entry is not None
    assert entry.resource_version == "9"


def in_the_way(kind: str) -> ObjectRef:
    return object_ref(kind, an_object(kind))


async def test_N22_what_stood_in_the_way_is_forgotten_once_it_is_gone_or_ours(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {
        "Service": None,
        "NetworkPolicy": an_object("NetworkPolicy", version=4, owner="svc"),
        "ServiceAccount": an_object("ServiceAccount", version=4, owner="other"),
    }

    async def get(_client: Client, resource: Any, *_: object) -> dict[str, Any]:
        found = answers[resource.kind]
        if found is None:
            raise NotFound("not found")
        return found

    monkeypatch.setattr(Client, "get", get)
    memory = Memory("svc", foreign=tuple(in_the_way(kind) for kind in answers))
    await operator._reconciler._look_at_foreign(memory)
    assert [(ref.kind, ref.resource_version) for ref in memory.foreign] == [("ServiceAccount", "4")]


async def test_a_namespace_that_goes_is_no_failure_of_its_services(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service goes with it: a warning, and a try after the other, would be noise in the last minute of a team."""
    monkeypatch.undo()
    bodies, tried = writes(monkeypatch), []

    async def nothing(*_: object) -> dict[str, dict[str, int]]:
        return {}

    async def revision(*_: object) -> Outcome:
        return Outcome(Result.CREATED)

    async def ended(_writer: ChildWriter, manifest: Mapping[str, Any], _owner: Owner) -> Outcome:
        tried.append(manifest["kind"])
        raise Forbidden("the namespace is being terminated", code=403, causes=("NamespaceTerminating",))

    monkeypatch.setattr(ForeignHeld, "_list", nothing)
    monkeypatch.setattr(ChildWriter, "ensure_revision", revision)
    monkeypatch.setattr(ChildWriter, "ensure", ended)
    seconds = await operator._reconciler.reconcile(KEY)
    assert "Deployment" not in tried
    assert seconds is not None
    assert 0 < seconds <= FOREIGN_SECONDS
    assert "terminated" not in str(bodies)
    assert operator._reconciler._memories[KEY].failures == {}
