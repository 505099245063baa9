"""How far the pods are: the Deployment's counts, believed only where they are about what is wanted now."""

from dataclasses import dataclass

from stoker.plan.snapshot import Snapshot
from stoker.status.outcome import Outcome


@dataclass(frozen=True, slots=True)
class Counts:
    """Pods, as the Deployment counts them, and whether its counts are about the wanted state (N4).

    ``is_current``: the Deployment has the wanted revision and count, and its controller has seen them.
    """

    wanted: int
    existing: int
    ready: int
    updated: int
    available: int
    is_current: bool
    exists: bool
    exceeded_deadline: bool

    @property
    def is_complete(self) -> bool:
        """Every pod is of the revision that shall run, and no other is left."""
        return self.is_current and self.updated == self.wanted == self.existing

    @property
    def serves_in_full(self) -> bool:
        """Every wanted pod is of that revision and serves; only what is ready counts as available."""
        return self.is_complete and self.available >= self.wanted


def count(snapshot: Snapshot, outcome: Outcome) -> Counts:
    """Return the counts; zeros where there is no Deployment."""
    deployment, revision = snapshot.deployment, outcome.revision
    if deployment is None:
        return Counts(outcome.replicas, 0, 0, 0, 0, is_current=False, exists=False, exceeded_deadline=False)
    return Counts(
        wanted=outcome.replicas,
        existing=deployment.replicas,
        ready=deployment.ready_replicas,
        updated=deployment.updated_replicas,
        available=deployment.available_replicas,
        is_current=(
            revision is not None
            and deployment.revision == revision.key
            and deployment.observed_generation >= deployment.ref.generation
            and deployment.spec_replicas == outcome.replicas
        ),
        exists=True,
        exceeded_deadline=any(c.reason == "ProgressDeadlineExceeded" for c in deployment.conditions),
    )
