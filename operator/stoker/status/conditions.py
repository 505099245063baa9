"""The conditions of a service, each a small function of what is seen: positive polarity, never more than is known.

``Ready`` sums up: the newest revision serves in full. An old revision that still serves while the new one crashes is
``Available``, not ``UpToDate``, not ``Ready`` (N4).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stoker.api.crd import SchemaGap
from stoker.api.status import MAX_MESSAGE_BYTES, ConditionStatus, ConditionType
from stoker.plan.snapshot import Snapshot
from stoker.plan.types import Layout, Verdict
from stoker.status.case import AGENT, ENGINE, NODES_UNKNOWN, Diagnosis
from stoker.status.counts import Counts
from stoker.status.outcome import Finding, Outcome
from stoker.status.text import bounded

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


@dataclass(frozen=True, slots=True)
class View:
    """Everything that the conditions are a function of. ``diagnosis`` is why pods do not serve or cannot be made."""

    snapshot: Snapshot
    outcome: Outcome
    counts: Counts
    diagnosis: Diagnosis | None

    @property
    def blocking(self) -> Finding | None:
        """The first finding, what somebody has to act on before what passes; its message tells the others too."""
        found = sorted(self.outcome.findings, key=lambda finding: not finding.stalled)
        return replace(found[0], message=_all_of(found)) if found else None

    @property
    def is_wanted(self) -> bool:
        """Whether what runs or comes up is what the spec asks for."""
        return self.outcome.revision is not None and self.outcome.revision.is_wanted


@dataclass(frozen=True, slots=True)
class Verdicted:
    """A condition without its times."""

    type: ConditionType
    status: ConditionStatus
    reason: str
    message: str


def conditions(view: View) -> Iterator[Verdicted]:
    """Yield the conditions in the order in which they are shown; Reconciling and Stalled only while they hold."""
    done = ready(view)
    yield done
    yield from (condition(view) for condition in (available, up_to_date, fits, warm, model_verified))
    if stuck := stalled(view):
        yield stuck
    elif moving := reconciling(view, done):
        yield moving


# ---- Ready ---------------------------------------------------------------------------------------------------------
def ready(view: View) -> Verdicted:
    """Whether the newest revision serves in full: the first answer of an ordered chain."""
    answer = next(answer for step in _READY if (answer := step(view)))
    return Verdicted(ConditionType.READY, *answer)


Answer = tuple[ConditionStatus, str, str]


def _kept_back(view: View) -> Answer | None:
    finding = view.blocking
    if finding is None:
        return None
    serves = f" (meanwhile {_serving(view.counts)})" if view.counts.available else ""
    message = bounded(finding.message, MAX_MESSAGE_BYTES - len(serves)) + serves
    return (FALSE if finding.stalled or view.outcome.paused else UNKNOWN), finding.reason, message


def _not_applied(view: View) -> Answer | None:
    return (FALSE, view.diagnosis.reason, view.diagnosis.message) if view.diagnosis and _failed(view) else None


def _failed(view: View) -> bool:
    return bool(view.snapshot.apply_failures)


def _stopped(view: View) -> Answer | None:
    if view.counts.wanted:
        return None
    if view.counts.is_current and not view.counts.existing:
        return TRUE, "Stopped", "spec.replicas is 0: no pod runs, and none shall"
    return FALSE, "Stopping", f"spec.replicas is 0: {_pods(view.counts.existing)} still there"


def _serving_in_full(view: View) -> Answer | None:
    if view.is_wanted and view.counts.serves_in_full:
        return TRUE, "Serving", f"{_serving(view.counts)} at revision {_revision(view)}"
    return None


def _diagnosed(view: View) -> Answer | None:
    return (FALSE, view.diagnosis.reason, view.diagnosis.message) if view.diagnosis else None


def _on_its_way(view: View) -> Answer:
    reason, message = _progress(view)
    return FALSE, reason, message


_READY: tuple[Callable[[View], Answer | None], ...] = (
    _kept_back,
    _not_applied,
    _stopped,
    _serving_in_full,
    _diagnosed,
    _on_its_way,
)


def _progress(view: View) -> tuple[str, str]:
    counts = view.counts
    if not counts.exists:
        return "Creating", "the engines' Deployment is being made"
    if not counts.is_current:
        return "Applying", f"the Deployment is being brought to revision {_revision(view)} and {_pods(counts.wanted)}"
    if counts.exceeded_deadline:
        return "ProgressDeadlineExceeded", f"the pods take longer than their startup budget: {_stage(view)}"
    if not counts.is_complete:
        return "RollingOut", f"{counts.updated} of {_pods(counts.wanted)} at revision {_revision(view)}: {_stage(view)}"
    return "Starting", f"{counts.available} of {_pods(counts.wanted)} serving: {_stage(view)}"


def _stage(view: View) -> str:
    """Return how far the pods of the revision are that do not serve yet."""
    stages = [_stage_of(started, engine) for started, engine in _starting(view)]
    return ", ".join(f"{stages.count(stage)} {stage}" for stage in _STAGES if stage in stages) or "waiting for pods"


_STAGES = ("warming up", "loading the model", "getting ready to start")


def _stage_of(agent_started: bool, engine_started: bool) -> str:
    if engine_started:
        return _STAGES[0]
    return _STAGES[1] if agent_started else _STAGES[2]


def _starting(view: View) -> Iterator[tuple[bool, bool]]:
    key = view.outcome.revision.key if view.outcome.revision else None
    for pod in view.snapshot.pods:
        if not pod.ready and not pod.terminating and pod.revision == key:
            started = {container.name: container.started for container in pod.containers}
            yield started.get(AGENT, False), started.get(ENGINE, False)


# ---- Available, UpToDate -------------------------------------------------------------------------------------------
def available(view: View) -> Verdicted:
    """Whether some pod serves, of whatever revision."""
    counts = view.counts
    if counts.available:
        return Verdicted(ConditionType.AVAILABLE, TRUE, "Serving", _serving(counts))
    if not counts.wanted:
        return Verdicted(ConditionType.AVAILABLE, FALSE, "Stopped", "spec.replicas is 0: no pod runs")
    if not counts.existing:
        return Verdicted(ConditionType.AVAILABLE, FALSE, "NothingServes", "there is no pod yet that could serve")
    none = "the only pod does not serve" if counts.existing == 1 else f"none of {_pods(counts.existing)} serves"
    return Verdicted(ConditionType.AVAILABLE, FALSE, "NothingServes", none)


def up_to_date(view: View) -> Verdicted:
    """Whether every pod is of the revision that the spec asks for, and what may be missing from the spec itself."""
    found, gap = _up_to_date(view), view.snapshot.crd_outdated
    if gap is None:
        return found
    told = f"; {_crd_outdated(gap)}"
    return replace(found, message=bounded(found.message, MAX_MESSAGE_BYTES - len(told.encode())) + told)


def _crd_outdated(gap: SchemaGap) -> str:
    """Return what the served schema lacks, what becomes of specs by that, and the remedy."""
    dropped, checked = gap.field is not None, gap.check is not None
    effects = ["fields are dropped"] * dropped + ["other rules and defaults hold"] * checked
    remedy = "bring the CustomResourceDefinition and the operator to one version, then apply the manifest again"
    lacks = f"the served CustomResourceDefinition lacks {gap} or more: {', '.join(effects)}"
    return f"CRDOutdated: {lacks}; {remedy}"


def _up_to_date(view: View) -> Verdicted:
    finding, counts = view.blocking, view.counts
    if finding is not None:
        unknown = not finding.stalled and not view.outcome.paused
        return Verdicted(ConditionType.UP_TO_DATE, UNKNOWN if unknown else FALSE, finding.reason, finding.message)
    if view.is_wanted and counts.is_complete:
        return Verdicted(ConditionType.UP_TO_DATE, TRUE, "UpToDate", f"every pod is of revision {_revision(view)}")
    if not counts.is_current:
        message = f"the Deployment does not run revision {_revision(view)} yet"
        return Verdicted(ConditionType.UP_TO_DATE, FALSE, "Applying", message)
    return Verdicted(ConditionType.UP_TO_DATE, FALSE, "RollingOut", _rolling_out(counts, _revision(view)))


def _rolling_out(counts: Counts, revision: str) -> str:
    """Return how many pods are of the revision, out of those that there are or shall be, so that the numbers add up."""
    old, new = counts.existing - counts.updated, counts.updated
    if counts.existing == old == 1:
        return f"the only pod is not of revision {revision}"
    if old <= 0 and new > counts.wanted:
        return f"{_pods(new)} are of revision {revision}, and {counts.wanted} {_is(counts.wanted)} wanted"
    of = f"{new} of {_pods(max(counts.existing, counts.wanted if old <= 0 else 0))} {_is(new)} of revision {revision}"
    return f"{of}, {old} of an older one" if old > 0 else of


# ---- Fits, Warm, ModelVerified -------------------------------------------------------------------------------------
def fits(view: View) -> Verdicted:
    """Whether the layout fits its devices."""
    layout = view.outcome.layout
    if layout is None:
        return Verdicted(ConditionType.FITS, UNKNOWN, "NotPlanned", "the spec has faults, so that nothing is planned")
    if layout.faults:  # its figures are those of a layout that no engine would start with
        return Verdicted(ConditionType.FITS, FALSE, layout.faults[0].reason, str(layout.faults[0]))
    reasons = "; ".join(layout.reasons)
    match layout.verdict:
        case Verdict.FITS:
            return Verdicted(ConditionType.FITS, TRUE, "Fits", reasons or "the model fits")
        case Verdict.TOO_SMALL:
            return Verdicted(ConditionType.FITS, FALSE, "DoesNotFit", _with_ways(reasons, layout))
    # Most reasons name the field that would help, and so does what holds the pods back; advice beside it would blur it.
    hint = "" if "spec." in reasons or not view.is_wanted else "; state the numbers in spec.model.facts"
    blind = "" if view.snapshot.nodes_are_known or not layout.gpus_per_pod else f"; {NODES_UNKNOWN}"
    message = f"{reasons}{hint}{blind}" + "; the pods start all the same" * view.is_wanted
    return Verdicted(ConditionType.FITS, UNKNOWN, "NotEnoughKnown", message)


def _with_ways(reasons: str, layout: Layout) -> str:
    ways = "; or ".join(suggestion.summary for suggestion in layout.suggestions)
    return f"{reasons}; would fit: {ways}" if ways else reasons


def warm(view: View) -> Verdicted:
    """Whether the pods have answered their warm-up; a pod is not ready before it has."""
    counts, spec = view.counts, view.outcome.spec
    if spec is not None and spec.warmup is not None and spec.warmup.requests == 0:
        return Verdicted(ConditionType.WARM, UNKNOWN, "WarmupOff", "spec.warmup.requests is 0: nothing is warmed up")
    if not counts.wanted:
        return Verdicted(ConditionType.WARM, FALSE, "Stopped", "spec.replicas is 0: no pod runs")
    if counts.ready >= max(counts.wanted, counts.existing):
        return Verdicted(ConditionType.WARM, TRUE, "Warm", f"{_pods(counts.ready)} answered the warm-up")
    if not counts.existing:
        return Verdicted(ConditionType.WARM, FALSE, "NotWarm", "there is no pod yet that could be warmed up")
    message = f"{counts.ready} of {_pods(max(counts.wanted, counts.existing))} answered the warm-up"
    return Verdicted(ConditionType.WARM, FALSE, "NotWarm", message)


def model_verified(view: View) -> Verdicted:
    """Whether the weights are what their source says (N16): this release verifies none, and says so.

    The stored spec is read, since one with a fault anywhere has its source all the same.
    """
    model = _stored_model(view.snapshot.service)
    source = str(model.get("source"))
    scheme = source[: source.find("://") + 3]
    hint = "; spec.model.revision with a commit would at least pin them"
    told = _WEIGHTS.get(scheme, "spec.model.source is none that weights are served from") + hint * (
        scheme == "hf://" and model.get("revision") is None
    )
    return Verdicted(ConditionType.MODEL_VERIFIED, UNKNOWN, "NotVerified", told)


_WEIGHTS = {
    "hf://": "the engine downloads the weights itself, and nothing checks them",
    "pvc://": "the weights are served as they lie on the volume, and nothing checks them",
}
"""How weights come to be served, by the scheme of their source."""


def _stored_model(service: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``spec.model`` as it is stored; empty where it is of another shape."""
    spec = service.get("spec")
    model = spec.get("model") if isinstance(spec, Mapping) else None
    return model if isinstance(model, Mapping) else {}


