"""How long a healthy engine may stay silent."""

from __future__ import annotations

from typing import Final

from stoker.plan.types import Layout, Placement

FLOPS_PER_WEIGHT_BYTE: Final = 4
"""Two operations per parameter and token; a byte holds up to two parameters (4-bit weights)."""
ATTENTION_FACTOR: Final = 2
"""Attention to a long context costs up to as much again as the weights."""
GPU_FLOPS: Final = 20 * 10**12
"""What the slowest GPU in use keeps up on a prefill, operations a second (an A100 does ten times as many)."""
CORE_FLOPS: Final = 10 * 10**9
"""What one slow CPU core keeps up."""
LEAST_SECONDS, MOST_SECONDS, UNKNOWN_SECONDS = 60, 3600, 900


def longest_prefill_seconds(layout: Layout, step_tokens: int, base_seconds: int) -> int:
    """Return the longest time between two signs of progress of an engine that is well, in seconds.

    Progress shows once per step, so it is the time of the largest step::

        base + attention factor * 4 * weight bytes * tokens of a step / (devices * operations a second)

    ``base_seconds`` covers what an engine compiles when a shape comes up for the first time. The rates are those of
    slow devices: an engine that is slow must not be taken for a dead one. Where the weights are unknown, 900 s.
    """
    if layout.weight_bytes is None:
        return UNKNOWN_SECONDS
    work = ATTENTION_FACTOR * FLOPS_PER_WEIGHT_BYTE * layout.weight_bytes * step_tokens
    seconds = base_seconds + -(-work // _flops(layout))
    return min(max(seconds, LEAST_SECONDS), MOST_SECONDS)


def _flops(layout: Layout) -> int:
    if layout.placement == Placement.GPU:
        return max(1, layout.gpus_per_pod) * GPU_FLOPS
    return max(1, layout.cpu_request_millicores // 1000) * CORE_FLOPS
