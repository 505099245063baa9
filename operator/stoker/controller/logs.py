"""Structured logs: one JSON object a line, with the key of the object that it is about."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

MAX_FIELD_CHARS = 4096
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_QUIET = {"kopf": logging.WARNING, "kopf.objects": logging.ERROR, "aiohttp.access": logging.WARNING}


_API_OF_KOPF = "kopf._cogs.clients."
"""Where kopf keeps the errors that stand for answers of the API server; it exports none of them."""


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON: whatever users put into names cannot break a line (N20)."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage()[:MAX_FIELD_CHARS],
        }
        extra = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        line.update({name: _bounded(value) for name, value in extra.items()})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)[-MAX_FIELD_CHARS:]
        return json.dumps(line, default=str)


def _bounded(value: object) -> object:
    return value[:MAX_FIELD_CHARS] if isinstance(value, str) else value


def _without_traceback_of_refusals(record: logging.LogRecord) -> bool:
    """Leave the traceback out where kopf tells of a stream that the API server refused or broke off.

    Its message names the stream and the answer, and the process ends with a line of its own; where in kopf the answer
    arrived helps nobody. What fails in any other way keeps its traceback.
    """
    error = record.exc_info[1] if record.exc_info else None
    if record.name.startswith("kopf.") and type(error).__module__.startswith(_API_OF_KOPF):
        record.exc_info = None
    return True


def set_up(level: str) -> None:
    """Send all logs of this process to stderr, as JSON. The framework's own chatter is only shown at ``debug``."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    handler.addFilter(_without_traceback_of_refusals)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    if level != "debug":
        for name, quiet in _QUIET.items():
            logging.getLogger(name).setLevel(quiet)
