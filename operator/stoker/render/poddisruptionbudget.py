"""The PodDisruptionBudget: node drains take one pod at a time."""

from typing import Any

from stoker.render.identity import ServiceIdentity
from stoker.render.labels import selector_labels
from stoker.render.meta import child_meta
from stoker.render.names import disruption_budget_name


def pod_disruption_budget(service: ServiceIdentity, engine: str, replicas: int) -> dict[str, Any] | None:
    """Return the budget; None at one replica or none, where it would only block the drain of a node.

    Pods that are not ready may always be evicted: they serve nobody, and waiting for them can last for ever.
    """
    if replicas <= 1:
        return None
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": child_meta(service, engine, disruption_budget_name(service.name)),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": selector_labels(service.name)},
        },
    }
