"""Events on a service: the same one is posted once for as long as the API server keeps it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from stoker.kube import events
from stoker.kube.client import Client
from stoker.kube.errors import AlreadyExists, Unavailable
from stoker.kube.events import KEPT_SECONDS, EventPoster
from stoker.reconcile.decision import EventIntent

SERVICE = {"metadata": {"namespace": "team-a", "name": "chat", "uid": "svc", "resourceVersion": "7"}}
MISSING = EventIntent("Warning", "SecretNotFound", "spec.model.credentialsSecret: there is no Secret hub")


class Server:
    """Takes events, or answers with an error."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.answer: Exception | None = None

    async def create(self, _resource: object, _namespace: str, body: dict[str, Any], _manager: str) -> dict[str, Any]:
        if self.answer is not None:
            raise self.answer
        self.taken.append(body)
        return body


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def poster(server: Server) -> EventPoster:
    return EventPoster(cast(Client, server), "operator-0")


async def post(poster: EventPoster, monkeypatch: pytest.MonkeyPatch, now: float) -> None:
    monkeypatch.setattr(events, "_now", lambda: now)
    await poster.post(SERVICE, (MISSING,))


async def test_an_event_is_posted_once_while_the_server_keeps_it(
    server: Server, poster: EventPoster, monkeypatch: pytest.MonkeyPatch
) -> None:
    for now in (0.0, 1.0, KEPT_SECONDS - 1):
        await post(poster, monkeypatch, now)
    assert [event["reason"] for event in server.taken] == ["SecretNotFound"]


async def test_what_comes_back_after_the_event_has_gone_is_told_again(
    server: Server, poster: EventPoster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Secret was there meanwhile: nobody would learn that it is missing again."""
    await post(poster, monkeypatch, 0.0)
    await post(poster, monkeypatch, KEPT_SECONDS + 1)
    assert len(server.taken) == 2


async def test_an_event_that_an_operator_before_has_posted_counts_as_posted(
    server: Server, poster: EventPoster, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = AlreadyExists("it is there")
    await post(poster, monkeypatch, 0.0)
    server.answer = None
    await post(poster, monkeypatch, 1.0)
    assert server.taken == []


async def test_an_event_that_was_not_taken_is_tried_again(
    server: Server, poster: EventPoster, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answer = Unavailable("later")
    await post(poster, monkeypatch, 0.0)
    server.answer = None
    await post(poster, monkeypatch, 1.0)
    assert len(server.taken) == 1


async def test_what_is_remembered_is_bounded(
    server: Server, poster: EventPoster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MAX_REMEMBERED", 2)
    monkeypatch.setattr(events, "_now", lambda: 0.0)
    for number in range(5):
        await poster.post(SERVICE, (EventIntent("Warning", "X", str(number)),))
    assert len(poster._posted) == 2


async def test_an_event_is_the_same_from_whichever_replica(server: Server) -> None:
    """Its name is its identity: made of the replica's, each new leader would post it once more."""
    for instance in ("operator-0", "operator-1"):
        await EventPoster(cast(Client, server), instance).post(SERVICE, (MISSING,))
    first, second = server.taken
    assert first["metadata"]["name"] == second["metadata"]["name"]
    assert first["reportingInstance"] != second["reportingInstance"]


async def test_an_event_keeps_to_the_bounds_of_the_api(server: Server) -> None:
    service = {"metadata": {**SERVICE["metadata"], "name": "a" * 253}}
    await EventPoster(cast(Client, server), "i" * 500).post(service, (EventIntent("Warning", "X", "n" * 5000),))
    (event,) = server.taken
    assert len(event["note"]) == 1024
    assert len(event["metadata"]["name"]) == 253
    assert len(event["reportingInstance"]) == 128
