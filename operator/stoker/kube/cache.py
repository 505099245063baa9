"""What is known of the cluster, kept as views: filled by the watch streams and by the answers of our own writes.

An object's newest version wins, whichever way it came; what was deleted stays deleted. So a reconcile that follows a
write sees that write, and the event that brings the same version back changes nothing and queues nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from stoker.kube.views import (
    ChildEntry,
    RevisionEntry,
    ServiceEntry,
    child_entry,
    controller_uid,
    node_view,
    pod_view,
    revision_entry,
    service_entry,
    service_label,
)
from stoker.plan.counts import add, holdings
from stoker.plan.snapshot import NodeView, PodView
from stoker.render.names import child_name, label_value, service_account_name

ServiceKey = tuple[str, str]
"""Namespace and name of an InferenceService."""

REMEMBERED_DELETIONS = 10_000


E = TypeVar("E")


class Shelf(Generic[E]):
    """The objects of one kind by uid, by group (an owner or a label) and by name."""

    def __init__(self, same: Callable[[E, E], bool]) -> None:
        self._same = same
        self._items: dict[str, tuple[int, Hashable, tuple[str, str], E]] = {}
        self._groups: dict[Hashable, dict[str, None]] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._gone: dict[str, int] = {}

    def put(self, raw: Mapping[str, Any], group: Hashable, entry: E) -> bool:
        """Keep a version of an object unless a newer one is kept or the object is gone. Returns whether it changed."""
        metadata = raw["metadata"]
        uid, version = metadata["uid"], version_of(raw)
        if self.is_stale(uid, version):
            return False
        known = self._items.get(uid)
        if known is not None and known[1] != group:
            self._ungroup(uid, known[1])
        name = (metadata.get("namespace") or "", metadata["name"])
        self._items[uid] = (version, group, name, entry)
        self._groups.setdefault(group, {})[uid] = None
        self._names[name] = uid
        return known is None or known[1] != group or not self._same(known[3], entry)

    def is_stale(self, uid: str, version: int) -> bool:
        """Return whether a version brings nothing: a newer one is kept, or the object went at a later one."""
        known = self._items.get(uid)
        return self._gone.get(uid, -1) >= version or (known is not None and known[0] >= version)

    def replace(self, uid: str, entry: E) -> None:
        """Keep another view of the same version."""
        known = self._items.get(uid)
        if known is not None:
            self._items[uid] = (*known[:3], entry)

    def remove(self, uid: str, version: int = 0) -> E | None:
        """Forget an object; a late answer about it is ignored. Returns what was kept.

        ``version`` is the one at which it went. An object that only lost our label has versions after that: it is
        kept again when the label is back.
        """
        known = self._items.pop(uid, None)
        self._gone[uid] = max(version, known[0] if known is not None else 0)
        if len(self._gone) > REMEMBERED_DELETIONS:
            del self._gone[next(iter(self._gone))]
        if known is None:
            return None
        self._ungroup(uid, known[1])
        if self._names.get(known[2]) == uid:
            del self._names[known[2]]
        return known[3]

    def get(self, uid: str) -> E | None:
        """Return the view of an object."""
        known = self._items.get(uid)
        return known[3] if known is not None else None

    def named(self, namespace: str, name: str) -> E | None:
        """Return the object that stands under a name."""
        uid = self._names.get((namespace, name))
        return self.get(uid) if uid is not None else None

    def of(self, group: Hashable) -> list[E]:
        """Return the objects of a group, in the order in which they were first seen."""
        return [self._items[uid][3] for uid in self._groups.get(group, ())]

    def group_of(self, uid: str) -> Hashable | None:
        """Return the group of an object."""
        known = self._items.get(uid)
        return known[1] if known is not None else None

    def name_of(self, uid: str) -> tuple[str, str]:
        """Return namespace and name of an object that is kept. Raises KeyError."""
        return self._items[uid][2]

    def versions(self) -> dict[str, int]:
        """Return the version of each object, by uid."""
        return {uid: item[0] for uid, item in self._items.items()}

    def __iter__(self) -> Iterator[E]:
        """Return all views."""
        return (item[3] for item in list(self._items.values()))

    def __len__(self) -> int:
        """Return how many objects are kept."""
        return len(self._items)

    def _ungroup(self, uid: str, group: Hashable) -> None:
        members = self._groups[group]
        del members[uid]
        if not members:
            del self._groups[group]


class Cache:
    """All shelves, and which service an object concerns."""

    def __init__(self, child_kinds: tuple[str, ...]) -> None:
        self.services: Shelf[ServiceEntry] = Shelf(ServiceEntry.same_as)
        self.children: dict[str, Shelf[ChildEntry]] = {kind: Shelf(ChildEntry.same_as) for kind in child_kinds}
        self.revisions: Shelf[RevisionEntry] = Shelf(RevisionEntry.same_as)
        self.pods: Shelf[PodView] = Shelf(PodView.__eq__)
        self.nodes: Shelf[NodeView] = Shelf(NodeView.__eq__)
        self._named: dict[tuple[str, str], ServiceKey] = {}
        self.held: dict[str, dict[str, int]] = {}
        """What our own pods hold, by node and extended resource."""
        self._shelves: dict[str, Shelf[Any]] = {
            "InferenceService": self.services,
            "ControllerRevision": self.revisions,
            "Pod": self.pods,
            "Node": self.nodes,
            **self.children,
        }

    def shelf(self, kind: str) -> Shelf[Any]:
        """Return the shelf of a kind. Raises KeyError for a kind that is not kept."""
        return self._shelves[kind]

    def put(self, kind: str, raw: Mapping[str, Any]) -> bool:
        """Keep an object as it was seen. Returns whether anything that a decision reads has changed."""
        if self.shelf(kind).is_stale(raw["metadata"]["uid"], version_of(raw)):
            return False
        if kind in self.children:
            shelf = self.children[kind]
            child = child_entry(kind, raw, shelf.get(raw["metadata"]["uid"]))
            return shelf.put(raw, child.ref.controller_uid, child)
        if kind == "InferenceService":
            entry = service_entry(raw)
            for name in child_names(entry.name):
                self._named[entry.namespace, name] = (entry.namespace, entry.name)
            return self.services.put(raw, service_group(raw), entry)
        if kind == "ControllerRevision":
            revision = revision_entry(raw)
            return self.revisions.put(raw, revision.ref.controller_uid, revision)
        if kind == "Pod":
            return self._put_pod(raw)
        return self.nodes.put(raw, None, node_view(raw))

    def remove(self, kind: str, uid: str, version: int = 0) -> None:
        """Forget an object, which went at a version."""
        gone = self.shelf(kind).remove(uid, version)
        if isinstance(gone, PodView):
            self._count(gone, -1)
        if isinstance(gone, ServiceEntry) and self.services.named(gone.namespace, gone.name) is None:
            for name in child_names(gone.name):
                self._named.pop((gone.namespace, name), None)

    def _put_pod(self, raw: Mapping[str, Any]) -> bool:
        before, after = self.pods.get(raw["metadata"]["uid"]), pod_view(raw)
        changed = self.pods.put(raw, (raw["metadata"]["namespace"], service_label(raw)), after)
        if changed:
            self._count(after, 1)
            if before is not None:
                self._count(before, -1)
        return changed

    def _count(self, pod: PodView, sign: int) -> None:
        for node, name, count in holdings(pod):
            add(self.held, node, name, sign * count)

    def service(self, key: ServiceKey) -> ServiceEntry | None:
        """Return the service of a key."""
        return self.services.named(*key)

    def waiting_services(self) -> set[ServiceKey]:
        """Return the services that have a pod without a place."""
        waiting = [self.pods.group_of(pod.uid) for pod in self.pods if pod.unschedulable_message]
        return {(service.namespace, service.name) for group in waiting for service in self.services.of(group)}

    def key_of(self, kind: str, raw: Mapping[str, Any]) -> ServiceKey | None:
        """Return the key of the service that an object concerns; None for one that concerns no service of ours."""
        metadata = raw["metadata"]
        if kind == "InferenceService":
            return metadata["namespace"], metadata["name"]
        if kind == "Pod":
            found = self.services.of((metadata["namespace"], service_label(raw)))
            return (found[0].namespace, found[0].name) if found else None
        owner = self.services.get(controller_uid(metadata) or "")
        if owner is not None:
            return owner.namespace, owner.name
        # Whoever owns it: it concerns the service whose child's name it has (N22).
        return self._named.get((metadata.get("namespace") or "", metadata["name"]))

    def key_of_kept(self, kind: str, uid: str) -> ServiceKey | None:
        """Return the key of the service that a kept object concerns, by what it is grouped by."""
        group = self.shelf(kind).group_of(uid)
        found = self.services.of(group) if isinstance(group, tuple) else [self.services.get(str(group))]
        return (found[0].namespace, found[0].name) if found and found[0] else None


def child_names(name: str) -> tuple[str, str]:
    """Return the names under which the children of a service stand."""
    return child_name(name), service_account_name(name)


def service_group(raw: Mapping[str, Any]) -> Hashable:
    """Return what the pods of a service are grouped by: its namespace, and its name as a label value."""
    return raw["metadata"]["namespace"], label_value(raw["metadata"]["name"])


def version_of(raw: Mapping[str, Any]) -> int:
    """Return a resource version as a number: they are comparable since Kubernetes 1.35, and were in etcd before."""
    text = str(raw["metadata"].get("resourceVersion") or "0")
    return int(text) if text.isdigit() else 0
