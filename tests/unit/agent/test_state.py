"""The state machine, by table and by property, on a clock that the test turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.agent.listener import Listener
from stoker.agent.state import (
    EVIDENCE,
    Health,
    Limits,
    Models,
    Observation,
    Outcome,
    Page,
    Phase,
    StartupAsked,
    State,
    Warmup,
    hang,
    liveness,
    phase,
    readiness,
    startup,
    step,
)
from tests.builders.agents import reading

LIMITS = Limits(longest_prefill=120, startup_budget=600)
UP = Listener(known=True, identity="boot/net/1")
OTHER = Listener(known=True, identity="boot/net/2")
DOWN = Listener(known=True)
BLIND = Listener(known=False)


class Clock:
    """Feeds observations at times of the test's choosing."""

    def __init__(self, state: State | None = None) -> None:
        self.now = 1000.0
        self.state = state or State(since=self.now)

    def see(self, *observations: Observation, after: float = 0.0) -> Clock:
        self.now += after
        for each in observations:
            self.state = step(self.state, each, self.now)
        return self

    def failed_tries(self, outcome: Outcome, seconds: float, every: float = 6.0) -> Clock:
        end = self.now + seconds
        while self.now < end:
            asked_at = self.now
            self.see(Health(outcome, asked_at), after=every)
        return self

    def pages(self, seconds: float, every: float = 2.0, **values: Any) -> Clock:
        end = self.now + seconds
        while self.now < end:
            self.see(Page(reading(**values)), after=every)
        return self

    @property
    def phase(self) -> Phase:
        return phase(self.state, self.now, LIMITS)

    @property
    def alive(self) -> bool:
        return liveness(self.state, self.now, LIMITS).ok

    @property
    def ready(self) -> bool:
        return readiness(self.state, self.now, LIMITS).ok


def ready_clock() -> Clock:
    return Clock().see(UP, Models(listed=True), Warmup(done=True), Health(Outcome.WELL, 1000.0))


# ---- from start to ready --------------------------------------------------------------------------------------------


def test_the_way_to_ready() -> None:
    clock = Clock()
    course = (DOWN, UP, Models(listed=False), Models(listed=True), Warmup(done=False), Warmup(done=True))
    seen = [clock.phase, *(clock.see(observation, after=1).phase for observation in course)]
    assert seen == ["Starting", "Starting", "Loading", "Loading", "Warming", "Warming", "Ready"]


@pytest.mark.parametrize(
    ("observations", "expected"),
    [
        ((), "the engine's port does not answer yet (5 s of 600 s)"),
        ((UP,), "the model is not listed yet (5 s of 600 s): no answer yet"),
        ((UP, Models(listed=False, detail="HTTP 503")), "the model is not listed yet (5 s of 600 s): HTTP 503"),
        ((UP, Models(listed=True)), "warming up: the first requests are under way"),
        ((UP, Models(listed=True), Warmup(done=False, detail="HTTP 400")), "warming up: HTTP 400"),
    ],
)
def test_not_ready_says_what_it_waits_for(observations: tuple[Observation, ...], expected: str) -> None:
    clock = Clock().see(*observations, after=5)
    verdict = readiness(clock.state, clock.now, LIMITS)
    assert (verdict.ok, verdict.reason) == (False, expected)


def test_started_needs_the_model_to_be_listed() -> None:
    clock = Clock().see(UP, Health(Outcome.WELL, 1000.0))
    assert not startup(clock.state, clock.now, LIMITS).ok
    assert startup(clock.see(Models(listed=True)).state, clock.now, LIMITS).ok


def test_draining_is_not_ready_but_alive() -> None:
    clock = ready_clock()
    assert phase(clock.state, clock.now, LIMITS, draining=True) is Phase.DRAINING
    assert readiness(clock.state, clock.now, LIMITS, draining=True).reason == "draining"
    assert clock.alive


def test_warm_up_that_comes_before_the_model_is_not_counted() -> None:
    assert Clock().see(UP, Warmup(done=True), Models(listed=True)).phase is Phase.WARMING


# ---- incarnations ---------------------------------------------------------------------------------------------------


