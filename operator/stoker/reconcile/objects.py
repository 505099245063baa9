"""Which children are written and which are deleted."""

from collections.abc import Iterator, Mapping
from typing import Any

from stoker.plan.snapshot import ObjectRef, RevisionView
from stoker.reconcile.draft import Draft
from stoker.render.children import KINDS
from stoker.render.meta import applied_hash
from stoker.render.names import child_name, service_account_name
from stoker.render.revision import KEPT


def foreign_children(draft: Draft) -> tuple[ObjectRef, ...]:
    """Return the objects that stand under a derived name and that the service does not control."""
    return tuple(ref for ref in draft.snapshot.children if ref.controller_uid != draft.service.uid)


def children_of_any_revision(draft: Draft) -> tuple[tuple[str, str], ...]:
    """Return kind and name of the wanted children; where none are rendered, of those that every revision has."""
    if draft.wanted:
        return tuple(key_of(child) for child in draft.wanted)
    name = draft.service.name
    kinds = [kind for kind in KINDS if kind != "PodDisruptionBudget" or draft.replicas > 1]
    return tuple((kind, service_account_name(name) if kind == "ServiceAccount" else child_name(name)) for kind in kinds)


def children_to_apply(draft: Draft) -> tuple[Mapping[str, Any], ...]:
    """Return the wanted children that differ from what was applied last, or that somebody has touched since (N2)."""
    standing = {(ref.kind, ref.name): ref for ref in draft.snapshot.children}
    return tuple(child for child in draft.wanted if _needs_apply(draft, child, standing.get(key_of(child))))


def surplus(draft: Draft) -> tuple[ObjectRef, ...]:
    """Return what the service controls and wants no longer: children, and revisions beyond those that stay."""
    if not draft.wanted:
        return ()  # nothing is known to be wanted, so nothing is known to be surplus
    wanted = {key_of(child) for child in draft.wanted}
    own = (ref for ref in draft.snapshot.children if _is_own(draft, ref) and ref.kind in KINDS)
    children = [ref for ref in own if (ref.kind, ref.name) not in wanted]
    return (*children, *_old_revisions(draft))


def _needs_apply(draft: Draft, child: Mapping[str, Any], ref: ObjectRef | None) -> bool:
    if ref is None:
        return True
    if ref.controller_uid != draft.service.uid or ref.terminating:
        return False  # somebody else's, or on its way out: its end is an event of its own
    return not (ref.intact and ref.applied_hash == applied_hash(child))


def _old_revisions(draft: Draft) -> Iterator[ObjectRef]:
    """Yield revisions beyond the newest ones; what runs, or still has pods, stays whatever its age."""
    stored = sorted(draft.snapshot.revisions, key=lambda view: view.number, reverse=True)
    room = KEPT - (1 if draft.is_new else 0)
    for view in stored[room:]:
        if _is_own(draft, view.ref) and _key_of(view) not in _in_use(draft):
            yield view.ref


def _in_use(draft: Draft) -> set[str | None]:
    deployed = draft.snapshot.deployment.revision if draft.snapshot.deployment else None
    target = draft.target.key if draft.target else None
    return {target, deployed, *(pod.revision for pod in draft.snapshot.pods)}


def _key_of(view: RevisionView) -> str | None:
    key = view.data.get("key")
    return key if isinstance(key, str) else None


def _is_own(draft: Draft, ref: ObjectRef) -> bool:
    return ref.controller_uid is not None and ref.controller_uid == draft.service.uid and not ref.terminating


def key_of(child: Mapping[str, Any]) -> tuple[str, str]:
    """Return kind and name of a manifest."""
    return child["kind"], child["metadata"]["name"]
