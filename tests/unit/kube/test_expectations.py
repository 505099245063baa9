"""What the watch owes after our writes."""

from stoker.kube.expectations import Expectation, Expectations


def a_write(version: int, since: float, kind: str = "Deployment") -> Expectation:
    return Expectation(kind, "team-a", "chat", version, since)


def test_a_write_is_owed_until_the_watch_shows_it_or_a_later_version() -> None:
    for shown, open_ in ((9, 1), (10, 0), (11, 0)):
        owed = Expectations()
        owed.expect("u1", a_write(10, 0.0))
        owed.seen("u1", shown)
        assert len(owed) == open_


def test_a_second_write_does_not_make_the_first_one_younger() -> None:
    owed = Expectations()
    owed.expect("u1", a_write(10, 0.0))
    owed.expect("u1", a_write(11, 50.0))
    owed.seen("u1", 10)
    assert [uid for uid, _ in owed.overdue(6.0)] == ["u1"]


def test_after_five_seconds_a_write_is_overdue() -> None:
    owed = Expectations()
    owed.expect("u1", a_write(10, 0.0))
    assert (owed.overdue(5.0), len(owed.overdue(5.1))) == ([], 1)


def test_a_stream_that_owes_for_a_minute_is_silent() -> None:
    owed = Expectations()
    owed.expect("u1", a_write(10, 0.0))
    owed.expect("u2", a_write(10, 50.0, "Service"))
    assert owed.silent_kinds(60.0) == []
    assert owed.silent_kinds(61.0) == ["Deployment"]


def test_a_deleted_object_owes_nothing() -> None:
    owed = Expectations()
    owed.expect("u1", a_write(10, 0.0))
    owed.forget("u1")
    assert len(owed) == 0
