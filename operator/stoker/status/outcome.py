"""What a decision came to, as far as the status tells it: the input of ``project`` beside the Snapshot."""

from dataclasses import dataclass

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.plan.types import Layout


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason to stay with what runs. ``stalled``: no waiting cures it, somebody has to act."""

    reason: str
    message: str
    stalled: bool
    retry_after_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TargetRevision:
    """The revision that runs or shall run. ``is_wanted`` is false where the spec asks for another one (a Finding
    says why it cannot be had), ``is_new`` where it is created by this very decision."""

    key: str
    name: str
    number: int
    strategy: str
    strategy_reason: str
    is_wanted: bool
    is_new: bool
    layout: Layout | None = None
    """What its pods were rendered from; None where an operator of another version wrote it in other words."""
    outdated: tuple[str, ...] = ()
    """What today's renderer would do otherwise; nothing rolls because of it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """``spec`` is None where the stored one has faults. ``layout`` is that of the wanted spec: frozen in its revision
    where it has one, else today's (of a refused spec too, so that its arithmetic can be shown); where the spec cannot
    be planned, that of the revision that runs, else None. ``revision`` is None where none exists."""

    spec: InferenceServiceSpec | None
    layout: Layout | None
    revision: TargetRevision | None
    findings: tuple[Finding, ...]
    url: str | None
    """Where clients reach the API inside the cluster; None where there is no Service of ours."""
    selector: str
    """The label selector of the engines' pods, as text (``status.selector``)."""
    replicas: int
    """The wanted replica count."""
    paused: bool
