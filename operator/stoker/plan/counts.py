"""Counts of extended resources by node."""

from __future__ import annotations

from collections.abc import Mapping


def added(one: Mapping[str, Mapping[str, int]], other: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    """Return the sum of two counts by node and resource."""
    total = {node: dict(counts) for node, counts in one.items()}
    for node, counts in other.items():
        for name, count in counts.items():
            add(total, node, name, count)
    return total


def add(held: dict[str, dict[str, int]], node: str, name: str, count: int) -> None:
    """Add to a count; what has come down to nothing is dropped."""
    of_node = held.setdefault(node, {})
    of_node[name] = of_node.get(name, 0) + count
    if not of_node[name]:
        del of_node[name]
    if not of_node:
        del held[node]
