"""One candidate against a Lease that is stored: what it counts, keeps to, and gives back."""

from __future__ import annotations

from typing import Any, cast

import pytest

from stoker.kube import lease as module
from stoker.kube.client import Client
from stoker.kube.errors import Conflict, NotFound
from stoker.kube.lease import LEASE_SECONDS, RENEW_DEADLINE_SECONDS, Elector, LeaseState, Step


class Store:
    """A Lease in an API server that takes its time, on a clock of its own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.answers_after = 100.0, 0.0
        self.stored: dict[str, Any] | None = None
        self.conflicts = False
        monkeypatch.setattr(module, "_now", lambda: self.now)

    async def get(self, *_: object) -> dict[str, Any]:
        self.now += self.answers_after
        if self.stored is None:
            raise NotFound("leases stoker not found")
        return self.stored

    async def create(self, _kind: object, _namespace: str, body: dict[str, Any], _manager: str) -> dict[str, Any]:
        return self._write(body)

    async def update(self, _kind: object, _namespace: str, body: dict[str, Any], _manager: str) -> dict[str, Any]:
        return self._write(body)

    def _write(self, body: dict[str, Any]) -> dict[str, Any]:
        self.now += self.answers_after
        if self.conflicts:
            raise Conflict("the object has been modified")
        self.stored = body
        return body


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    return Store(monkeypatch)


def a_candidate(store: Store, identity: str = "me") -> Elector:
    return Elector(cast(Client, store), "stoker-system", "stoker", identity)


async def test_a_renewal_counts_from_its_begin(store: Store) -> None:
    """Others count from what they see, which may be the moment of the write: counted from its end, two would lead."""
    elector = a_candidate(store)
    store.answers_after = 2.0
    await elector.step()
    assert store.now == 104.0
    assert elector.remaining_seconds() == LEASE_SECONDS - 4.0
    store.now = 100.0 + RENEW_DEADLINE_SECONDS
    assert not elector.leads()


async def test_a_lease_that_somebody_else_took_meanwhile_is_not_ours(store: Store) -> None:
    elector = a_candidate(store)
    await elector.step()
    assert elector.leads()
    store.conflicts = True
    await elector.step()
    assert not elector.leads()


async def test_a_lease_that_is_given_back_has_no_holder_and_the_next_candidate_leads_at_once(store: Store) -> None:
    elector, other = a_candidate(store), a_candidate(store, "other")
    await elector.step()
    await other.step()
    assert not other.leads()
    await elector.release()
    assert store.stored is not None
    assert store.stored["spec"]["holderIdentity"] == ""
    assert not elector.leads()
    await other.step()
    assert other.leads()
    assert store.stored["spec"]["leaseTransitions"] == 1


async def test_the_lease_of_another_is_not_given_back(store: Store) -> None:
    elector = a_candidate(store)
    await elector.step()
    assert store.stored is not None
    store.stored = {**store.stored, "spec": {**store.stored["spec"], "holderIdentity": "other"}}
    await elector.release()
    assert store.stored["spec"]["holderIdentity"] == "other"


@pytest.mark.parametrize(
    ("seconds", "elapsed", "step"),
    [(60, 59.0, Step.WAIT), (60, 61.0, Step.TAKE_OVER), (2, 3.0, Step.TAKE_OVER), (None, 9.0, Step.WAIT)],
)
def test_a_lease_is_waited_for_as_long_as_its_holder_asks(seconds: int | None, elapsed: float, step: Step) -> None:
    """An operator of another version may hold it for longer."""
    lease = {"spec": {"holderIdentity": "other", "renewTime": "t0", "leaseDurationSeconds": seconds}}
    state = LeaseState("me")
    state.observe(lease, 100.0)
    assert state.observe(lease, 100.0 + elapsed) is step
