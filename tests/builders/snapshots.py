"""A service through its life, without a cluster: `Life(a_spec()).reconcile()`, then edit, reconcile, look.

`Life` does with a decision what the operator and the API server would do, and shows the next decision what would then
be observed. It judges nothing.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from stoker.plan.snapshot import (
    DeploymentView,
    NodeView,
    ObjectRef,
    PodView,
    ReferenceView,
    RevisionView,
    Snapshot,
)
from stoker.reconcile.decide import decide
from stoker.reconcile.decision import Decision
from stoker.reconcile.settings import Settings
from stoker.render.labels import APPLIED_HASH, REVISION
from tests.builders.specs import SpecBuilder

UID = "11111111-2222-3333-4444-555555555555"
NOW = "2026-03-01T12:00:00Z"
SETTINGS = Settings(agent_image="example.com/stoker:1", renderer_version="1.0.0")


def an_object(kind: str, name: str = "chat", uid: str | None = UID, **changes: Any) -> ObjectRef:
    """A stored object, controlled by the service unless told otherwise."""
    ref = ObjectRef(
        kind=kind,
        namespace="team-a",
        name=name,
        uid=f"uid-{kind}-{name}",
        resource_version="1",
        controller_uid=uid,
        applied_hash=None,
        generation=1,
        intact=True,
        terminating=False,
    )
    return replace(ref, **changes)


@dataclass
class Life:
    """One InferenceService and what the cluster holds of it."""

    spec: SpecBuilder
    name: str = "chat"
    settings: Settings = SETTINGS
    nodes: tuple[NodeView, ...] = ()
    held: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    references: tuple[ReferenceView, ...] = ()
    pods: tuple[PodView, ...] = ()
    children: dict[tuple[str, str], ObjectRef] = field(default_factory=dict)
    bodies: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    revisions: dict[str, RevisionView] = field(default_factory=dict)
    status: Mapping[str, Any] | None = None
    deleting: bool = False
    generation: int = 1
    ready: int | None = None
    """How many pods serve; None for all."""

    def set(self, path: str, value: object) -> "Life":
        """Edit the spec as a person would."""
        self.spec = self.spec.set(path, value)
        self.generation += 1
        return self

    def service(self) -> dict[str, Any]:
        """The object as the API server returns it."""
        manifest = self.spec.manifest(self.name)
        manifest["metadata"] |= {"uid": UID, "resourceVersion": "7", "generation": self.generation}
        manifest["spec"].setdefault("replicas", 1)
        if self.deleting:
            manifest["metadata"]["deletionTimestamp"] = NOW
        return manifest | ({"status": deepcopy(dict(self.status))} if self.status is not None else {})

    def snapshot(self) -> Snapshot:
        """What is observed."""
        return Snapshot(
            service=self.service(),
            now=NOW,
            deployment=self.deployment(),
            children=tuple(self.children.values()),
            pods=self.pods,
            nodes=self.nodes,
            held=self.held,
            references=self.references,
            revisions=tuple(self.revisions.values()),
        )

    def deployment(self) -> DeploymentView | None:
        """The Deployment, all of its pods up to date, and ready unless told otherwise."""
        found = [key for key, ref in self.children.items() if key[0] == "Deployment" and ref.controller_uid == UID]
        if not found:
            return None
        spec = self.bodies[found[0]]["spec"]
        count = spec["replicas"]
        label = spec["template"]["metadata"]["labels"][REVISION]
        ready = count if self.ready is None else self.ready
        return DeploymentView(self.children[found[0]], 1, count, count, count, ready, ready, label)

    def decide(self) -> Decision:
        """Decide, and do nothing."""
        return decide(self.snapshot(), self.settings)

    def reconcile(self) -> Decision:
        """Decide, and do it."""
        decision = self.decide()
        if decision.create_revision is not None:
            self._store(decision.create_revision)
        for child in decision.apply:
            self._apply(child)
        for ref in decision.delete:
            self.children.pop((ref.kind, ref.name), None)
            self.revisions.pop(ref.name, None)
        if decision.status is not None:
            self.status = json.loads(json.dumps(decision.status))
        return decision

    def template(self) -> dict[str, Any]:
        """The pod template that the Deployment runs."""
        (body,) = (body for (kind, _), body in self.bodies.items() if kind == "Deployment")
        found: dict[str, Any] = body["spec"]["template"]
        return found

    def touch(self, kind: str) -> None:
        """Let somebody else take a field of a child."""
        for key, ref in self.children.items():
            if key[0] == kind:
                self.children[key] = replace(ref, intact=False)

    def _store(self, revision: Mapping[str, Any]) -> None:
        sent = json.loads(json.dumps(revision))
        name = sent["metadata"]["name"]
        assert name not in self.revisions, "a revision is created once"
        self.revisions[name] = RevisionView(an_object("ControllerRevision", name), sent["revision"], sent["data"])

    def _apply(self, child: Mapping[str, Any]) -> None:
        sent = json.loads(json.dumps(child))
        key = (sent["kind"], sent["metadata"]["name"])
        known = self.children.get(key)
        assert known is None or known.controller_uid == UID, "nobody writes what he does not control"
        hash_ = sent["metadata"]["annotations"][APPLIED_HASH]
        self.children[key] = an_object(*key, applied_hash=hash_)
        self.bodies[key] = sent
