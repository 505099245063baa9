"""The work queue: client-go's semantics, with a clock that the test moves."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.kube.queue import BACKOFF_MAX_SECONDS, Key, QueueCore, WorkQueue


def a_queue(max_keys: int = 1000) -> QueueCore:
    return QueueCore(jitter=lambda: 0.0, max_keys=max_keys)


def test_a_key_added_twice_is_taken_once() -> None:
    queue = a_queue()
    queue.add("a", 0.0)
    queue.add("a", 1.0)
    assert [queue.take(2.0), queue.take(2.0)] == ["a", None]


def test_keys_are_taken_in_the_order_in_which_they_were_added() -> None:
    queue = a_queue()
    for key in "cab":
        queue.add(key, 0.0)
    assert [queue.take(0.0) for _ in range(3)] == ["c", "a", "b"]


def test_a_key_added_while_it_is_worked_on_is_not_given_to_a_second_worker() -> None:
    queue = a_queue()
    queue.add("a", 0.0)
    assert queue.take(0.0) == "a"
    queue.add("a", 1.0)
    assert queue.take(1.0) is None
    queue.done("a")
    assert queue.take(2.0) == "a"


def test_a_key_that_was_not_touched_while_it_was_worked_on_does_not_come_back() -> None:
    queue = a_queue()
    queue.add("a", 0.0)
    queue.take(0.0)
    queue.done("a")
    assert queue.take(1000.0) is None


def test_a_delayed_key_is_due_at_its_time_and_not_before() -> None:
    queue = a_queue()
    queue.add_after("a", 5.0, 10.0)
    assert (queue.take(14.9), queue.next_due_seconds(14.0)) == (None, 1.0)
    assert queue.take(15.0) == "a"


def test_of_two_delays_the_earlier_counts() -> None:
    queue = a_queue()
    queue.add_after("a", 50.0, 0.0)
    queue.add_after("a", 5.0, 0.0)
    queue.add_after("a", 20.0, 0.0)
    assert queue.take(5.0) == "a"
    queue.done("a")
    assert queue.take(100.0) is None


def test_an_add_cancels_the_delay_that_the_key_waits_for() -> None:
    queue = a_queue()
    queue.add_after("a", 5.0, 0.0)
    queue.add("a", 1.0)
    assert queue.take(1.0) == "a"
    queue.done("a")
    assert queue.take(10.0) is None


def test_failures_in_a_row_double_the_delay_up_to_a_bound() -> None:
    queue = a_queue()
    delays = [queue.fail("a", 0.0) for _ in range(14)]
    assert delays[:5] == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert delays[-1] == BACKOFF_MAX_SECONDS


def test_jitter_spreads_the_delays_within_a_fifth() -> None:
    assert QueueCore(jitter=lambda: 1.0).fail("a", 0.0) == pytest.approx(0.6)


def test_a_server_that_asks_for_time_gets_it_and_a_longer_back_off_stays() -> None:
    queue = a_queue()
    assert queue.fail("a", 0.0, at_least_seconds=30.0) == 30.0
    assert [queue.fail("a", 0.0, at_least_seconds=1.5) for _ in range(3)] == [1.5, 2.0, 4.0]
    assert queue.fail("b", 0.0, at_least_seconds=9e9) == BACKOFF_MAX_SECONDS


def test_a_success_ends_the_back_off() -> None:
    queue = a_queue()
    for _ in range(5):
        queue.fail("a", 0.0)
    queue.forget("a")
    assert queue.fail("a", 0.0) == 0.5


def test_n21_a_failing_key_delays_no_other() -> None:
    queue = a_queue()
    for key in ("bad", "good"):
        queue.add(key, 0.0)
    assert queue.take(0.0) == "bad"
    queue.fail("bad", 0.0)
    queue.done("bad")
    assert queue.take(0.0) == "good"


def test_n21_the_queue_is_bounded_and_says_when_it_refused_a_key() -> None:
    queue = a_queue(max_keys=2)
    for key in ("a", "b", "c"):
        queue.add(key, 0.0)
    queue.add_after("d", 1.0, 0.0)
    assert (len(queue), queue.delayed, queue.overflowed) == (2, 0, True)


def test_the_age_of_the_oldest_key_is_told() -> None:
    queue = a_queue()
    queue.add("a", 1.0)
    queue.add("b", 5.0)
    assert queue.oldest_seconds(10.0) == 9.0
    queue.take(10.0)
    assert queue.oldest_seconds(10.0) == 5.0


def test_stale_timers_do_not_pile_up() -> None:
    queue = a_queue()
    for turn in range(10_000):
        queue.add_after("a", 1800.0, float(turn))
        queue.add("a", float(turn))
        queue.take(float(turn))
        queue.done("a")
    assert queue.timers < 5000


ACTIONS = st.lists(st.tuples(st.sampled_from(["add", "later", "take", "done", "fail"]), st.integers(0, 4)), max_size=80)


@given(ACTIONS)
def test_no_key_is_lost_and_none_is_worked_on_twice(actions: list[tuple[str, int]]) -> None:
    queue, now = a_queue(), 0.0
    working: set[Key] = set()
    owed: set[Key] = set()
    for action, key in actions:
        now += 1.0
        if action == "add":
            queue.add(key, now)
            owed.add(key)
        elif action == "later":
            queue.add_after(key, 3.0, now)
            owed.add(key)
        elif action == "take":
            taken = queue.take(now)
            if taken is not None:
                assert taken not in working
                working.add(taken)
                owed.discard(taken)
        elif key in working:
            if action == "fail":
                queue.fail(key, now)
                owed.add(key)
            working.discard(key)
            queue.done(key)
    for left in working:
        queue.done(left)
    rest: set[Key] = set()
    while (taken := queue.take(now + 1000.0)) is not None:
        rest.add(taken)
        queue.done(taken)
    assert owed <= rest


async def test_a_waiting_worker_wakes_for_a_key_and_for_a_delay() -> None:
    queue = WorkQueue()
    waiting = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    queue.add_after("later", 0.05)
    queue.add("now")
    assert await asyncio.wait_for(waiting, 5.0) == "now"
    assert await asyncio.wait_for(queue.take(), 5.0) == "later"


def test_n21_keys_that_wait_for_their_time_count_towards_the_bound() -> None:
    queue = a_queue(max_keys=2)
    queue.add_after("a", 5.0, 0.0)
    queue.add("b", 0.0)
    queue.add("c", 0.0)
    assert (len(queue), queue.delayed, queue.overflowed) == (1, 1, True)
    queue.add_after("a", 1.0, 0.0)  # one that has its place is moved all the same
    assert queue.next_due_seconds(0.0) == 0.0
    assert queue.take(0.0) == "b"
    assert queue.next_due_seconds(0.0) == 1.0


def test_a_key_that_is_queued_again_when_its_work_is_done_does_not_wait_for_an_old_time_too() -> None:
    queue = a_queue()
    queue.add("a", 0.0)
    queue.take(0.0)
    queue.add_after("a", 50.0, 1.0)
    queue.add("a", 2.0)
    queue.done("a")
    assert (queue.take(3.0), queue.delayed) == ("a", 0)
    queue.done("a")
    assert queue.take(1000.0) is None
