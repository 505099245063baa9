"""Security contexts: every pod passes Pod Security "restricted", with a read-only root."""

from typing import Any

from stoker.api.pod import Pod
from stoker.engines.interface import Invocation
from stoker.render.meta import tidy

AGENT_USER = 65532
"""The user of the operator's image."""


def pod_security(invocation: Invocation, pod: Pod) -> dict[str, Any]:
    """Return the pod's security context: ours, field by field replaced by ``spec.pod.securityContext``.

    Users and groups stand here rather than at the engine's container, so that the user's own values take effect.
    """
    ours = {
        "runAsNonRoot": True,
        "runAsUser": invocation.user_id,
        "runAsGroup": invocation.group_id,
        "fsGroup": invocation.group_id or invocation.user_id,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return {**ours, **tidy(pod.security_context or {})}


def container_security() -> dict[str, Any]:
    """Return the security context of the engine's container."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def agent_security() -> dict[str, Any]:
    """Return the security context of the agent: its user is the image's, whatever the engine runs as."""
    user = {"runAsNonRoot": True, "runAsUser": AGENT_USER, "runAsGroup": AGENT_USER}
    return {**user, **container_security(), "seccompProfile": {"type": "RuntimeDefault"}}
