"""When a status is worth a write, and when it may wait: pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

CALM_SECONDS = 4.0
"""Counts and reasons that move during a start are gathered for this long; what somebody may wait for is not."""

MOVING_SECONDS = 60.0
"""How often texts and figures that move without a change of state are written."""

_MOVING = frozenset({"message", "lastTransitionTime"})


def status_delay(stored: Mapping[str, Any], wanted: Mapping[str, Any], since_last_write_seconds: float) -> float | None:
    """Return in how many seconds a status shall be written: 0 for now, None for never since nothing differs."""
    if wanted == stored:
        return None
    if _urgent(stored) != _urgent(wanted):
        return 0.0
    rest = MOVING_SECONDS if _steady(stored) == _steady(wanted) else CALM_SECONDS
    return max(0.0, rest - since_last_write_seconds)


def _urgent(status: Mapping[str, Any]) -> tuple[object, ...]:
    """Return what somebody may wait for: the generation, whether it is Ready, and why it is Stalled."""
    conditions = {condition.get("type"): condition for condition in status.get("conditions") or ()}
    ready, stalled = conditions.get("Ready", {}), conditions.get("Stalled", {})
    return status.get("observedGeneration"), ready.get("status"), stalled.get("status"), stalled.get("reason")


def _steady(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a value without what moves."""
    if isinstance(value, Mapping):
        return {key: _steady(inner) for key, inner in value.items() if key not in _MOVING}
    if isinstance(value, list | tuple):
        return [_steady(inner) for inner in value]
    return value
