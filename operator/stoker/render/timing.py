"""Times of a pod's life: probes and the end. All in seconds."""

from typing import Any

from stoker.plan.types import Layout

SETTLE = 10
"""How long endpoints and routers may take to let go of a pod that is going."""
STOP_MARGIN = 30
"""What the engine gets between the end of the drain and SIGKILL."""
PROBE_GRACE = 20
"""Grace period after a failed startup or liveness probe: a dead engine has nothing to finish."""
ROLLOUT_MARGIN = 30 * 60
"""Added to the startup budget for pulling images and for waiting for a node."""
SECONDS_PER_TOKEN = 0.05
"""The slowest decoding that is waited for: 20 tokens a second."""
LEAST_ANSWER, MOST_ANSWER, UNKNOWN_ANSWER = 60, 540, 300
"""Bounds of the longest answer; 540 keeps the whole grace period within the ten minutes that node drains allow."""

STARTUP_PERIOD = 3


def drain_budget(layout: Layout) -> int:
    """Return how long a drain may take: settling, and one answer of ``maxLength`` tokens at 20 tokens a second."""
    if layout.max_length is None:
        return SETTLE + UNKNOWN_ANSWER
    answer = int(layout.max_length * SECONDS_PER_TOKEN)
    return SETTLE + min(max(answer, LEAST_ANSWER), MOST_ANSWER)


def grace_period(layout: Layout) -> int:
    """Return the pod's grace period: the drain, and the engine's own stop after it."""
    return drain_budget(layout) + STOP_MARGIN


def startup_probe(port: int, budget: int) -> dict[str, Any]:
    """Return the engine's startup probe: it gives up after the startup budget."""
    probe = {"periodSeconds": STARTUP_PERIOD, "timeoutSeconds": 3, "failureThreshold": -(-budget // STARTUP_PERIOD)}
    return {**_get(port, "/startup"), **probe, "terminationGracePeriodSeconds": PROBE_GRACE}


def readiness_probe(port: int) -> dict[str, Any]:
    """Return the engine's readiness probe: the agent's "no" counts after 6 s, its silence after 15 s.

    A silent agent costs each of three tries its full timeout of 5 s, since kubelet probes one after the other; an
    answer costs the period of 2 s.
    """
    return {**_get(port, "/readiness"), "periodSeconds": 2, "timeoutSeconds": 5, "failureThreshold": 3}


def liveness_probe(port: int) -> dict[str, Any]:
    """Return the engine's liveness probe: it bears 90 s of the agent's silence, refused connections included."""
    probe = {"periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 9}
    return {**_get(port, "/liveness"), **probe, "terminationGracePeriodSeconds": PROBE_GRACE}


def agent_startup_probe(port: int) -> dict[str, Any]:
    """Return the agent's own startup probe: the engine starts once it has succeeded, so it is quick."""
    return {**_get(port, "/agent/started"), "periodSeconds": 1, "timeoutSeconds": 2, "failureThreshold": 60}


def agent_liveness_probe(port: int) -> dict[str, Any]:
    """Return the agent's own liveness probe; it does not depend on the engine."""
    probe = {"periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6}
    return {**_get(port, "/agent/live"), **probe, "terminationGracePeriodSeconds": 5}


def pre_stop(port: int, token: str) -> dict[str, Any]:
    """Return the hook that holds the engine until the agent has drained it."""
    return {"preStop": _get(port, f"/drain?token={token}")}


def _get(port: int, path: str) -> dict[str, Any]:
    # The number, not a name: kubelet looks names up among the ports of the container that has the probe.
    return {"httpGet": {"path": path, "port": port}}
