"""From what is seen and decided to the whole ``status``: pure, and the same for the same input (N2)."""

from collections.abc import Iterator, Mapping
from typing import Any

from stoker.api.status import (
    MAX_COUNT,
    MAX_NUMBER,
    Condition,
    InferenceServiceStatus,
    LayoutStatus,
    Origin,
    RevisionStatus,
)
from stoker.plan.landing import GPU_RESOURCE
from stoker.plan.snapshot import Snapshot
from stoker.plan.types import Layout
from stoker.status.case import Diagnosis
from stoker.status.conditions import Verdicted, View, conditions
from stoker.status.counts import count
from stoker.status.creation import child_not_applied
from stoker.status.diagnosis import diagnose_all
from stoker.status.outcome import Outcome, TargetRevision
from stoker.status.text import bounded, word

MAX_SHORT = 253


def project(snapshot: Snapshot, outcome: Outcome) -> dict[str, Any]:
    """Return the whole ``status`` of the service, as JSON. Never raises over what engines, users or nodes said."""
    counts = count(snapshot, outcome)
    view = View(snapshot, outcome, counts, _diagnosis(snapshot, outcome))
    status = InferenceServiceStatus(
        observed_generation=_generation(snapshot),
        replicas=counts.existing,
        ready_replicas=counts.ready,
        updated_replicas=counts.updated,
        available_replicas=counts.available,
        gpus=_gpus(snapshot, outcome.layout),
        selector=outcome.selector,
        url=outcome.url,
        layout=_layout(outcome.layout) if outcome.layout else None,
        revision=_revision(outcome.revision) if outcome.revision else None,
        conditions=tuple(_conditions(view)),
    )
    return status.to_json()


def _diagnosis(snapshot: Snapshot, outcome: Outcome) -> Diagnosis | None:
    """Return why the pods do not serve; a child that was not taken goes before what its absence leads to."""
    if snapshot.apply_failures:
        return child_not_applied(*min(snapshot.apply_failures.items()))
    return diagnose_all(snapshot, outcome)


def _generation(snapshot: Snapshot) -> int:
    return int(snapshot.service.get("metadata", {}).get("generation", 0))


def _gpus(snapshot: Snapshot, layout: Layout | None) -> int:
    """Return the GPUs that the existing pods hold or wait for, within the bound of the field: pods ask for anything."""
    resource = (layout.resource_name if layout else None) or GPU_RESOURCE
    alive = (pod for pod in snapshot.pods if pod.phase not in {"Succeeded", "Failed"})
    return min(sum(pod.requests.get(resource, 0) for pod in alive), MAX_NUMBER)


# ---- conditions ----------------------------------------------------------------------------------------------------
def _conditions(view: View) -> Iterator[Condition]:
    before = dict(_before(view.snapshot.service))
    for condition in conditions(view):
        yield _timed(condition, before.get(condition.type), view.snapshot)


def _before(service: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for condition in (service.get("status") or {}).get("conditions") or ():
        if isinstance(condition, Mapping):
            yield str(condition.get("type")), condition


def _timed(condition: Verdicted, before: Mapping[str, Any] | None, snapshot: Snapshot) -> Condition:
    """Return the condition with its times: the transition time stays while its status stays."""
    since = before.get("lastTransitionTime") if before and before.get("status") == condition.status else None
    return Condition(
        type=condition.type,
        status=condition.status,
        reason=word(condition.reason, "Other"),
        message=bounded(condition.message),
        observed_generation=_generation(snapshot),
        last_transition_time=str(since or snapshot.now),
    )


# ---- layout, revision ----------------------------------------------------------------------------------------------
def _layout(layout: Layout) -> LayoutStatus:
    return LayoutStatus(
        verdict=layout.verdict,
        placement=layout.placement,
        pods_per_replica=layout.pods_per_replica,
        gpus_per_pod=layout.gpus_per_pod,
        resource_name=layout.resource_name,
        tensor=layout.tensor,
        pipeline=layout.pipeline,
        max_length=_told(layout.max_length),
        max_sequences=layout.max_sequences,
        max_queued=layout.max_queued,
        gpu_layers=layout.gpu_layers,
        memory_fraction=str(layout.memory_fraction) if layout.gpus_per_pod else None,
        kv_dtype=layout.kv_dtype,
        weight_bytes_per_rank=_told(layout.weight_bytes_per_rank),
        kv_bytes_per_token_per_rank=_told(layout.kv_bytes_per_token_per_rank),
        kv_tokens=_told(layout.kv_tokens),
        max_concurrency=None if layout.max_concurrency is None else str(layout.max_concurrency),
        memory_request_bytes=min(layout.memory_request_bytes, MAX_COUNT),
        cpu_request_millicores=layout.cpu_request_millicores,
        startup_budget_seconds=layout.startup_budget_seconds,
        short_by_bytes=_told(layout.short_by_bytes),
        reasons=_texts(layout.reasons, 16),
        suggestions=_texts((suggestion.summary for suggestion in layout.suggestions), 8),
        origins=tuple(_origins(layout)) or None,
    )


def _told(count: int | None) -> int | None:
    """Return a figure within the bounds of the status: specs and configurations may describe what nobody can build."""
    return None if count is None else min(max(count, 0), MAX_COUNT)


def _origins(layout: Layout) -> Iterator[Origin]:
    for name, origin in sorted(layout.origins.items())[:32]:
        yield Origin(name=bounded(name, MAX_SHORT), origin=bounded(origin, MAX_SHORT))


def _revision(revision: TargetRevision) -> RevisionStatus:
    return RevisionStatus(
        key=revision.key,
        name=revision.name,
        number=revision.number,
        strategy=revision.strategy,
        strategy_reason=bounded(revision.strategy_reason),
        outdated=_texts(revision.outdated, 16),
    )


def _texts(lines: Iterator[str] | tuple[str, ...], most: int) -> tuple[str, ...] | None:
    return tuple(bounded(line) for line in list(lines)[:most]) or None
