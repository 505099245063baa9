"""What the API server answers becomes one of few exceptions, with its own sentence."""

import json

import pytest

from stoker.kube import errors


def a_status(message: str, reason: str = "", **more: object) -> bytes:
    return json.dumps({"kind": "Status", "message": message, "reason": reason, **more}).encode()


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.Invalid),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Expired),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.Unavailable),
        (500, "InternalError", errors.Unavailable),
        (503, "ServiceUnavailable", errors.Unavailable),
    ],
)
def test_each_code_has_its_exception(code: int, reason: str, kind: type[errors.ApiError]) -> None:
    found = errors.error_from_response(code, a_status("no", reason))
    assert (type(found), found.message, found.code, found.reason) == (kind, "no", code, reason)


def test_an_answer_that_is_no_status_is_quoted_and_bounded() -> None:
    assert errors.error_from_response(502, b"<html>bad gateway").message == "<html>bad gateway"
    assert len(errors.error_from_response(502, b"x" * 100_000).message) == errors.MAX_MESSAGE_CHARS
    assert errors.error_from_response(502, b"").message == "HTTP 502"


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        ("7", None, 7.0),
        (None, {"retryAfterSeconds": 3}, 3.0),
        ("soon", None, None),
        ("1e9", None, 300.0),
        (None, [], None),
    ],
)
def test_the_wish_to_be_asked_later_is_read_and_bounded(
    header: str | None, details: object, seconds: float | None
) -> None:
    body = a_status("later", "TooManyRequests", details=details)
    assert errors.error_from_response(429, body, header).retry_after_seconds == seconds
