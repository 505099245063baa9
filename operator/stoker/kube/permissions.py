"""What the operator may do, and why: the source for the roles of the chart (N17).

A test compares the rendered roles with these tables, and another one the requests of a run. What is not used is not
granted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stoker.kube.discovery import OPTIONAL
from stoker.kube.resources import (
    CHILDREN,
    CONFIG_MAP,
    CONTROLLER_REVISION,
    CUSTOM_RESOURCE_DEFINITION,
    EVENT,
    INFERENCE_SERVICE,
    LEASE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    SECRET,
    Resource,
)

LEASE_NAME = "stoker-operator"
READ = ("get", "list", "watch")
WATCH = ("list", "watch")


@dataclass(frozen=True, slots=True)
class Grant:
    """Verbs on one kind; with ``names``, on the objects of those names alone."""

    resource: Resource
    verbs: tuple[str, ...]
    why: str
    subresource: str | None = None
    names: tuple[str, ...] = ()

    @property
    def rules(self) -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
        """Yield the grant as the authorizer sees it: API group, resource, verb, names."""
        plural = self.resource.plural + (f"/{self.subresource}" if self.subresource else "")
        for verb in self.verbs:
            yield self.resource.group, plural, verb, self.names


def _children() -> Iterator[Grant]:
    for resource in CHILDREN.values():
        # The data of a revision is immutable: it is created and deleted, never changed.
        change = () if resource is CONTROLLER_REVISION else ("patch",)
        yield Grant(resource, (*READ, "create", *change, "delete"), "children of services")


NAMESPACED: tuple[Grant, ...] = (
    Grant(INFERENCE_SERVICE, READ, "what users declare; never written (N3)"),
    Grant(INFERENCE_SERVICE, ("update",), "the status", subresource="status"),
    *_children(),
    Grant(POD, WATCH, "the state of engines, and who holds the GPUs"),
    Grant(POD, ("get",), "the last words of an engine that ended", subresource="log"),
    Grant(SECRET, ("get",), "one by one, in the namespace of the service that names it; never listed (N20)"),
    Grant(CONFIG_MAP, ("get",), "variables and model.facts of services"),
    Grant(PERSISTENT_VOLUME_CLAIM, ("get",), "volumes that services name"),
    Grant(EVENT, ("create",), "what a user should act on"),
    *(Grant(resource, ("list",), "whether an optional API answers (N7)") for resource in OPTIONAL),
)
"""In the namespaces that the operator serves."""

CLUSTER: tuple[Grant, ...] = (
    Grant(NODE, WATCH, "GPUs, their labels, and what is free"),
    Grant(
        CUSTOM_RESOURCE_DEFINITION,
        ("get",),
        "whether the served schema is the operator's own",
        names=(f"{INFERENCE_SERVICE.plural}.{INFERENCE_SERVICE.group}",),
    ),
)
"""On objects outside namespaces."""

OWN_NAMESPACE: tuple[Grant, ...] = (
    Grant(LEASE, ("create",), "which replica writes; a create cannot be limited to a name"),
    Grant(LEASE, ("get", "update"), "which replica writes", names=(LEASE_NAME,)),
)
"""In the operator's own namespace."""