# ---- the kstatus pair ----------------------------------------------------------------------------------------------
def stalled(view: View) -> Verdicted | None:
    """Whether somebody has to act: what no waiting cures."""
    finding, diagnosis = view.blocking, view.diagnosis
    if finding is not None and finding.stalled:
        told = _all_of(it for it in view.outcome.findings if it.stalled)
        return Verdicted(ConditionType.STALLED, TRUE, finding.reason, told)
    missing = _failed(view) or (view.counts.wanted and not view.counts.serves_in_full)
    if diagnosis is not None and diagnosis.stalled and missing:
        return Verdicted(ConditionType.STALLED, TRUE, diagnosis.reason, diagnosis.message)
    return None


def reconciling(view: View, done: Verdicted) -> Verdicted | None:
    """Whether the service is on its way; not while it is paused, since nothing moves then."""
    if done.status == TRUE or (view.outcome.paused and view.blocking is not None):
        return None
    return Verdicted(ConditionType.RECONCILING, TRUE, done.reason, done.message)


def _all_of(findings: Iterable[Finding]) -> str:
    """Return what all findings say, each once: whoever mends one fault shall not meet the next one only then."""
    return " | ".join(dict.fromkeys(finding.message for finding in findings))


# ---- words ---------------------------------------------------------------------------------------------------------
def _revision(view: View) -> str:
    return view.outcome.revision.key if view.outcome.revision else "of the spec"


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def _serving(counts: Counts) -> str:
    return f"{_pods(counts.available)} {'serves' if counts.available == 1 else 'serve'}"
