"""What was observed in the cluster, as frozen projections: the input of every decision.

``kube`` builds these from API objects; everything from here to the manifests is pure. Fields hold only what a decision
reads, so that ten thousand pods cost little memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stoker.api.crd import SchemaGap


@dataclass(frozen=True, slots=True)
class ObjectRef:
    """Identity of a stored object, and the version that was seen."""

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    controller_uid: str | None
    """The uid of its controlling owner; None for an object that nobody controls."""
    applied_hash: str | None
    """The hash of what was rendered when it was last applied; None on foreign objects."""
    generation: int
    intact: bool
    """Every field that the operator applied is still there and still its own."""
    terminating: bool


@dataclass(frozen=True, slots=True)
class ConditionView:
    """One entry of ``status.conditions`` of any object."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class DeploymentView:
    """A Deployment of ours and its counts."""

    ref: ObjectRef
    observed_generation: int
    spec_replicas: int
    replicas: int
    updated_replicas: int
    ready_replicas: int
    available_replicas: int
    revision: str | None
    """The revision label of its pod template."""
    conditions: tuple[ConditionView, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerView:
    """The state of a container, init containers and native sidecars among them."""

    name: str
    ready: bool
    started: bool
    restart_count: int
    waiting_reason: str | None = None
    waiting_message: str | None = None
    exit_code: int | None = None
    terminated_reason: str | None = None
    last_words: str | None = None
    """The termination message or log tail of the latest end, bounded."""


@dataclass(frozen=True, slots=True)
class PodView:
    """A pod of one service."""

    namespace: str
    name: str
    uid: str
    revision: str | None
    node: str | None
    phase: str
    reason: str | None
    message: str | None
    ready: bool
    scheduled: bool
    unschedulable_message: str | None
    terminating: bool
    requests: Mapping[str, int]
    """What the pod holds or asks for: extended resources by name, ``cpu`` in millicores, ``memory`` in bytes."""
    containers: tuple[ContainerView, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeView:
    """What a node offers. ``labels`` holds those that a decision may read: of GPUs, and whatever selectors may name."""

    name: str
    ready: bool
    schedulable: bool
    labels: Mapping[str, str]
    allocatable: Mapping[str, int]
    """Extended resources by name, plus ``cpu`` in millicores and ``memory`` in bytes."""
    taints: tuple[tuple[str, str, str], ...] = ()
    """(key, value, effect)."""


@dataclass(frozen=True, slots=True)
class ReferenceView:
    """A Secret, ConfigMap, claim or ServiceAccount that the service names."""

    kind: str
    name: str
    field_path: str
    exists: bool | None
    """None where it could not be read; ``problem`` says why."""
    digest: str | None = None
    """A salted digest of its content, where a change of content makes a new revision."""
    data: Mapping[str, str] | None = None
    """Content of a ConfigMap that planning reads (``model.facts``); never of a Secret."""
    problem: str | None = None
    optional: bool = False
    """The pods start without it (``optional: true`` of the reference); its absence is no fault."""

    @property
    def rolls(self) -> bool:
        """Whether a change of its content makes a new revision (N19): variables are read when a pod starts."""
        return self.field_path.startswith("spec.pod.env")


@dataclass(frozen=True, slots=True)
class RevisionView:
    """A stored ControllerRevision of one service, data included (it is immutable)."""

    ref: ObjectRef
    number: int
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that one decision may look at. ``service`` is the stored object as the API server returned it."""

    service: Mapping[str, Any]
    now: str
    """RFC 3339, UTC: the only clock that a decision sees."""
    deployment: DeploymentView | None = None
    children: tuple[ObjectRef, ...] = ()
    """Every object that the service controls, and foreign objects that stand under a derived name."""
    pods: tuple[PodView, ...] = ()
    nodes: tuple[NodeView, ...] = ()
    nodes_are_known: bool = True
    """Whether the operator may list nodes; where it may not, ``nodes`` is empty and says nothing."""
    held: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """What all pods known to the operator hold on each node: node -> resource -> count, with ``cpu`` in millicores and
    ``memory`` in bytes."""
    held_is_known: bool = True
    """Whether ``held`` counts the pods of others; where they may not be listed, nobody knows what is free."""
    references: tuple[ReferenceView, ...] = ()
    revisions: tuple[RevisionView, ...] = ()
    create_failures: tuple[str, ...] = ()
    """Messages of ReplicaSets that could not create pods (an exceeded quota, a refused admission)."""
    apply_failures: Mapping[str, str] = field(default_factory=dict)
    """What the API server answered to the last attempt, by ``Kind/name``; empty when all went well."""
    crd_outdated: SchemaGap | None = None
    """What the served CustomResourceDefinition lacks; None when it has all."""
