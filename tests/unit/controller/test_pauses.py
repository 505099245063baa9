"""Streams that end at once are begun anew ever more rarely."""

from __future__ import annotations

import asyncio
import logging

import pytest

from stoker.controller.pauses import FIRST_SECONDS, LIVED_SECONDS, LONGEST_SECONDS, Pauses
from stoker.controller.settings import kopf_settings
from stoker.kube.expectations import SILENCE_SECONDS


class Stream:
    """A watch stream of a kind, on a clock of its own."""

    def __init__(self) -> None:
        self.now = 100.0
        self.pauses = Pauses(lambda: self.now)

    def ends(self, after_seconds: float = 0.0) -> float:
        """Let it end after a while, and return how long it rests."""
        self.now += after_seconds
        pause = self.pauses.next(self, "watcher for pods")
        self.now += pause
        return pause


def test_a_stream_that_ends_at_once_rests_twice_as_long_each_time_up_to_a_bound() -> None:
    stream = Stream()
    assert [stream.ends() for _ in range(9)] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_a_stream_that_lived_begins_with_the_shortest_pause() -> None:
    stream = Stream()
    assert [stream.ends() for _ in range(3)] == [0.5, 1.0, 2.0]
    assert stream.ends(after_seconds=LIVED_SECONDS - 1) == 4.0
    assert stream.ends(after_seconds=LIVED_SECONDS) == FIRST_SECONDS


def test_streams_that_something_cuts_every_20_s_are_good_ones() -> None:
    stream = Stream()
    assert [stream.ends(after_seconds=20.0) for _ in range(9)] == [FIRST_SECONDS] * 9


def test_streams_rest_each_for_itself() -> None:
    stream, other = Stream(), Stream()
    stream.ends()
    assert stream.pauses.next(other, "watcher for nodes") == FIRST_SECONDS


def test_a_pause_is_over_before_a_process_is_unfit_for_its_silence() -> None:
    assert LONGEST_SECONDS < SILENCE_SECONDS


def test_that_streams_end_again_and_again_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    stream = Stream()
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            stream.ends()
    (told,) = caplog.records
    assert vars(told)["stream"] == "watcher for pods"


async def test_kopf_is_told_the_pause_of_the_stream_that_asks() -> None:
    settings = kopf_settings()

    async def ends(times: int) -> list[float]:
        return [settings.watching.reconnect_backoff for _ in range(times)]

    both = [*await asyncio.gather(asyncio.create_task(ends(3)), asyncio.create_task(ends(2)))]
    assert both == [[0.5, 1.0, 2.0], [0.5, 1.0]]
    assert settings.watching.server_timeout == 600  # and whatever else it asks for
