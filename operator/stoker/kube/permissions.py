"""What the operator may do, and why: the chart's roles grant this and nothing more (N17).

The flows that need a verb stand beside it. Secrets can be read one by one and never listed (N20); no rule holds a
finalizer, an escalation, or a verb on a whole group.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """Where a rule holds."""

    SERVED = "Served"
    """In the namespaces that are served: all of them, or those that the installation names."""
    CLUSTER = "Cluster"
    """On objects without a namespace."""
    OWN = "Own"
    """In the operator's own namespace."""


@dataclass(frozen=True, slots=True)
class Permission:
    """One rule. ``names`` restricts it to objects of these names."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    scope: Scope = Scope.SERVED
    names: tuple[str, ...] = ()


_CHILD = ("get", "list", "watch", "create", "patch", "delete")
_CHILD_WHY = "children: watched, created, applied and pruned; read before the ownership of fields is handed over"
LEASE_NAME = "stoker-operator"

PERMISSIONS: tuple[Permission, ...] = (
    Permission(
        "serving.stoker.dev",
        ("inferenceservices",),
        ("get", "list", "watch"),
        "the services themselves; read anew when a status was computed for an older version",
    ),
    Permission("serving.stoker.dev", ("inferenceservices/status",), ("update",), "the status"),
    Permission("apps", ("deployments",), _CHILD, _CHILD_WHY),
    Permission(
        "apps",
        ("controllerrevisions",),
        ("get", "list", "watch", "create", "delete"),
        "revisions: immutable, so that they are never patched",
    ),
    Permission("", ("services", "serviceaccounts"), _CHILD, _CHILD_WHY),
    Permission("policy", ("poddisruptionbudgets",), _CHILD, _CHILD_WHY),
    Permission("networking.k8s.io", ("networkpolicies",), _CHILD, _CHILD_WHY),
    Permission("", ("pods",), ("list", "watch"), "the state of engines; what the pods of others hold on nodes"),
    Permission("", ("pods/log",), ("get",), "the last words of an engine that died"),
    Permission(
        "",
        ("secrets", "configmaps", "persistentvolumeclaims"),
        ("get",),
        "what services name: one object at a time, in the service's own namespace",
    ),
    Permission("events.k8s.io", ("events",), ("create",), "what a user should act on"),
    Permission("leaderworkerset.x-k8s.io", ("leaderworkersets",), ("list",), "whether the optional API answers"),
    Permission("", ("nodes",), ("list", "watch"), "what nodes offer", Scope.CLUSTER),
    Permission(
        "apiextensions.k8s.io",
        ("customresourcedefinitions",),
        ("get",),
        "whether the installed schema is this version's",
        Scope.CLUSTER,
        ("inferenceservices.serving.stoker.dev",),
    ),
    Permission("coordination.k8s.io", ("leases",), ("create",), "who writes", Scope.OWN),
    Permission("coordination.k8s.io", ("leases",), ("get", "update"), "who writes", Scope.OWN, (LEASE_NAME,)),
)
