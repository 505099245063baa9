"""How long what was read of the objects that a service names is believed."""

from __future__ import annotations

from typing import Any, cast

import pytest

from stoker.kube import references
from stoker.kube.client import Client
from stoker.kube.errors import NotFound
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


async def test_what_is_missing_is_read_again_when_the_service_is_looked_at_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await reads_after(RETRY_MISSING, monkeypatch, exists=False) == 2
    assert await reads_after(1.0, monkeypatch, exists=False) == 1
