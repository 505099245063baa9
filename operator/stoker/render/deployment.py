"""The Deployment of engines."""

from collections.abc import Mapping
from typing import Any

from stoker.render import timing
from stoker.render.identity import ServiceIdentity
from stoker.render.labels import selector_labels
from stoker.render.meta import child_meta
from stoker.render.names import deployment_name

# Absolute numbers: percentages of small replica counts round to deadlocks (of one replica, 25 % is none).
_STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "Surge": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    "Replace": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
    "Recreate": {"type": "Recreate"},
}


def deployment(
    service: ServiceIdentity, engine: str, template: Mapping[str, Any], replicas: int, strategy: str
) -> dict[str, Any]:
    """Return the Deployment that runs ``replicas`` pods of ``template`` and replaces old ones by ``strategy``."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": child_meta(service, engine, deployment_name(service.name)),
        "spec": {
            "replicas": replicas,
            "revisionHistoryLimit": 2,
            "progressDeadlineSeconds": startup_budget(template) + timing.ROLLOUT_MARGIN,
            "strategy": dict(_STRATEGIES[strategy]),
            "selector": {"matchLabels": selector_labels(service.name)},
            "template": template,
        },
    }


def startup_budget(template: Mapping[str, Any]) -> int:
    """Return the startup budget of a template in seconds, as its startup probe has it."""
    engine = next(container for container in template["spec"]["containers"] if container["name"] == "engine")
    probe = engine["startupProbe"]
    return int(probe["periodSeconds"]) * int(probe["failureThreshold"])
