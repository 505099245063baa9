"""API objects as frozen views: what a decision reads, and nothing else.

Every function is pure and takes the raw object. Strings that come from outside are bounded; names and labels that
repeat are interned, so that ten thousand pods cost little memory.
"""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from stoker.api.status import MAX_COUNT
from stoker.kube.ownership import ownership_digest
from stoker.kube.quantities import quantity
from stoker.plan.snapshot import (
    ConditionView,
    ContainerView,
    DeploymentView,
    NodeView,
    ObjectRef,
    PodView,
)
from stoker.render.labels import APPLIED_HASH, REVISION, SERVICE

CHILD_MANAGER = "stoker"
STATUS_MANAGER = "stoker-status"
MAX_TEXT = 1024
MAX_LAST_WORDS = 12 * 1024
"""vLLM says why its core failed, and then 8 KiB of what followed from that."""
MAX_NODE_LABELS = 128
GPU_LABELS = "nvidia.com/gpu."
"""How the labels begin that describe GPUs: kept before all others."""
IGNORED_NODE_LABELS = ("feature.node.kubernetes.io/", "nvidia.com/gpu.deploy.", "beta.kubernetes.io/")


@dataclass(frozen=True, slots=True)
class Packed:
    """A JSON value as compressed bytes: a tenth of what the same dictionaries take."""

    data: bytes

    def unpack(self) -> Any:  # noqa: ANN401 - any JSON
        """Return the value."""
        return json.loads(zlib.decompress(self.data))


def pack(value: Any) -> Packed:  # noqa: ANN401 - any JSON
    """Compress a JSON value."""
    return Packed(zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1))


@dataclass(frozen=True, slots=True)
class ServiceEntry:
    """An InferenceService as it is kept: its identity, and the object itself without managed fields."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int
    deleting: bool
    packed: Packed

    def stored(self) -> dict[str, Any]:
        """Return the object as the API server returned it, managed fields apart."""
        value: dict[str, Any] = self.packed.unpack()
        return value

    def same_as(self, other: ServiceEntry) -> bool:
        """Return whether it is the same version."""
        return self.resource_version == other.resource_version


@dataclass(frozen=True, slots=True)
class ChildEntry:
    """A child: its identity, and who owns its fields.

    ``digest`` covers the generation and what we own; ``managed`` (managed fields) is kept until the ownership has been
    found complete, which ``ref.intact`` then says. ``deployment`` is filled in for that kind alone.
    """

    ref: ObjectRef
    digest: str
    managed: Packed | None
    deployment: DeploymentView | None = None
    owner: str | None = None
    """``Kind/name`` of the controlling owner."""

    @property
    def uid(self) -> str:
        """The object's uid."""
        return self.ref.uid

    def verified(self) -> ChildEntry:
        """Return the same child, its ownership found complete."""
        ref = replace(self.ref, intact=True)
        deployment = replace(self.deployment, ref=ref) if self.deployment else None
        return ChildEntry(ref, self.digest, None, deployment, self.owner)

    def same_as(self, other: ChildEntry) -> bool:
        """Return whether nothing that a decision reads differs; the resource version alone is no difference."""
        return self.digest == other.digest and self._content() == other._content()

    def _content(self) -> tuple[ObjectRef, DeploymentView | None]:
        ref = replace(self.ref, resource_version="", intact=False)
        return ref, replace(self.deployment, ref=ref) if self.deployment else None


@dataclass(frozen=True, slots=True)
class RevisionEntry:
    """A stored revision, its immutable data compressed."""

    ref: ObjectRef
    number: int
    packed: Packed

    @property
    def uid(self) -> str:
        """The object's uid."""
        return self.ref.uid

    def same_as(self, other: RevisionEntry) -> bool:
        """Return whether nothing that a decision reads differs."""
        mine, theirs = replace(self.ref, resource_version=""), replace(other.ref, resource_version="")
        return (mine, self.number, self.packed) == (theirs, other.number, other.packed)


def service_entry(raw: Mapping[str, Any]) -> ServiceEntry:
    """Return an InferenceService as it is kept."""
    metadata = raw["metadata"]
    slim = {key: value for key, value in metadata.items() if key != "managedFields"}
    return ServiceEntry(
        namespace=sys.intern(metadata["namespace"]),
        name=sys.intern(metadata["name"]),
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        generation=metadata.get("generation", 0),
        deleting="deletionTimestamp" in metadata,
        packed=pack({**raw, "metadata": slim}),
    )


