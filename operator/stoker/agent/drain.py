"""When a drain may end: pure, fed with the metrics pages that are read while it lasts.

Kept-alive connections go on sending to a pod that has left its endpoints, so being seen idle once is not enough: after
the pause in which endpoints and router let go, the engine must stay idle, without a counter of accepted work moving.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from stoker.agent.config import EngineMetrics
from stoker.agent.metrics import Reading
from stoker.agent.state import Phase, State


@dataclass(frozen=True, slots=True)
class DrainLimits:
    """Times of a drain in seconds: the pause before it counts, the quiet that ends it, and the most it may take.

    `hold`: how long after its end an engine that still runs takes no traffic. The kubelet sends SIGTERM after the hook
    and SIGKILL at the end of the grace period; an engine that lives on for longer was drained by accident.
    """

    settle: float
    quiet: float
    budget: float
    hold: float


@dataclass(frozen=True, slots=True)
class Drain:
    """A drain of one incarnation, under way or (`over_at`) just over.

    `quiet_since` is None while the engine is busy or cannot say.
    """

    began: float
    incarnation: int = 1
    over_at: float | None = None
    marks: tuple[float | None, ...] = ()
    quiet_since: float | None = None
    read_at: float | None = None
    load: str = "no metrics page was read"


@dataclass(frozen=True, slots=True)
class Done:
    """The end of a drain and its reason, one line. `clean`: no request was left running."""

    clean: bool
    reason: str


Ending = Callable[[Drain, Phase, float, DrainLimits], Done | None]


def begin(now: float, last: Reading | None, incarnation: int = 1) -> Drain:
    """A new drain; the last page read before it tells which counters move."""
    return Drain(began=now, incarnation=incarnation, marks=_marks(last) if last else ())


def holds(drain: Drain | None, incarnation: int, now: float, limits: DrainLimits) -> bool:
    """Whether a drain keeps this incarnation out of traffic: from its beginning until a while after its end."""
    if drain is None or drain.incarnation != incarnation:
        return False
    return drain.over_at is None or now - drain.over_at <= limits.hold


def goes_on(drain: Drain | None, incarnation: int, resumed: bool) -> bool:
    """Whether a caller joins this drain. One that is over is begun anew, but for a caller that a dead worker left."""
    return drain is not None and drain.incarnation == incarnation and (resumed or drain.over_at is None)


def see(drain: Drain, reading: Reading, now: float, names: EngineMetrics, limits: DrainLimits) -> Drain:
    """The drain after a metrics page that was read at `now`."""
    marks = _marks(reading)
    quiet = now - drain.began >= limits.settle and is_idle(reading, names) and marks == drain.marks
    since = (now if drain.quiet_since is None else drain.quiet_since) if quiet else None
    return replace(drain, marks=marks, quiet_since=since, read_at=now, load=load_text(reading))


def is_idle(reading: Reading, names: EngineMetrics) -> bool:
    """No request runs or waits. What the engine should say and does not is not idle."""
    queue_is_empty = names.waiting is None or reading.waiting == 0
    return reading.running == 0 and queue_is_empty


def load_text(reading: Reading) -> str:
    """The load in words."""
    running, waiting = (("?" if value is None else f"{value:.0f}") for value in (reading.running, reading.waiting))
    return f"running {running}, waiting {waiting}"


def _marks(reading: Reading) -> tuple[float | None, ...]:
    return (*reading.accepted, reading.prompt_tokens, reading.generation_tokens)


def ending(drain: Drain, phase: Phase, now: float, limits: DrainLimits) -> Done | None:
    """The first reason to end the drain now, or None."""
    return next((done for rule in ENDINGS if (done := rule(drain, phase, now, limits)) is not None), None)


def refusal(phase: Phase) -> Done | None:
    """Why there is nothing to wait for in this phase, or None."""
    if phase in {Phase.READY, Phase.DRAINING}:
        return None
    return Done(clean=True, reason=f"nothing to drain: the engine is {phase}")


def may_be_deaf(state: State, called_at: float, now: float, deaf_seconds: float) -> bool:
    """Whether SIGTERM may be lost on this engine: it does not listen yet and has only just started.

    A container's first process gets no signal that it has no handler for, and a Python engine imports for many seconds
    before it has one. SIGTERM is sent once, after the hook: lost, it leaves the engine, and its GPUs, until SIGKILL.
    An engine whose startup probe was never called runs since the hook was called (`called_at`), or a little longer.
    """
    began = state.since if state.asked or state.loss else called_at
    return not state.listening and now - began < deaf_seconds


def _nothing_to_wait_for(_drain: Drain, phase: Phase, _now: float, _limits: DrainLimits) -> Done | None:
    return refusal(phase)


def _quiet(drain: Drain, _phase: Phase, now: float, limits: DrainLimits) -> Done | None:
    if drain.quiet_since is None or drain.read_at is None or drain.read_at - drain.quiet_since < limits.quiet:
        return None
    return Done(clean=True, reason=f"drained in {now - drain.began:.1f} s")


def _over_budget(drain: Drain, _phase: Phase, now: float, limits: DrainLimits) -> Done | None:
    if now - drain.began < limits.budget:
        return None
    return Done(clean=False, reason=f"the drain budget of {limits.budget:.0f} s is over ({drain.load})")


ENDINGS: Final[tuple[Ending, ...]] = (_nothing_to_wait_for, _quiet, _over_budget)
