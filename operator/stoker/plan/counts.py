"""Counts of what pods hold, by node and resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from stoker.plan.snapshot import PodView


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


def held_by(pods: Iterable[PodView]) -> dict[str, dict[str, int]]:
    """Return what pods hold in all."""
    held: dict[str, dict[str, int]] = {}
    add_pods(held, pods)
    return held


def add_pods(held: dict[str, dict[str, int]], pods: Iterable[PodView]) -> None:
    """Add what pods hold to a count."""
    for pod in pods:
        for node, name, count in holdings(pod):
            add(held, node, name, count)


def holdings(pod: PodView) -> Iterator[tuple[str, str, int]]:
    """Yield what a pod holds as (node, resource, count). One that has ended, or is on no node, holds nothing."""
    if pod.node is not None and pod.phase not in ("Succeeded", "Failed"):
        for name, count in pod.requests.items():
            yield pod.node, name, count
