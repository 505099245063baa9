"""Booking writes: what is ours queues nothing, what is not does."""

from __future__ import annotations

import pytest

from stoker.kube.cache import Cache
from stoker.kube.expectations import Expectations
from stoker.kube.ledger import Ledger
from tests.builders.objects import an_object


class Books:
    """A ledger, and what it said."""

    def __init__(self) -> None:
        self.cache = Cache(("Deployment",))
        self.owed = Expectations()
        self.ledger = Ledger(self.cache, self.owed, lambda: 0.0)
        self.overtaken: list[str] = []
        self.ledger.on_overtaken = lambda kind, raw: self.overtaken.append(raw["metadata"]["resourceVersion"])

    def watch(self, version: int) -> bool:
        """Show a version by the watch. Returns whether it would queue the service at once."""
        raw = an_object("Deployment", version=version, owner="svc", status={"replicas": version})
        changed = self.cache.put("Deployment", raw)
        self.owed.seen(raw["metadata"]["uid"], version)
        return changed and not self.ledger.defers("Deployment", raw)

    def answer(self, version: int) -> None:
        """Receive the answer of a write."""
        self.ledger.book(
            "Deployment", an_object("Deployment", version=version, owner="svc", status={"replicas": version})
        )


@pytest.fixture
def books() -> Books:
    return Books()


def test_N2_a_write_that_the_watch_shows_after_its_answer_queues_nothing(books: Books) -> None:
    with books.ledger.writing("Deployment", "team-a", "chat"):
        books.answer(5)
    assert (books.watch(5), books.overtaken, len(books.owed)) == (False, [], 0)


def test_N2_a_write_that_the_watch_shows_before_its_answer_queues_nothing_and_owes_nothing(books: Books) -> None:
    with books.ledger.writing("Deployment", "team-a", "chat"):
        assert not books.watch(5)
        books.answer(5)
    assert (books.overtaken, len(books.owed)) == ([], 0)


@pytest.mark.parametrize("version", [4, 6], ids=["before ours", "after ours"])
def test_a_change_of_others_during_a_write_queues_the_service_when_it_has_ended(books: Books, version: int) -> None:
    with books.ledger.writing("Deployment", "team-a", "chat"):
        for shown in sorted((version, 5)):
            assert not books.watch(shown)
        books.answer(5)
        assert books.overtaken == []
    assert books.overtaken == [str(version)]


def test_what_was_shown_during_a_write_that_failed_is_not_lost(books: Books) -> None:
    with pytest.raises(ValueError, match="refused"), books.ledger.writing("Deployment", "team-a", "chat"):
        books.watch(5)
        raise ValueError("refused")
    assert books.overtaken == ["5"]


def test_a_change_while_nothing_is_written_queues_the_service_at_once(books: Books) -> None:
    assert books.watch(5)


def test_a_write_that_does_not_come_back_is_owed(books: Books) -> None:
    books.answer(5)
    assert len(books.owed) == 1
    books.watch(6)
    assert len(books.owed) == 0