def test_a_refused_connection_after_the_start_is_a_new_incarnation() -> None:
    clock = ready_clock().see(DOWN, after=1)
    assert (clock.state.incarnation, clock.phase, clock.ready) == (2, Phase.DEAD, False)
    assert clock.see(OTHER, after=5).phase is Phase.LOADING
    assert clock.see(Models(listed=True)).phase is Phase.WARMING
    assert clock.see(Warmup(done=True)).phase is Phase.READY
    assert clock.state.incarnation == 2


def test_another_socket_is_a_new_incarnation_even_where_no_gap_was_seen() -> None:
    clock = ready_clock().see(OTHER, after=1)
    assert (clock.state.incarnation, clock.phase) == (2, Phase.LOADING)


def test_a_second_socket_of_the_same_engine_is_no_new_incarnation() -> None:
    clock = ready_clock().see(
        Listener(known=True, identity="boot/net/1,8"), Listener(known=True, identity="boot/net/8")
    )
    assert (clock.state.incarnation, clock.phase) == (1, Phase.READY)


def test_a_crash_while_loading_is_a_new_incarnation_too() -> None:
    clock = Clock().see(UP).see(DOWN, after=1)
    assert (clock.state.incarnation, clock.phase) == (2, Phase.STARTING)


def test_the_same_socket_changes_nothing() -> None:
    clock = ready_clock()
    before = clock.state
    assert clock.see(UP, UP, after=100).state == before


def test_an_answer_to_another_incarnation_is_dropped() -> None:
    clock = ready_clock().see(OTHER, Models(listed=True))
    assert step(clock.state, Warmup(done=True), clock.now, incarnation=1) == clock.state
    assert step(clock.state, Warmup(done=True), clock.now, incarnation=2).warm


def test_once_the_kubelet_starts_the_container_anew_it_is_starting_and_no_longer_dead() -> None:
    clock = ready_clock().see(DOWN)
    assert clock.see(StartupAsked(), after=400).phase is Phase.STARTING
    assert "(0 s of 600 s)" in startup(clock.state, clock.now, LIMITS).reason
    assert clock.alive


def test_the_startup_probe_alone_changes_nothing() -> None:
    clock = ready_clock()
    before = clock.state
    assert clock.see(StartupAsked(), after=1).state == before


class TestWithoutASocketTable:
    """Where the kernel's table cannot be read, answers and refusals of the port itself decide."""

    @staticmethod
    def ready() -> Clock:
        return Clock().see(BLIND, Health(Outcome.WELL, 1000.0), Models(listed=True), Warmup(done=True))

    def test_an_answer_says_that_it_listens(self) -> None:
        assert Clock().see(BLIND, Health(Outcome.UNWELL, 1000.0)).phase is Phase.LOADING
        assert self.ready().phase is Phase.READY

    def test_a_refusal_is_a_new_incarnation(self) -> None:
        clock = self.ready().see(Health(Outcome.REFUSED, 1000.0), after=1)
        assert (clock.state.incarnation, clock.phase) == (2, Phase.DEAD)
        assert clock.see(Health(Outcome.REFUSED, 1001.0), after=1).state.incarnation == 2

    def test_another_start_time_is_a_new_incarnation(self) -> None:
        clock = self.ready().see(Page(reading(process_start=50.0)))
        assert clock.see(Page(reading(process_start=50.4))).state.incarnation == 1
        assert clock.see(Page(reading(process_start=99.0))).state.incarnation == 2
        assert clock.phase is Phase.LOADING

    def test_with_a_table_the_start_time_is_not_asked(self) -> None:
        clock = ready_clock().see(Page(reading(process_start=50.0)), Page(reading(process_start=99.0)))
        assert clock.state.incarnation == 1


# ---- evidence of a hang ---------------------------------------------------------------------------------------------


def test_requests_that_run_without_progress_for_longer_than_the_longest_prefill_are_a_hang() -> None:
    """vLLM #11996: the health path answers 200 while a worker hangs."""
    clock = ready_clock().pages(seconds=120, running=1)
    assert clock.alive
    clock.see(Page(reading(running=1)), Health(Outcome.WELL, clock.now), after=4)
    assert (clock.alive, clock.phase, clock.ready) == (False, Phase.STUCK, False)
    assert hang(clock.state, clock.now, LIMITS) == "1 requests run and no token or step was counted for 122 s"


