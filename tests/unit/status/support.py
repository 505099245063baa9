"""What the tests of the status share: what is seen of a service, and how its conditions read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stoker.api.crd import SchemaGap, object_schema
from stoker.plan.snapshot import ConditionView, DeploymentView, PodView, Snapshot
from stoker.plan.types import Layout
from stoker.status.outcome import Finding, Outcome, TargetRevision
from stoker.status.project import project
from tests.builders.failures import crashed
from tests.builders.layouts import a_layout
from tests.builders.snapshots import an_object
from tests.builders.specs import SpecBuilder, a_spec

OLD, NEW = "r1", "r2"
SCHEMA = object_schema()["properties"]["status"]
EARLIER, NOW = "2026-03-01T12:00:00Z", "2026-03-01T12:30:00Z"
OOM = replace(crashed("", 137, terminated_reason="OOMKilled"), revision=NEW)


@dataclass(frozen=True, slots=True)
class Seen:
    """What is seen of a service, and what the decision came to. By default: two pods, all of the revision, serving."""

    spec: SpecBuilder = field(default_factory=a_spec)
    generation: int = 3
    counts: tuple[int, int, int, int] = (2, 2, 2, 2)
    """existing, updated, ready, available"""
    wanted: int = 2
    deployed: str | None = NEW
    seen_generation: int = 1
    deployed_replicas: int | None = None
    deployment_conditions: tuple[ConditionView, ...] = ()
    pods: tuple[PodView, ...] = ()
    findings: tuple[Finding, ...] = ()
    is_wanted: bool = True
    revision: bool = True
    paused: bool = False
    layout: Layout | None = field(default_factory=a_layout)
    before: Mapping[str, Any] | None = None
    create_failures: tuple[str, ...] = ()
    apply_failures: Mapping[str, str] = field(default_factory=dict)
    now: str = NOW
    crd_outdated: SchemaGap | None = None
    nodes_are_known: bool = True

    def snapshot(self) -> Snapshot:
        """What is observed."""
        service = self.spec.manifest()
        service["metadata"]["generation"] = self.generation
        if self.before is not None:
            service["status"] = dict(self.before)
        return Snapshot(
            service, self.now, self.deployment(), pods=self.pods, create_failures=self.create_failures,
            apply_failures=self.apply_failures, crd_outdated=self.crd_outdated, nodes_are_known=self.nodes_are_known,
        )  # fmt: skip

    def deployment(self) -> DeploymentView | None:
        """The Deployment; none where `deployed` is None."""
        if self.deployed is None:
            return None
        existing, updated, ready, available = self.counts
        replicas = self.wanted if self.deployed_replicas is None else self.deployed_replicas
        return DeploymentView(
            an_object("Deployment"), self.seen_generation, replicas, existing, updated, ready, available, self.deployed,
            self.deployment_conditions,
        )  # fmt: skip

    def outcome(self) -> Outcome:
        """What the decision came to."""
        revision = TargetRevision(NEW, "chat-r2", 2, "Surge", "two GPUs are free", self.is_wanted, is_new=False)
        return Outcome(
            self.spec.build(), self.layout, revision if self.revision else None, self.findings,
            "http://chat.team-a.svc:8000", "serving.stoker.dev/service=chat", self.wanted, self.paused,
        )  # fmt: skip

    def status(self) -> dict[str, Any]:
        """The status, through JSON and back."""
        projected: dict[str, Any] = json.loads(json.dumps(project(self.snapshot(), self.outcome())))
        return projected


def conditions(status: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Return status and reason of each condition."""
    return {condition["type"]: (condition["status"], condition["reason"]) for condition in status["conditions"]}


def message(status: Mapping[str, Any], kind: str) -> str:
    """Return the message of a condition."""
    return next(str(condition["message"]) for condition in status["conditions"] if condition["type"] == kind)
