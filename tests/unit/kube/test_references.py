"""How long what was read of the objects that a service names is believed."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from stoker.kube import references
from stoker.kube.cache import ServiceKey
from stoker.kube.client import Client
from stoker.kube.errors import NotFound
from stoker.kube.naming import Named
from stoker.kube.references import FRESH_SECONDS, ReferenceReader
from stoker.reconcile.findings import RETRY_MISSING

KEY = ("team-a", "chat")
SERVICE = {
    "metadata": {"uid": "svc", "generation": 1},
    "spec": {"model": {"source": "hf://a/b", "credentialsSecret": "token"}},
}


class Secrets:
    """The reads of a client: a Secret that is there, or not yet; counts them."""

    def __init__(self, exists: bool) -> None:
        self.exists = exists
        self.reads = 0

    async def get_metadata(self, *_: object) -> dict[str, Any]:
        self.reads += 1
        if not self.exists:
            raise NotFound("secrets token not found")
        return {"metadata": {"resourceVersion": "1"}}


async def reads_after(seconds: float, monkeypatch: pytest.MonkeyPatch, *, exists: bool) -> int:
    """Return how often a Secret is read by two reconciles that lie so far apart."""
    secrets = Secrets(exists)
    reader = ReferenceReader(cast(Client, secrets), lambda key: None)
    for now in (0.0, seconds):
        monkeypatch.setattr(references, "_now", lambda now=now: now)
        await reader.of(KEY, SERVICE)
    return secrets.reads


async def test_what_is_there_is_read_once_for_several_reconciles(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await reads_after(FRESH_SECONDS - 1, monkeypatch, exists=True) == 1
    assert await reads_after(FRESH_SECONDS + 1, monkeypatch, exists=True) == 2


async def test_N19_a_successor_of_the_same_name_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read for its predecessor is of another spec, and its digests are salted with another uid."""
    monkeypatch.setattr(references, "_now", lambda: 0.0)
    reader = ReferenceReader(cast(Client, Secrets(exists=True)), lambda key: None)
    await reader.of(KEY, SERVICE)
    model = {"source": "hf://a/b", "credentialsSecret": "other"}
    (view,) = await reader.of(KEY, {"metadata": {"uid": "new", "generation": 1}, "spec": {"model": model}})
    assert view.name == "other"


async def test_only_who_leads_reads_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(references, "_now", lambda: 0.0)
    secrets, leads = Secrets(exists=True), True
    reader = ReferenceReader(cast(Client, secrets), lambda key: None, lambda: leads)
    await reader.of(KEY, SERVICE)
    await reader._read_again(KEY)
    assert secrets.reads == 2
    leads = False
    await reader._read_again(KEY)
    assert secrets.reads == 2
    leads = True
    await reader.of(KEY, SERVICE)  # what a former leader knew is not believed
    assert secrets.reads == 3


ENV = [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "token", "key": "k"}}}]
WITH_ENV = {"metadata": {"uid": "svc", "generation": 1}, "spec": {"pod": {"env": ENV}}}


class Race:
    """A Secret whose value changes, read by a reconcile and again on its own; `told` counts the changes told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.value, self.now, self.reads = "first", 0.0, 0
        self.told: list[ServiceKey] = []
        self.meanwhile: Callable[[], Awaitable[object]] | None = None
        """What happens while the next answer is on its way."""
        self.reader = ReferenceReader(cast(Client, self), self.told.append)
        monkeypatch.setattr(references, "_now", lambda: self.now)

    async def get(self, *_: object) -> dict[str, Any]:
        """Answer as the API server does."""
        self.reads += 1
        data = {"k": base64.b64encode(self.value.encode()).decode()}
        answer = {"kind": "Secret", "metadata": {"resourceVersion": self.value}, "data": data}
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return answer

    async def reconcile(self) -> str | None:
        """The digest that a reconcile gets."""
        (view,) = await self.reader.of(KEY, WITH_ENV)
        return view.digest

    async def late_reconcile(self) -> str | None:
        """The same once what was read is no longer fresh."""
        self.now += FRESH_SECONDS + 1
        return await self.reconcile()

    async def read_again(self, meanwhile: Callable[[], Awaitable[object]] | None = None) -> None:
        """Read without a reason, as happens from time to time."""
        self.meanwhile = meanwhile
        await self.reader._read_again(KEY)


async def test_N19_a_changed_secret_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    race = Race(monkeypatch)
    first = await race.reconcile()
    race.value = "second"
    await race.read_again()
    await race.read_again()
    assert (race.told, await race.reconcile() != first) == ([KEY], True)


async def test_N19_a_late_answer_does_not_undo_what_was_read_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next reconcile would roll the pods back to the old value, and a later one forth again."""
    race = Race(monkeypatch)
    first = await race.reconcile()

    async def change() -> None:
        race.value = "second"
        await race.late_reconcile()

    await race.read_again(change)
    assert (await race.reconcile() != first, race.told) == (True, [])


async def test_N19_a_change_that_a_reconcile_has_read_meanwhile_is_not_told_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    race = Race(monkeypatch)
    await race.reconcile()
    race.value = "second"
    await race.read_again(race.late_reconcile)
    assert race.told == []


async def test_the_secrets_of_a_service_that_went_meanwhile_are_read_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    race = Race(monkeypatch)
    await race.reconcile()

    async def end() -> None:
        race.reader.forget(KEY)

    await race.read_again(end)
    await race.read_again()
    assert (race.reads, race.told) == (2, [])


async def test_what_is_missing_is_read_again_when_the_service_is_looked_at_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await reads_after(RETRY_MISSING, monkeypatch, exists=False) == 2
    assert await reads_after(1.0, monkeypatch, exists=False) == 1


async def test_N20_of_a_secret_nothing_is_kept_but_a_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    race = Race(monkeypatch)
    race.value = "topsecretvalue"
    (view,) = await race.reader.of(KEY, WITH_ENV)
    assert view.digest
    assert view.data is None
    kept = repr((race.reader._read, view))
    assert "topsecretvalue" not in kept
    assert base64.b64encode(b"topsecretvalue").decode() not in kept


async def test_N20_the_same_secret_has_another_digest_for_another_service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads two revisions shall not learn that two services share a password."""
    race = Race(monkeypatch)
    digests = set()
    for uid in ("svc", "other"):
        service = {**WITH_ENV, "metadata": {"uid": uid, "generation": 1}}
        (view,) = await race.reader.of((KEY[0], uid), service)
        digests.add(view.digest)
    assert len(digests) == 2


async def test_N20_the_content_of_a_secret_is_no_facts_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever asks for what is in an object: of a Secret it is not handed on."""
    named = Named("Secret", "token", "spec.model.facts.configMapName", keys=("k",), reads=True)
    view = await Race(monkeypatch).reader._view(named, KEY[0], "svc")
    assert (bool(view.digest), view.data) == (True, None)