@pytest.mark.parametrize("counter", ["prompt_tokens", "generation_tokens", "steps"])
def test_a_busy_engine_is_not_dead_whichever_counter_moves(counter: str) -> None:
    clock = ready_clock()
    for count in range(10):
        clock.pages(seconds=110, running=8, **{counter: 100.0 + count})
        assert clock.alive


def test_a_prefill_of_half_the_bound_is_not_a_hang() -> None:
    assert ready_clock().pages(seconds=60, running=1).alive


def test_an_idle_engine_is_never_stuck() -> None:
    assert ready_clock().pages(seconds=10_000, every=20, running=0).alive


def test_progress_revokes_the_evidence() -> None:
    clock = ready_clock().pages(seconds=130, running=1)
    assert clock.phase is Phase.STUCK
    assert clock.see(Page(reading(running=1, steps=8.0)), after=2).phase is Phase.READY


@pytest.mark.parametrize(
    "values",
    [
        {"running": None},
        {"running": 1, "prompt_tokens": None, "generation_tokens": None, "steps": None},
    ],
)
def test_N9_a_missing_metric_is_no_evidence(values: dict[str, Any]) -> None:
    assert ready_clock().pages(seconds=1000, every=10, **values).alive


def test_pages_far_apart_say_nothing_about_the_time_between_them() -> None:
    clock = ready_clock()
    for _ in range(20):
        clock.see(Page(reading(running=1)), after=31)
        assert clock.alive


def test_a_stale_page_is_no_evidence() -> None:
    clock = ready_clock().pages(seconds=130, running=1)
    assert not clock.alive
    assert clock.see(after=31).alive


def test_silence_of_the_metrics_page_alone_is_no_evidence() -> None:
    clock = ready_clock().see(Page(reading(running=1)))
    for _ in range(100):
        clock.see(Health(Outcome.WELL, clock.now), after=10)
    assert clock.alive


@pytest.mark.parametrize("outcome", [Outcome.SILENT, Outcome.BROKEN, Outcome.UNWELL, Outcome.REFUSED])
def test_a_health_path_that_fails_every_try_for_over_60_s_is_a_hang(outcome: Outcome) -> None:
    clock = ready_clock().failed_tries(outcome, seconds=60)
    assert clock.alive
    assert clock.see(Health(outcome, clock.now), after=6).phase is Phase.STUCK
    assert not clock.alive


def test_one_answer_of_the_health_path_takes_all_suspicion_away() -> None:
    clock = ready_clock().failed_tries(Outcome.SILENT, seconds=50).see(Health(Outcome.WELL, 0.0))
    assert clock.failed_tries(Outcome.SILENT, seconds=50).alive


def test_an_engine_whose_counters_move_is_busy_however_silent_its_health_path() -> None:
    clock = ready_clock().see(Page(reading(running=9)))
    for count in range(30):
        clock.failed_tries(Outcome.SILENT, seconds=18).see(Page(reading(running=9, steps=100.0 + count)))
        assert clock.alive


def test_moving_counters_do_not_excuse_an_engine_that_calls_itself_unwell() -> None:
    clock = ready_clock()
    for count in range(5):
        clock.failed_tries(Outcome.UNWELL, seconds=18).see(Page(reading(steps=100.0 + count)))
    assert not clock.alive


def test_few_tries_are_no_evidence_however_long_they_took() -> None:
    """A machine that was frozen makes one try look minutes long."""
    clock = ready_clock().see(Health(Outcome.SILENT, 1000.0), after=300)
    assert clock.alive


def test_an_engine_that_calls_itself_unwell_is_not_ready_at_once() -> None:
    clock = ready_clock().see(Health(Outcome.UNWELL, 1000.0, "HTTP 503"))
    verdict = readiness(clock.state, clock.now, LIMITS)
    assert (verdict.ok, verdict.reason) == (False, "the engine calls itself unwell: HTTP 503")
    assert clock.alive
    assert clock.see(Health(Outcome.WELL, clock.now)).ready


