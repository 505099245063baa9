"""Structured logs."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from stoker.controller.logs import MAX_FIELD_CHARS, JsonFormatter


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