def object_ref(kind: str, raw: Mapping[str, Any], *, intact: bool = False) -> ObjectRef:
    """Return the identity of any object."""
    metadata = raw["metadata"]
    return ObjectRef(
        kind=kind,
        namespace=sys.intern(metadata.get("namespace") or ""),
        name=sys.intern(metadata["name"]),
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        controller_uid=controller_uid(metadata),
        applied_hash=(metadata.get("annotations") or {}).get(APPLIED_HASH),
        generation=metadata.get("generation", 0),
        intact=intact,
        terminating="deletionTimestamp" in metadata,
    )


def controller(metadata: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the reference of the controlling owner."""
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller"):
            reference: Mapping[str, Any] = owner
            return reference
    return None


def controller_uid(metadata: Mapping[str, Any]) -> str | None:
    """Return the uid of the controlling owner."""
    owner = controller(metadata)
    return sys.intern(str(owner.get("uid"))) if owner else None


def child_entry(kind: str, raw: Mapping[str, Any], known: ChildEntry | None = None) -> ChildEntry:
    """Return a child as it is kept. ``known`` is what was kept of it before: a verified ownership stays verified."""
    ref = object_ref(kind, raw)
    managed = raw["metadata"].get("managedFields") or []
    digest = f"{ref.generation}/{ownership_digest(managed, CHILD_MANAGER)}"
    deployment = deployment_view(raw, ref) if kind == "Deployment" else None
    owner = controller(raw["metadata"])
    owner_name = sys.intern(f"{owner.get('kind')}/{owner.get('name')}") if owner else None
    if known is not None and known.managed is None and known.digest == digest:
        return ChildEntry(ref, digest, None, deployment, owner_name).verified()
    timeless = [{key: value for key, value in entry.items() if key != "time"} for entry in managed]
    return ChildEntry(ref, digest, pack(timeless), deployment, owner_name)


def revision_entry(raw: Mapping[str, Any]) -> RevisionEntry:
    """Return a ControllerRevision as it is kept.

    Whoever may edit it can give it any number. One that nobody counts up to says nothing of its age, and neither the
    status nor the next revision could tell a higher one: it counts as the oldest.
    """
    number = raw.get("revision")
    return RevisionEntry(
        ref=object_ref("ControllerRevision", raw, intact=True),
        number=number if isinstance(number, int) and 0 <= number < MAX_COUNT else 0,
        packed=pack(raw.get("data") or {}),
    )


def deployment_view(raw: Mapping[str, Any], ref: ObjectRef) -> DeploymentView:
    """Return a Deployment and its counts. A replica count that is absent is 1, as the API defaults it."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    return DeploymentView(
        ref=ref,
        observed_generation=status.get("observedGeneration", 0),
        spec_replicas=spec.get("replicas", 1),
        replicas=status.get("replicas", 0),
        updated_replicas=status.get("updatedReplicas", 0),
        ready_replicas=status.get("readyReplicas", 0),
        available_replicas=status.get("availableReplicas", 0),
        revision=labels.get(REVISION),
        conditions=condition_views(status),
    )


def condition_views(status: Mapping[str, Any]) -> tuple[ConditionView, ...]:
    """Return ``status.conditions``, sorted by type."""
    found = [
        ConditionView(
            type=sys.intern(str(condition.get("type", ""))),
            status=sys.intern(str(condition.get("status", ""))),
            reason=sys.intern(str(condition.get("reason", ""))),
            message=_text(condition.get("message")) or "",
        )
        for condition in status.get("conditions") or ()
    ]
    return tuple(sorted(found, key=lambda condition: condition.type))


