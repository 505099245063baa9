"""From the cache to the Snapshot of one service: the only input of a decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stoker.api.crd import SchemaGap
from stoker.kube.cache import Cache, service_group
from stoker.kube.views import ChildEntry, ServiceEntry
from stoker.plan.snapshot import (
    DeploymentView,
    ObjectRef,
    PodView,
    ReferenceView,
    RevisionView,
    Snapshot,
)
from stoker.render.names import child_name, service_account_name


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a Snapshot holds besides the cache: what was read for it, and what became of the last attempt."""

    now: str
    references: tuple[ReferenceView, ...] = ()
    held: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    held_is_known: bool = True
    foreign: tuple[ObjectRef, ...] = ()
    """Objects without our label that stand under derived names; no watch shows them."""
    failures: Mapping[str, str] = field(default_factory=dict)
    nodes_are_known: bool = True
    crd_outdated: SchemaGap | None = None


def assemble(cache: Cache, entry: ServiceEntry, pods: tuple[PodView, ...], around: Surroundings) -> Snapshot:
    """Return the Snapshot of a service. ``pods`` are its own, completed with their last words."""
    children = tuple(_children(cache, entry, around.foreign))
    deployment = _deployment(cache, entry)
    return Snapshot(
        service=entry.stored(),
        now=around.now,
        deployment=deployment,
        children=children,
        pods=pods,
        nodes=tuple(cache.nodes),
        nodes_are_known=around.nodes_are_known,
        held=around.held,
        held_is_known=around.held_is_known,
        references=around.references,
        revisions=tuple(_revisions(cache, entry)),
        create_failures=_create_failures(deployment),
        apply_failures=around.failures,
        crd_outdated=around.crd_outdated,
    )


def pods_of(cache: Cache, entry: ServiceEntry) -> tuple[PodView, ...]:
    """Return the pods that carry the service's label, by name."""
    found = cache.pods.of(service_group({"metadata": {"namespace": entry.namespace, "name": entry.name}}))
    return tuple(sorted(found, key=lambda pod: pod.name))


def _children(cache: Cache, entry: ServiceEntry, foreign: tuple[ObjectRef, ...]) -> Iterator[ObjectRef]:
    """Yield what the service controls, then what stands under its children's names and is not its own."""
    for kind, shelf in cache.children.items():
        mine = shelf.of(entry.uid)
        yield from (child.ref for child in mine)
        name = service_account_name(entry.name) if kind == "ServiceAccount" else child_name(entry.name)
        standing = shelf.named(entry.namespace, name)
        if standing is not None and standing.ref.controller_uid != entry.uid:
            yield seen_by(Owner(entry.uid, entry.name), standing)
    yield from foreign


@dataclass(frozen=True, slots=True)
class Owner:
    """The service that a child is wanted for."""

    uid: str
    name: str


def seen_by(owner: Owner, child: ChildEntry) -> ObjectRef:
    """Return a child that another object controls, as a service sees it.

    What an earlier service of the same name left is ours on its way out: the garbage collector deletes it.
    """
    if child.ref.controller_uid != owner.uid and child.owner == f"InferenceService/{owner.name}":
        return replace(child.ref, controller_uid=owner.uid, terminating=True)
    return child.ref


def _deployment(cache: Cache, entry: ServiceEntry) -> DeploymentView | None:
    for child in cache.children["Deployment"].of(entry.uid):
        if child.ref.name == child_name(entry.name):
            return child.deployment
    return None


def _revisions(cache: Cache, entry: ServiceEntry) -> Iterator[RevisionView]:
    for revision in cache.revisions.of(entry.uid):
        data: Mapping[str, Any] = revision.packed.unpack()
        yield RevisionView(revision.ref, revision.number, data)


def _create_failures(deployment: DeploymentView | None) -> tuple[str, ...]:
    """The Deployment repeats what kept its ReplicaSets from creating pods: they need not be watched."""
    if deployment is None:
        return ()
    failed = (c for c in deployment.conditions if c.type == "ReplicaFailure" and c.status == "True")
    return tuple(condition.message for condition in failed)
