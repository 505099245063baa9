"""What the API server may answer, as a small set of typed exceptions."""

from __future__ import annotations

import json
from typing import Any

MAX_MESSAGE_CHARS = 1024


class ApiError(Exception):
    """A call that did not succeed.

    ``code`` is the HTTP status (0 when there was no answer), ``reason`` the CamelCase word, ``message`` the
    sentence, cut to a bounded length, ``fields`` and ``causes`` the paths complained about and why,
    ``retry_after_seconds`` what was asked for, else None.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        reason: str = "",
        fields: tuple[str, ...] = (),
        causes: tuple[str, ...] = (),
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message[:MAX_MESSAGE_CHARS])
        self.message = message[:MAX_MESSAGE_CHARS]
        self.code = code
        self.reason = reason
        self.fields = fields
        self.causes = causes
        self.retry_after_seconds = retry_after_seconds


class NotFound(ApiError):  # noqa: N818 - the field's own names, as in the API server's reasons
    """404: the object, or the whole API, is not there."""


class AlreadyExists(ApiError):  # noqa: N818
    """409 on a create: an object of that name stands."""


class Conflict(ApiError):  # noqa: N818
    """409: the object changed since it was read, or is not the one that was meant (uid)."""


class Forbidden(ApiError):  # noqa: N818
    """403: RBAC, an exceeded quota, or an admission rule."""


class Unauthorized(ApiError):  # noqa: N818
    """401: the credentials are not accepted."""


class Invalid(ApiError):  # noqa: N818
    """400 or 422: what was sent is not acceptable, and sending it again changes nothing."""


class Expired(ApiError):  # noqa: N818
    """410: a page token or a resource version is too old; begin anew."""


class Unavailable(ApiError):  # noqa: N818
    """No answer, 429 or 5xx: later may be better."""


class TooLarge(ApiError):  # noqa: N818
    """The answer is larger than what this call accepts."""


class NotLeader(ApiError):  # noqa: N818
    """A write that was held back: this process does not hold the Lease, or can no longer be sure that it does."""


_BY_CODE: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    413: Invalid,
    415: Invalid,
    422: Invalid,
}


def error_from_response(code: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """Return the exception for an answer with a status of 400 or more.

    ``body`` is normally a ``Status`` object; whatever else came is quoted. Source: the Kubernetes API conventions,
    "Response Status Kind".
    """
    status = _status(body)
    reason = str(status.get("reason") or "")
    message = str(status.get("message") or "") or body[:MAX_MESSAGE_CHARS].decode("utf-8", "replace") or f"HTTP {code}"
    kind: type[ApiError] = _BY_CODE.get(code, Unavailable)
    if kind is Conflict and reason == "AlreadyExists":
        kind = AlreadyExists
    details = status.get("details")
    details = details if isinstance(details, dict) else {}
    return kind(
        message,
        code=code,
        reason=reason,
        fields=_of_causes(details, "field"),
        causes=_of_causes(details, "reason"),
        retry_after_seconds=_seconds(retry_after or details.get("retryAfterSeconds")),
    )


def _status(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) and parsed.get("kind") == "Status" else {}


def _of_causes(details: dict[str, Any], key: str) -> tuple[str, ...]:
    causes = details.get("causes")
    found = [cause.get(key) for cause in causes if isinstance(cause, dict)] if isinstance(causes, list) else []
    return tuple(value for value in found if isinstance(value, str))


def _seconds(value: object) -> float | None:
    try:
        return min(max(float(str(value)), 0.0), 300.0) if value is not None else None
    except ValueError:
        return None
