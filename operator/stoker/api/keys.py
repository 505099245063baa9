"""Keys of labels and annotations: no pattern of a schema reaches the keys of a map, a rule does."""

import re
from collections.abc import Iterable

from stoker.api.cel import raw
from stoker.api.types import MAX_KEY_PREFIX


def are_keys(keys: Iterable[str] | None, pattern: str) -> bool:
    """Return whether all ``keys`` match ``pattern`` and have a prefix that is short enough."""
    return all(re.fullmatch(pattern, key) and key.find("/") <= MAX_KEY_PREFIX for key in keys or ())


def is_key(variable: str, pattern: str) -> str:
    """Return the same of one key as CEL."""
    return f"{variable}.matches({raw(pattern)}) && {variable}.indexOf('/') <= {MAX_KEY_PREFIX}"
