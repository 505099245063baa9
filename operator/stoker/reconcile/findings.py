"""What keeps a service from a new revision, each with a reason of its own."""

from collections.abc import Iterable, Sequence

from stoker.api.faults import Fault, in_one_line
from stoker.plan.snapshot import ObjectRef, ReferenceView
from stoker.status.outcome import Finding

RETRY_MISSING = 10.0
RETRY_UNREADABLE = 30.0
"""Seconds after which references are read again: Secrets and ConfigMaps are read one by one, not watched (N20)."""


def from_faults(faults: Sequence[Fault]) -> tuple[Finding, ...]:
    """Return one finding for all faults of a spec, under their common reason."""
    if not faults:
        return ()
    reasons = {fault.reason for fault in faults}
    return (Finding(reasons.pop() if len(reasons) == 1 else "InvalidSpec", in_one_line(faults), stalled=True),)


def missing_references(references: Iterable[ReferenceView]) -> tuple[Finding, ...]:
    """Return a finding for each object that the service names and that does not exist."""
    return tuple(
        Finding(
            f"{view.kind}NotFound",
            f"{view.field_path}: there is no {view.kind} {view.name} in this namespace; create it, or name another one",
            stalled=True,
            retry_after_seconds=RETRY_MISSING,
        )
        for view in references
        if view.exists is False and not view.optional
    )


def unreadable_references(references: Iterable[ReferenceView]) -> tuple[Finding, ...]:
    """Return a finding for each object whose content decides on revisions and could not be read.

    Without its digest nobody can say whether the pods are up to date; they stay, and it is read again.
    """
    return tuple(
        Finding(
            "ReferenceUnreadable",
            f"{view.field_path}: {view.kind} {view.name} could not be read: {view.problem or 'no answer'}",
            stalled=False,
            retry_after_seconds=RETRY_UNREADABLE,
        )
        for view in references
        if view.exists is None and view.rolls
    )


def name_conflicts(wanted: Iterable[tuple[str, str]], foreign: Iterable[ObjectRef]) -> tuple[Finding, ...]:
    """Return a finding for each wanted child (kind and name) whose name belongs to an object of somebody else."""
    standing = {(ref.kind, ref.name) for ref in foreign}
    return tuple(
        Finding(
            "NameConflict",
            f"{kind} {name} exists and belongs to somebody else; delete or rename it, or rename this InferenceService",
            stalled=True,
        )
        for kind, name in wanted
        if (kind, name) in standing
    )
