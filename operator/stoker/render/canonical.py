"""One spelling for each JSON value, and hashes of it.

Kubernetes, Python and YAML disagree on key order and on floats. Here keys are sorted, nothing is padded, and floats are
refused: a float's text may differ between writers, and a hash that differs rolls pods.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

KEY_LENGTH = 10
"""Characters of a revision's key: 40 bits, for at most a handful of revisions of one service."""


def canonical(value: object) -> str:
    """Return the one JSON text of ``value``. Raises ``TypeError`` for what is no JSON, and for floats."""
    return json.dumps(_checked(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(value: object) -> str:
    """Return the SHA-256 of the canonical text, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode("utf-8", errors="surrogatepass")).hexdigest()


def short_digest(value: object) -> str:
    """Return the first ``KEY_LENGTH`` characters of the digest."""
    return digest(value)[:KEY_LENGTH]


def _checked(value: object) -> Any:  # noqa: ANN401 - any JSON
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {_key(key): _checked(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_checked(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no canonical JSON text")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key of type {type(key).__name__} has no canonical JSON text")
    return key
