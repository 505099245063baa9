"""What of a spec concerns pods, in one spelling: equal intent has equal inputs, so that it rolls nothing (N6)."""

import json
from collections.abc import Mapping
from typing import Any

from stoker.render.canonical import canonical

NOT_OF_PODS = frozenset(
    {"replicas", "scaling", "slo", "paused", "rollout", "routing", "access", "monitoring"},
)
"""Fields of the spec that concern no pod template; a change of them makes no revision."""

MEANT_WHEN_EMPTY = frozenset({"accelerator"})
"""Sections of the spec that say something by being there: ``accelerator: {}`` asks for any GPU."""


def pod_inputs(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``of_pods`` as it is stored: its keys in canonical order. Raises ``TypeError`` for floats."""
    ordered: dict[str, Any] = json.loads(canonical(of_pods(spec)))
    return ordered


def of_pods(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the stored spec that concerns pods, present keys only: defaults change, intent does not.

    What is empty and means what its absence means is left out: a list anywhere (Kubernetes keeps no difference), a
    section, a field of ``pod``. Other empty objects are meant: ``emptyDir: {}`` is a volume, ``labelSelector: {}``
    selects everything.
    """
    kept = {field: _without_empty_lists(value) for field, value in spec.items() if field not in NOT_OF_PODS}
    if isinstance(kept.get("pod"), dict):
        kept["pod"] = {field: value for field, value in kept["pod"].items() if value != {}}
    return {field: value for field, value in kept.items() if value != {} or field in MEANT_WHEN_EMPTY}


def _without_empty_lists(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, Mapping):
        return {key: _without_empty_lists(below) for key, below in value.items() if below != []}
    if isinstance(value, list):
        return [_without_empty_lists(below) for below in value]
    return value