def pod_view(raw: Mapping[str, Any]) -> PodView:
    """Return a pod of a service."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    conditions = {condition.type: condition for condition in condition_views(status)}
    scheduled, ready = conditions.get("PodScheduled"), conditions.get("Ready")
    unschedulable = scheduled is not None and scheduled.status == "False"
    return PodView(
        namespace=sys.intern(metadata["namespace"]),
        name=metadata["name"],
        uid=metadata["uid"],
        revision=(metadata.get("labels") or {}).get(REVISION),
        node=sys.intern(spec["nodeName"]) if spec.get("nodeName") else None,
        phase=sys.intern(status.get("phase", "Pending")),
        reason=_text(status.get("reason")),
        message=_text(status.get("message")),
        ready=ready is not None and ready.status == "True",
        scheduled=bool(spec.get("nodeName")),
        unschedulable_message=scheduled.message if unschedulable and scheduled else None,
        terminating="deletionTimestamp" in metadata,
        requests=resource_requests(spec),
        containers=_containers(status),
    )


def service_label(raw: Mapping[str, Any]) -> str | None:
    """Return the label by which a pod or a child names its service."""
    value = (raw["metadata"].get("labels") or {}).get(SERVICE)
    return value if isinstance(value, str) else None


def resource_requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """Return what a pod holds: extended resources (``vendor/name``), ``cpu`` in millicores and ``memory`` in bytes.

    Init containers that are not sidecars run before the others and give back what they held: the larger of the two
    counts, as the scheduler has it.
    """
    running: dict[str, int] = {}
    for container in (*(spec.get("containers") or ()), *_init_containers(spec, sidecars=True)):
        for name, count in _asked(container).items():
            running[name] = running.get(name, 0) + count
    for container in _init_containers(spec, sidecars=False):
        for name, count in _asked(container).items():
            running[name] = max(running.get(name, 0), count)
    return running


def node_view(raw: Mapping[str, Any]) -> NodeView:
    """Return what a node offers."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())
    return NodeView(
        name=sys.intern(metadata["name"]),
        ready=ready,
        schedulable=not spec.get("unschedulable", False) and "deletionTimestamp" not in metadata,
        labels=_node_labels(metadata.get("labels") or {}),
        allocatable=_allocatable(status.get("allocatable") or {}),
        taints=tuple(
            (sys.intern(t.get("key", "")), sys.intern(t.get("value", "")), sys.intern(t.get("effect", "")))
            for t in spec.get("taints") or ()
        ),
    )


def _node_labels(labels: Mapping[str, str]) -> dict[str, str]:
    names = (name for name in labels if not name.startswith(IGNORED_NODE_LABELS))
    kept = sorted(names, key=lambda name: (not name.startswith(GPU_LABELS), name))[:MAX_NODE_LABELS]
    return {sys.intern(name): sys.intern(labels[name]) for name in kept}


def _allocatable(resources: Mapping[str, Any]) -> dict[str, int]:
    found = {sys.intern(name): int(quantity(value)) for name, value in resources.items() if "/" in name}
    return {
        "cpu": int(quantity(resources.get("cpu", "0")) * 1000),
        "memory": int(quantity(resources.get("memory", "0"))),
        **found,
    }


def _init_containers(spec: Mapping[str, Any], *, sidecars: bool) -> list[Mapping[str, Any]]:
    every = spec.get("initContainers") or ()
    return [container for container in every if (container.get("restartPolicy") == "Always") is sidecars]


def _asked(container: Mapping[str, Any]) -> dict[str, int]:
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    found = {sys.intern(name): int(quantity(value)) for name, value in asked.items() if "/" in name}
    if "cpu" in asked:
        found["cpu"] = int(quantity(asked["cpu"]) * 1000)
    if "memory" in asked:
        found["memory"] = int(quantity(asked["memory"]))
    return found


def _containers(status: Mapping[str, Any]) -> tuple[ContainerView, ...]:
    every = (status.get("initContainerStatuses") or (), status.get("containerStatuses") or ())
    return tuple(_container(raw) for raws in every for raw in raws)


def _container(raw: Mapping[str, Any]) -> ContainerView:
    state, last = raw.get("state") or {}, raw.get("lastState") or {}
    waiting = state.get("waiting") or {}
    ended = state.get("terminated") or last.get("terminated") or {}
    return ContainerView(
        name=sys.intern(raw.get("name", "")),
        ready=bool(raw.get("ready")),
        started=bool(raw.get("started")),
        restart_count=int(raw.get("restartCount", 0)),
        waiting_reason=_text(waiting.get("reason")),
        waiting_message=_text(waiting.get("message")),
        exit_code=ended.get("exitCode"),
        terminated_reason=_text(ended.get("reason")),
        last_words=last_words(ended.get("message")),
    )


def last_words(text: object) -> str | None:
    """Return the bounded end of what a container said last: that is where the cause stands."""
    return str(text)[-MAX_LAST_WORDS:] if text else None


def _text(value: object) -> str | None:
    return str(value)[:MAX_TEXT] if value else None