def test_a_slow_health_path_does_not_make_a_busy_engine_unready() -> None:
    assert ready_clock().failed_tries(Outcome.SILENT, seconds=30).ready


def test_unwell_while_loading_is_not_held_against_it_once_it_serves() -> None:
    clock = Clock().see(UP).failed_tries(Outcome.UNWELL, seconds=300)
    assert clock.see(Models(listed=True), Warmup(done=True)).phase is Phase.READY


def test_a_port_that_refuses_for_over_60_s_after_ready_is_a_hang() -> None:
    clock = ready_clock().see(DOWN)
    assert clock.see(DOWN, after=60).alive
    assert not clock.see(DOWN, after=1).alive
    assert clock.phase is Phase.DEAD


def test_a_port_that_refuses_while_the_engine_loads_is_no_hang() -> None:
    assert Clock().see(DOWN, after=5000).alive
    assert Clock().see(UP, Models(listed=True), DOWN).see(after=5000).alive, "it was never ready"


def test_no_evidence_counts_before_ready_but_an_unanswered_warm_up() -> None:
    clock = Clock().see(UP, Models(listed=True)).pages(seconds=500, every=10, running=1)
    assert clock.failed_tries(Outcome.SILENT, seconds=500).alive
    assert clock.see(Warmup(done=False, detail="HTTP 400")).alive, "it answered"
    assert clock.see(Warmup(done=False, unanswered=True)).phase is Phase.STUCK
    assert not clock.alive


def test_evidence_is_an_ordered_chain_of_named_reasons() -> None:
    assert [rule.__name__ for rule in EVIDENCE] == [
        "_port_refuses",
        "_health_fails",
        "_no_progress",
        "_warmup_unanswered",
    ]


# ---- properties -----------------------------------------------------------------------------------------------------

observations = st.one_of(
    st.sampled_from([UP, OTHER, DOWN, BLIND, StartupAsked()]),
    st.builds(Health, st.sampled_from(Outcome), st.floats(0, 1000)),
    st.builds(Models, st.booleans()),
    st.builds(
        Page,
        st.builds(
            reading,
            running=st.sampled_from([None, 0.0, 1.0]),
            steps=st.sampled_from([None, 1.0, 2.0]),
            process_start=st.sampled_from([None, 1.0, 100.0]),
        ),
    ),
    st.builds(Warmup, done=st.booleans(), unanswered=st.booleans()),
)
histories = st.lists(st.tuples(observations, st.floats(0, 200)), max_size=40)


def play(history: Sequence[tuple[Observation, float]]) -> list[Clock]:
    clock = Clock()
    return [replace_clock(clock.see(each, after=pause)) for each, pause in history]


def replace_clock(clock: Clock) -> Clock:
    copy = Clock(replace(clock.state))
    copy.now = clock.now
    return copy


@given(histories)
def test_incarnations_never_count_down_and_each_starts_cold(history: list[tuple[Observation, float]]) -> None:
    before = Clock()
    for after in play(history):
        assert after.state.incarnation - before.state.incarnation in {0, 1}
        if after.state.incarnation != before.state.incarnation:
            assert not after.state.warm
            assert not after.state.started
        before = after


@given(histories)
def test_ready_implies_listening_started_warm_and_alive(history: list[tuple[Observation, float]]) -> None:
    for clock in play(history):
        if clock.ready:
            assert clock.state.listening
            assert clock.state.started
            assert clock.state.warm
            assert clock.alive


@given(histories)
def test_without_requests_and_with_a_well_engine_nothing_is_held_against_it(
    history: list[tuple[Observation, float]],
) -> None:
    harmless = [
        (each, pause) for each, pause in history if isinstance(each, Models | StartupAsked) or each in {UP, BLIND}
    ]
    assert all(clock.alive for clock in play(harmless))


@given(histories, st.floats(0, 100))
def test_warm_is_kept_for_as_long_as_the_same_socket_listens(
    history: list[tuple[Observation, float]], pause: float
) -> None:
    kept = [(each, wait) for each, wait in history if each not in {OTHER, DOWN}]
    clock = ready_clock()
    for each, wait in kept:
        clock.see(each, after=wait)
    assert clock.see(UP, after=pause).state.warm
