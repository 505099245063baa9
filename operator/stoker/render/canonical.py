"""One spelling for each JSON value, and hashes of it.

Kubernetes, Python and YAML disagree on key order and on floats. Here keys are sorted, nothing is padded, and floats are
refused: a float's text may differ between writers, and a hash that differs rolls pods.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

KEY_LENGTH = 10
"""Characters of a revision's key: 40 bits, for at most a handful of revisions of one service."""

_MAY_BE_FLOAT = re.compile(
    r"(?:^|[:,\[])-?(?:[0-9]+(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)|Infinity|NaN)(?:[,}\]]|$)"
)
"""Every float of a compact JSON text, and some strings that hold such text. An image's tag is none of them."""


def canonical(value: object) -> str:
    """Return the one JSON text of ``value``, whose keys are strings. Raises ``TypeError`` for what is no JSON, and for
    floats."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_plain)
    if _MAY_BE_FLOAT.search(text):
        _refuse_floats(value)
    return text


def digest(value: object) -> str:
    """Return the SHA-256 of the canonical text, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode("utf-8", errors="surrogatepass")).hexdigest()


def short_digest(value: object) -> str:
    """Return the first ``KEY_LENGTH`` characters of the digest."""
    return digest(value)[:KEY_LENGTH]


def _plain(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no canonical JSON text")


def _refuse_floats(value: object) -> None:
    if isinstance(value, float):
        raise TypeError("a float has no canonical JSON text")
    if isinstance(value, Mapping):
        for item in value.values():
            _refuse_floats(item)
    elif isinstance(value, list | tuple):
        for item in value:
            _refuse_floats(item)
