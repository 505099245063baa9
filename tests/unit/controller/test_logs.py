"""Structured logs."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest
from kopf._cogs.clients.errors import APINotFoundError
from kopf._cogs.clients.watching import WatchingError

from stoker.controller.logs import MAX_FIELD_CHARS, JsonFormatter, set_up


def a_line(message: str, **extra: Any) -> dict[str, Any]:
    record = logging.LogRecord("stoker.x", logging.WARNING, __file__, 1, message, None, None)
    vars(record).update(extra)
    text = JsonFormatter().format(record)
    assert "\n" not in text
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_line_holds_the_key_of_its_object() -> None:
    line = a_line("a reconcile failed", namespace="team-a", service="chat")
    assert (line["level"], line["logger"], line["namespace"], line["service"]) == (
        "warning",
        "stoker.x",
        "team-a",
        "chat",
    )


def test_N20_what_users_wrote_cannot_break_a_line() -> None:
    assert a_line("x", problem='a\n{"level":"info"}')["problem"] == 'a\n{"level":"info"}'


def test_fields_are_bounded() -> None:
    assert len(a_line("x" * 100_000, problem="y" * 100_000)["problem"]) == MAX_FIELD_CHARS


def test_an_exception_is_kept_within_its_line() -> None:
    try:
        raise ValueError("bad")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, __file__, 1, "m", None, sys.exc_info())
    assert "ValueError: bad" in json.loads(JsonFormatter().format(record))["exception"]


def the_line(error: Exception, logger: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Log an error as kopf does, and return the line on stderr."""
    root = logging.getLogger()
    before = root.handlers, root.level
    try:
        set_up("debug")
        try:
            raise error
        except Exception:
            logging.getLogger(logger).exception("Watcher for pods has failed")
    finally:
        root.handlers, root.level = before
    (line,) = capsys.readouterr().err.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


@pytest.mark.parametrize("error", [APINotFoundError(None, status=404, headers={}), WatchingError("an ERROR event")])
def test_a_stream_that_the_api_server_refuses_is_told_without_a_traceback(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    line = the_line(error, "kopf._core.reactor.orchestration", capsys)
    assert (line["level"], line["message"]) == ("error", "Watcher for pods has failed")
    assert "exception" not in line


@pytest.mark.parametrize(
    ("error", "logger"),
    [(ValueError("a fault of kopf"), "kopf._core.reactor.orchestration"), (WatchingError("ours"), "stoker.watching")],
)
def test_any_other_failure_keeps_its_traceback(
    error: Exception, logger: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "Traceback" in the_line(error, logger, capsys)["exception"]
