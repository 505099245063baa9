"""When a status is written."""

from __future__ import annotations

from typing import Any

import pytest

from stoker.controller.writing import CALM_SECONDS, MOVING_SECONDS, status_delay


def a_status(ready: str = "False", reason: str = "Starting", message: str = "", **more: Any) -> dict[str, Any]:
    condition = {"type": "Ready", "status": ready, "reason": reason, "message": message}
    return {"observedGeneration": 1, "replicas": 0, "conditions": [condition], **more}


def a_stalled_status() -> dict[str, Any]:
    status = a_status()
    return {**status, "conditions": [*status["conditions"], {"type": "Stalled", "status": "True", "reason": "Invalid"}]}


def test_N2_an_equal_status_is_never_written() -> None:
    assert status_delay(a_status(), a_status(), 1e9) is None


def test_the_first_status_is_written_at_once() -> None:
    assert status_delay({}, a_status(), float("inf")) == 0.0


@pytest.mark.parametrize(
    "changed",
    [a_status("True", "Available"), a_stalled_status(), {**a_status(), "observedGeneration": 2}],
    ids=["ready", "stalled", "the generation"],
)
def test_what_readers_wait_for_is_written_at_once(changed: dict[str, Any]) -> None:
    assert status_delay(a_status(), changed, 0.0) == 0.0


def test_counts_are_gathered_for_a_moment() -> None:
    assert status_delay(a_status(), a_status(replicas=1), 0.5) == CALM_SECONDS - 0.5
    assert status_delay(a_status(), a_status(replicas=1), CALM_SECONDS) == 0.0
    assert status_delay(a_status(), a_status(reason="Starting soon"), 0.5) == CALM_SECONDS - 0.5


def test_texts_that_move_are_written_once_a_minute() -> None:
    moved = a_status(message="0/5 nodes are available")
    assert status_delay(a_status(), moved, 10.0) == MOVING_SECONDS - 10.0
    assert status_delay(a_status(), moved, MOVING_SECONDS) == 0.0


def test_another_reason_of_stalled_is_written_at_once() -> None:
    """Somebody has mended one fault, and waits for what is said now."""
    stalled = a_stalled_status()
    *others, condition = stalled["conditions"]
    other = {**stalled, "conditions": [*others, {**condition, "reason": "NameConflict"}]}
    assert status_delay(stalled, other, 0.0) == 0.0
