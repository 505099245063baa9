"""The election, with a clock that the test moves."""

from typing import Any

import pytest

from stoker.kube.errors import NotLeader
from stoker.kube.lease import LEASE_SECONDS, RENEW_DEADLINE_SECONDS, LeaseState, Step


def a_lease(holder: str, renewed: str = "t0", seconds: int = LEASE_SECONDS) -> dict[str, Any]:
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": seconds}}


def test_no_lease_is_created() -> None:
    assert LeaseState("me").observe(None, 0.0) is Step.CREATE


def test_our_own_lease_is_renewed() -> None:
    assert LeaseState("me").observe(a_lease("me"), 0.0) is Step.RENEW


def test_another_holder_is_waited_for_while_its_lease_changes() -> None:
    state = LeaseState("me")
    for second in range(0, 60, 2):
        assert state.observe(a_lease("other", f"t{second}"), float(second)) is Step.WAIT


def test_a_dead_holder_is_replaced_one_lease_after_its_last_change_was_seen() -> None:
    state = LeaseState("me")
    assert state.observe(a_lease("other"), 100.0) is Step.WAIT
    assert state.observe(a_lease("other"), 100.0 + LEASE_SECONDS) is Step.WAIT
    assert state.observe(a_lease("other"), 100.1 + LEASE_SECONDS) is Step.TAKE_OVER


def test_the_holders_clock_does_not_matter() -> None:
    state = LeaseState("me")
    assert state.observe(a_lease("other", "1970-01-01T00:00:00.000000Z"), 100.0) is Step.WAIT


def test_a_lease_that_was_given_back_is_taken_at_once() -> None:
    assert LeaseState("me").observe(a_lease(""), 0.0) is Step.TAKE_OVER


def test_a_leader_stops_writing_when_its_renewal_is_too_old() -> None:
    state = LeaseState("me")
    state.renewed(100.0)
    assert state.remaining_seconds(100.0) == LEASE_SECONDS
    assert state.leads(100.0 + RENEW_DEADLINE_SECONDS - 0.1)
    with pytest.raises(NotLeader):
        state.remaining_seconds(100.0 + RENEW_DEADLINE_SECONDS)


def test_a_write_may_not_outlast_the_lease() -> None:
    state = LeaseState("me")
    state.renewed(100.0)
    assert state.remaining_seconds(105.0) == LEASE_SECONDS - 5.0


def test_whoever_never_held_the_lease_may_not_write() -> None:
    with pytest.raises(NotLeader):
        LeaseState("me").remaining_seconds(0.0)


def test_seeing_another_holder_ends_leadership_at_once() -> None:
    state = LeaseState("me")
    state.renewed(100.0)
    state.observe(a_lease("other"), 101.0)
    assert not state.leads(101.0)
