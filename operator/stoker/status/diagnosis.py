"""Why pods do not serve: an ordered chain of small policies. The first that knows the case decides."""

from collections.abc import Iterable

from stoker.plan.counts import held_by
from stoker.plan.snapshot import Snapshot
from stoker.plan.types import Layout
from stoker.status import claims, scheduling, startup, words
from stoker.status.case import Case, Diagnosis, Policy
from stoker.status.creation import pods_not_created
from stoker.status.outcome import Outcome

POLICIES: tuple[Policy, ...] = (
    startup.refused_by_node,
    claims.claim_missing,
    claims.volume_unbound,
    scheduling.waits_for_ending_pods,
    scheduling.unschedulable,
    startup.image_not_pulled,
    startup.object_missing,
    startup.container_not_started,
    words.out_of_memory,
    *words.policies(),
    words.ended,
)
"""The chain, in the order in which it runs."""


def diagnose(case: Case) -> Diagnosis | None:
    """Return why one pod does not serve; None where it is merely on its way."""
    return next((diagnosis for policy in POLICIES if (diagnosis := policy(case))), None)


def diagnose_all(snapshot: Snapshot, outcome: Outcome) -> Diagnosis | None:
    """Return the gravest reason why the pods of the revision that shall run do not serve; None where there is none.

    What somebody has to act on goes before what passes; a pod that exists says more than one that could not be made.
    """
    key = outcome.revision.key if outcome.revision else None
    ending = held_by(pod for pod in snapshot.pods if pod.terminating)
    replaced = held_by(pod for pod in snapshot.pods if key not in (None, pod.revision))
    cases = [
        Case(
            pod=pod,
            spec=outcome.spec,
            layout=_layout(outcome),
            nodes=snapshot.nodes,
            nodes_are_known=snapshot.nodes_are_known,
            held=snapshot.held,
            held_is_known=snapshot.held_is_known,
            ending=ending,
            replaced=replaced,
            strategy=outcome.revision.strategy if outcome.revision else None,
        )
        for pod in snapshot.pods
        if not pod.ready and not pod.terminating and (key is None or pod.revision == key)
    ]
    return _gravest(diagnosis for case in cases if (diagnosis := diagnose(case))) or pods_not_created(
        snapshot.create_failures
    )


def _layout(outcome: Outcome) -> Layout | None:
    """Return the layout of the pods that shall run; where the spec asks for others, theirs says nothing of these."""
    revision = outcome.revision
    return outcome.layout if revision is None or revision.is_wanted else revision.layout


def _gravest(diagnoses: Iterable[Diagnosis]) -> Diagnosis | None:
    """Return the first diagnosis by gravity, then by its words: the order of the pods says nothing."""
    return min(diagnoses, key=lambda it: (not it.stalled, it.reason, it.message), default=None)
