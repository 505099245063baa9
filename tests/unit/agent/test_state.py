"""The state machine, by table and by property, on a clock that the test turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.agent.judgement import phase, readiness, startup
from stoker.agent.listener import Listener
from stoker.agent.state import Health, Models, Observation, Outcome, Page, Phase, Question, StartupAsked, Warmup, step
from tests.builders.agents import reading
from tests.unit.agent.clock import BLIND, DOWN, LIMITS, OTHER, UP, Clock, ready_clock

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


def test_an_engine_is_as_old_as_its_first_startup_probe() -> None:
    """Its image may be pulled for long after its agent has begun."""
    clock = Clock().see(StartupAsked(), after=400).see(StartupAsked(), after=3)
    assert "(3 s of 600 s)" in startup(clock.state, clock.now, LIMITS).reason


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
    st.builds(Question, st.floats(0, 1000), silent=st.booleans()),
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
