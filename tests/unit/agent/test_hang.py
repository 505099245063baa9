"""What is evidence of a hang, and what is not, on a clock that the test turns."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.agent.judgement import EVIDENCE, hang, idle_seconds, readiness
from stoker.agent.state import Health, Models, Observation, Outcome, Page, Phase, Question, Warmup
from tests.builders.agents import reading
from tests.unit.agent.clock import DOWN, LIMITS, OTHER, UP, Clock, ready_clock


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
        "_mute_when_asked",
        "_warmup_unanswered",
    ]


# ---- questions to an idle engine ------------------------------------------------------------------------------------


def asked_in_vain(clock: Clock, seconds: float = 120.0) -> Clock:
    """The agent asks the engine, and gives up after so long; pages come all the while and show no work."""
    asked_at = clock.now
    return clock.pages(seconds=seconds, running=0).see(Question(asked_at, silent=True))


def test_an_idle_engine_that_does_not_answer_one_token_is_stuck() -> None:
    """vLLM: a core that stops while nothing runs leaves every page as it was."""
    clock = asked_in_vain(ready_clock().pages(seconds=10, running=0))
    assert clock.alive, "no page has been read since"
    clock.see(Page(reading(running=0)), after=2)
    assert (clock.alive, clock.phase, clock.ready) == (False, Phase.STUCK, False)
    assert hang(clock.state, clock.now, LIMITS) == (
        "no request ran and one of a single token has not been answered for 122 s"
    )


@pytest.mark.parametrize("counter", ["prompt_tokens", "generation_tokens", "steps"])
def test_a_question_that_waits_behind_other_requests_is_no_evidence(counter: str) -> None:
    clock = ready_clock().pages(seconds=10, running=0)
    asked_at = clock.now
    clock.pages(seconds=60, running=9).see(Page(reading(running=9, **{counter: 99.0})), after=2)
    clock.see(Question(asked_at, silent=True), after=59).see(Page(reading(running=9, **{counter: 99.0})), after=2)
    assert clock.alive


@pytest.mark.parametrize("values", [{"prompt_tokens": None, "generation_tokens": None, "steps": None}])
def test_N9_a_question_in_vain_is_no_evidence_where_the_page_tells_of_no_progress(values: dict[str, Any]) -> None:
    clock = ready_clock().pages(seconds=10, **values)
    asked_at = clock.now
    clock.pages(seconds=120, **values).see(Question(asked_at, silent=True)).pages(seconds=20, **values)
    assert clock.alive


def test_a_question_in_vain_beside_a_stale_page_is_no_evidence() -> None:
    clock = asked_in_vain(ready_clock().pages(seconds=10)).see(Page(reading()), after=2)
    assert not clock.alive
    assert clock.see(after=31).alive


@pytest.mark.parametrize(
    "sign", [Page(reading(steps=8.0)), Question(0.0, silent=False), OTHER], ids=["work", "answer", "new engine"]
)
def test_a_sign_of_life_revokes_it(sign: Observation) -> None:
    clock = asked_in_vain(ready_clock().pages(seconds=10)).see(Page(reading()), after=2)
    assert not clock.alive
    assert clock.see(sign, after=2).alive


def test_the_first_question_in_vain_counts_and_later_ones_add_to_it() -> None:
    clock = asked_in_vain(asked_in_vain(ready_clock().pages(seconds=10))).see(Page(reading()), after=2)
    assert "for 242 s" in str(hang(clock.state, clock.now, LIMITS))


def test_idle_is_a_warm_engine_without_a_sign_of_work() -> None:
    clock = ready_clock().pages(seconds=50)
    assert idle_seconds(clock.state, clock.now) == 50
    clock.see(Page(reading(steps=8.0)), after=10)
    assert idle_seconds(clock.state, clock.now) == 0
    clock.see(Question(clock.now, silent=False), after=10).see(Page(reading(steps=8.0)), after=5)
    assert idle_seconds(clock.state, clock.now) == 5


@pytest.mark.parametrize(
    "clock",
    [
        Clock().see(UP, Models(listed=True), Page(reading())),
        ready_clock(),
        ready_clock().see(Page(reading(running=1))),
        ready_clock().see(Page(reading(prompt_tokens=None, generation_tokens=None, steps=None))),
        ready_clock().see(Page(reading())).see(after=31),
    ],
    ids=["cold", "no page", "busy", "no counters", "stale page"],
)
def test_what_is_not_known_to_be_idle_is_not_asked(clock: Clock) -> None:
    assert idle_seconds(clock.state, clock.now) is None
