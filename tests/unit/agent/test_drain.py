"""When a drain may end, on a clock that the test turns."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.agent.drain import (
    Done,
    Drain,
    DrainLimits,
    begin,
    ending,
    goes_on,
    holds,
    is_idle,
    may_be_deaf,
    refusal,
    see,
)
from stoker.agent.metrics import Reading
from stoker.agent.state import Phase, StartupAsked
from tests.builders.agents import LLAMA_CPP, VLLM, reading
from tests.unit.agent.clock import DOWN, UP, Clock, ready_clock

LIMITS = DrainLimits(settle=10, quiet=5, budget=100, hold=60)


class Draining:
    """A drain fed with one page a second."""

    def __init__(self, limits: DrainLimits = LIMITS, last: Reading | None = None) -> None:
        self.limits = limits
        self.now = 0.0
        self.drain: Drain = begin(0.0, last or reading())

    def pages(self, page: Reading, seconds: int = 1) -> Draining:
        for _ in range(seconds):
            self.now += 1.0
            self.drain = see(self.drain, page, self.now, VLLM, self.limits)
        return self

    def done(self, phase: Phase = Phase.DRAINING) -> Done | None:
        return ending(self.drain, phase, self.now, self.limits)


def test_N10_an_idle_engine_is_let_go_after_settle_and_quiet() -> None:
    draining = Draining().pages(reading(), seconds=14)
    assert draining.done() is None
    assert draining.pages(reading()).done() == Done(clean=True, reason="drained in 15.0 s")


@pytest.mark.parametrize("busy", [reading(running=1), reading(waiting=1)])
def test_N10_a_request_that_runs_or_waits_holds_it(busy: Reading) -> None:
    draining = Draining().pages(busy, seconds=80)
    assert draining.done() is None
    assert draining.pages(reading(), seconds=5).done() is None
    assert draining.pages(reading()).done() is not None


@pytest.mark.parametrize(
    "moved",
    [reading(accepted=(1.0,)), reading(prompt_tokens=11.0), reading(generation_tokens=6.0)],
)
def test_N10_being_seen_idle_once_is_not_enough(moved: Reading) -> None:
    """A kept-alive client sends requests that begin and end between two pages: only a counter tells."""
    still = reading(accepted=(0.0,))
    draining = Draining(last=still).pages(still, seconds=13).pages(moved)
    assert draining.pages(moved, seconds=5).done() is None
    assert draining.pages(moved).done() is not None


def test_quiet_does_not_begin_before_the_engine_has_left_its_endpoints() -> None:
    assert Draining(replace(LIMITS, quiet=0)).pages(reading(), seconds=9).done() is None


@pytest.mark.parametrize("unknown", [reading(running=None), reading(waiting=None), Reading()])
def test_N9_what_is_not_said_is_not_idle(unknown: Reading) -> None:
    draining = Draining().pages(unknown, seconds=99)
    assert draining.done() is None
    done = draining.pages(unknown).done()
    assert done is not None
    assert not done.clean
    assert "the drain budget of 100 s is over (running" in done.reason


DEAF = 60.0


@pytest.mark.parametrize(
    ("clock", "age", "deaf"),
    [
        (Clock().see(StartupAsked(), after=400), 59, True),
        (Clock().see(StartupAsked(), after=400), 60, False),
        (Clock().see(StartupAsked(), UP), 1, False),
        (ready_clock(), 1, False),
        (ready_clock().see(DOWN, after=400), 59, True),
        (ready_clock().see(DOWN, after=400), 60, False),
        (ready_clock().see(DOWN, after=400).see(StartupAsked(), after=300), 59, True),
        (Clock().see(StartupAsked()).see(StartupAsked(), after=3).see(StartupAsked(), after=120), 59, True),
        (Clock().see(StartupAsked()).see(StartupAsked(), after=9).see(StartupAsked(), after=9), 42, False),
    ],
    ids=[
        "imports",
        "has-imported",
        "listens",
        "serves",
        "is-made-anew",
        "stays-away",
        "imports-anew",
        "died-as-it-loaded",
        "is-slow",
    ],
)
def test_an_engine_that_has_just_started_may_lose_sigterm(clock: Clock, age: float, deaf: bool) -> None:
    assert may_be_deaf(clock.state, clock.now + age, clock.now + age, DEAF) is deaf


def test_an_engine_that_no_probe_has_seen_is_taken_to_be_as_old_as_the_hook() -> None:
    """The kubelet asks every 3 s, and no more once the pod goes; the agent may be older by the pull of an image."""
    clock = Clock()
    called_at = clock.now + 400
    assert may_be_deaf(clock.state, called_at, called_at + 59, DEAF)
    assert not may_be_deaf(clock.state, called_at, called_at + 60, DEAF)


def test_an_engine_that_loses_no_sigterm_is_never_deaf() -> None:
    assert not may_be_deaf(Clock().state, 1000, 1000, 0)


def test_no_page_at_all_is_not_idle() -> None:
    draining = Draining()
    draining.now = 99.0
    assert draining.done() is None
    draining.now = 100.0
    assert draining.done() == Done(clean=False, reason="the drain budget of 100 s is over (no metrics page was read)")


def test_pages_that_stop_do_not_complete_the_quiet() -> None:
    draining = Draining().pages(reading(), seconds=12)
    draining.now += 60
    assert draining.done() is None


def test_the_budget_ends_it_whatever_runs() -> None:
    done = Draining().pages(reading(running=3, waiting=2), seconds=100).done()
    assert done == Done(clean=False, reason="the drain budget of 100 s is over (running 3, waiting 2)")


@pytest.mark.parametrize("phase", [Phase.DEAD, Phase.STUCK, Phase.STARTING, Phase.LOADING, Phase.WARMING])
def test_an_engine_that_is_dead_stuck_or_never_ready_is_let_go_at_once(phase: Phase) -> None:
    assert refusal(phase) == Done(clean=True, reason=f"nothing to drain: the engine is {phase}")
    assert Draining().pages(reading(running=5)).done(phase) == refusal(phase)


@pytest.mark.parametrize("phase", [Phase.READY, Phase.DRAINING])
def test_an_engine_that_serves_is_not_let_go(phase: Phase) -> None:
    assert refusal(phase) is None


@pytest.mark.parametrize(
    ("over_at", "now", "held"),
    [(None, 9999.0, True), (100.0, 100.0, True), (100.0, 160.0, True), (100.0, 160.1, False)],
)
def test_N10_a_drain_keeps_the_engine_out_of_traffic_until_a_while_after_its_end(
    over_at: float | None, now: float, held: bool
) -> None:
    drain = replace(begin(0.0, None, incarnation=2), over_at=over_at)
    assert holds(drain, 2, now, LIMITS) is held
    assert not holds(drain, 3, now, LIMITS), "a new engine is not drained"


def test_without_a_drain_nothing_is_held() -> None:
    assert not holds(None, 1, 0.0, LIMITS)


def test_a_drain_that_is_over_goes_on_only_for_a_caller_that_a_dead_worker_left() -> None:
    under_way = begin(0.0, None, incarnation=2)
    over = replace(under_way, over_at=5.0)
    assert goes_on(under_way, 2, resumed=False)
    assert not goes_on(over, 2, resumed=False)
    assert goes_on(over, 2, resumed=True)
    assert not goes_on(over, 3, resumed=True)
    assert not goes_on(None, 2, resumed=True)


def test_idle_follows_the_series_that_the_engine_has() -> None:
    without_queue = LLAMA_CPP.model_copy(update={"waiting": None})
    assert is_idle(Reading(running=0), without_queue)
    assert not is_idle(Reading(running=0), LLAMA_CPP)
    assert not is_idle(Reading(waiting=0), without_queue)


@given(
    st.lists(
        st.builds(reading, running=st.sampled_from([None, 0.0, 1.0]), prompt_tokens=st.sampled_from([1.0, 2.0])),
        min_size=1,
        max_size=60,
    )
)
def test_a_clean_end_has_quiet_behind_it(pages: list[Reading]) -> None:
    draining = Draining()
    for count, page in enumerate(pages):
        done = draining.pages(page).done()
        if done is not None and done.clean:
            tail = pages[max(0, count - LIMITS.quiet.__ceil__()) : count + 1]
            assert all(each.running == 0 for each in tail)
            assert len({each.prompt_tokens for each in tail}) == 1
            return
