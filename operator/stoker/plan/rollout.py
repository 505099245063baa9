"""How a new revision takes over from the one before it, so that a full cluster does not deadlock (N18)."""

from __future__ import annotations

from enum import StrEnum

from stoker.api.engine import Rollout, RolloutStrategy
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.plan.capacity import room_for_pods
from stoker.plan.snapshot import Snapshot
from stoker.plan.types import Layout


class Strategy(StrEnum):
    """The ways to replace pods."""

    SURGE = "Surge"
    """A new pod starts before an old one stops: needs the room of one more replica."""
    REPLACE = "Replace"
    """One pod stops first, while the others serve."""
    RECREATE = "Recreate"
    """All pods stop first."""


def choose_strategy(spec: InferenceServiceSpec, layout: Layout, snapshot: Snapshot) -> tuple[Strategy, str]:
    """Return the way to replace, and why, in a sentence.

    A strategy that the spec names wins. ``Auto`` surges where one more replica has room now, else replaces pod by pod
    where another replica serves meanwhile, else recreates: waiting for room that only the old pod can free never ends.
    """
    named = (spec.rollout or Rollout()).strategy
    if named not in (None, RolloutStrategy.AUTO):
        return Strategy(named.value), f"spec.rollout.strategy is {named.value}"
    what = _what(layout)
    if not snapshot.nodes:
        return _without_room(spec, f"no node is known on which {what} would be free")
    if not snapshot.held_is_known:
        return _without_room(spec, f"what the pods of others hold is not known, so that {what} may not be free")
    room = room_for_pods(spec, layout, snapshot)
    if room >= layout.pods_per_replica:
        return Strategy.SURGE, f"{what} of one more replica {'are' if layout.gpus_per_pod != 1 else 'is'} free"
    return _without_room(spec, f"no node that takes the pods has {what} free")


def _without_room(spec: InferenceServiceSpec, cause: str) -> tuple[Strategy, str]:
    if spec.replicas >= 2:
        return Strategy.REPLACE, f"{cause}, and {spec.replicas - 1} of {spec.replicas} replicas serve meanwhile"
    return Strategy.RECREATE, f"{cause}, and there is no second replica to serve meanwhile"


def _what(layout: Layout) -> str:
    if not layout.gpus_per_pod:
        return "CPU and memory"
    return f"{layout.gpus_per_pod} GPU{'s' * (layout.gpus_per_pod > 1)}"
