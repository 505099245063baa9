"""What a first apply creates: the answer of ``stoker render``, which has no cluster."""

from collections.abc import Mapping
from typing import Any

from stoker.plan.snapshot import Snapshot
from stoker.reconcile.planning import Plan, effective_strategy, make_revision
from stoker.reconcile.settings import Settings
from stoker.render.children import Rollout, render_children
from stoker.render.identity import identity_of
from stoker.render.revision import build_revision, revision_inputs


def first_apply(plan: Plan, snapshot: Snapshot, settings: Settings) -> list[dict[str, Any]]:
    """Return the children of a service that has none yet, and its first revision.

    ``plan`` must have no faults. Raises ``RevisionTooLargeError``.
    """
    service = identity_of(snapshot.service)
    spec: Mapping[str, Any] = snapshot.service["spec"]
    revision = make_revision(plan, service, revision_inputs(spec, snapshot.references), snapshot, settings)
    strategy = effective_strategy(spec, revision)
    rollout = Rollout(revision.engine, revision.template, spec.get("replicas", 1), strategy)
    return [*render_children(service, rollout), build_revision(service, revision)]
