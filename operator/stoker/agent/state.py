"""The state machine of one engine, as its agent sees it: observations in, a phase and the answers of the probes out.

Pure: time comes in as an argument, in seconds of one monotonic clock. The state belongs to one incarnation of the
engine; an observation that was asked of another incarnation is dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from stoker.agent.listener import Listener, same_engine
from stoker.agent.metrics import Reading

PAGE_GAP_SECONDS: Final = 30.0
"""Two metrics pages further apart than this say nothing about the time between them, and the older one is stale."""


class Phase(StrEnum):
    """Where an engine is in its life. `Dead`: nothing listens any more; `Stuck`: there is evidence of a hang."""

    STARTING = "Starting"
    LOADING = "Loading"
    WARMING = "Warming"
    READY = "Ready"
    DRAINING = "Draining"
    STUCK = "Stuck"
    DEAD = "Dead"


class Outcome(StrEnum):
    """How a request to the engine's health path ended."""

    WELL = "well"
    UNWELL = "unwell"
    SILENT = "silent"
    REFUSED = "refused"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the judgement, in seconds. `silence`: how long health may fail, or the port refuse, on every try."""

    longest_prefill: float
    startup_budget: float
    silence: float = 60.0
    silent_tries: int = 5


# ---- observations ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Health:
    """A health request that was sent at `asked_at` has ended."""

    outcome: Outcome
    asked_at: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Models:
    """The model list was read: whether the served name is in it, or what stood there instead."""

    listed: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A metrics page was read."""

    reading: Reading


@dataclass(frozen=True, slots=True)
class Warmup:
    """Warm-up ended: done, refused with a reason, or (`unanswered`) not answered within the start-up budget."""

    done: bool
    unanswered: bool = False
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StartupAsked:
    """The startup probe was called: the kubelet has started the engine's container (anew)."""


Observation = Listener | Health | Models | Page | Warmup | StartupAsked


# ---- state ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pulse:
    """Answers of the health path. `failing_since` is the start of the first try that failed since the last answer."""

    failing_since: float | None = None
    tries: int = 0
    last: Outcome = Outcome.WELL
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Load:
    """The last metrics page, and since when requests have run without any counter of progress moving."""

    reading: Reading = field(default_factory=Reading)
    read_at: float | None = None
    unmoved_since: float | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """Nothing listens where an engine had started."""

    since: float
    was_ready: bool


@dataclass(frozen=True, slots=True)
class State:
    """Everything known about the present incarnation. Times are monotonic seconds."""

    incarnation: int = 1
    since: float = 0.0
    identity: str | None = None
    listening: bool = False
    started_at: float | None = None
    models_detail: str = ""
    warm: bool = False
    warmup: Warmup = Warmup(done=False)
    pulse: Pulse = field(default_factory=Pulse)
    load: Load = field(default_factory=Load)
    loss: Loss | None = None

    @property
    def started(self) -> bool:
        """The port answers and the model is listed."""
        return self.started_at is not None


def step(state: State, seen: Observation, now: float, incarnation: int | None = None) -> State:
    """The state after an observation. One that was asked of another incarnation changes nothing."""
    if incarnation is not None and incarnation != state.incarnation:
        return state
    match seen:
        case Listener():
            after = _see_listener(state, seen, now)
        case Health():
            after = _see_health(state, seen, now)
        case Models():
            after = _see_models(state, seen, now)
        case Page():
            after = _see_page(state, seen.reading, now)
        case Warmup():
            after = _see_warmup(state, seen)
        case StartupAsked():
            after = replace(state, loss=None, since=now) if state.loss else state
    return after


def _lose(state: State, now: float) -> State:
    loss = Loss(now, state.warm) if state.started else None
    return State(state.incarnation + 1, now, loss=loss)


def _replace_engine(state: State, now: float, identity: str | None) -> State:
    return State(state.incarnation + 1, now, identity, listening=True)


def _see_listener(state: State, seen: Listener, now: float) -> State:
    if not seen.known:
        return state
    if seen.identity is None:
        return _lose(state, now) if state.listening else state
    if state.listening and state.identity is not None and not same_engine(state.identity, seen.identity):
        return _replace_engine(state, now, seen.identity)
    return _heard(replace(state, identity=seen.identity))


def _heard(state: State) -> State:
    return replace(state, listening=True, loss=None)


def _see_health(state: State, seen: Health, now: float) -> State:
    if seen.outcome is Outcome.REFUSED and state.identity is None:  # the socket table cannot say it
        return _lose(state, now) if state.listening else state
    if seen.outcome in {Outcome.WELL, Outcome.UNWELL} and state.identity is None:
        state = _heard(state)
    if seen.outcome is Outcome.WELL:
        return replace(state, pulse=Pulse())
    begin = seen.asked_at if state.pulse.failing_since is None else state.pulse.failing_since
    return replace(state, pulse=Pulse(begin, state.pulse.tries + 1, seen.outcome, seen.detail))


def _see_models(state: State, seen: Models, now: float) -> State:
    if not seen.listed:
        return replace(state, models_detail=seen.detail)
    return state if state.started else replace(_heard(state), started_at=now, models_detail="")


def _see_warmup(state: State, seen: Warmup) -> State:
    if not state.started or state.warm:
        return state
    # An engine may call itself unwell all the time while it loads; that is no evidence once it has served.
    return replace(state, warm=seen.done, warmup=seen, pulse=Pulse() if seen.done else state.pulse)


def _see_page(state: State, reading: Reading, now: float) -> State:
    if _other_process(state, reading):
        return _replace_engine(state, now, None) if state.listening else state
    unmoved = _unmoved_since(state.load, reading, now)
    moved = reading.progress != state.load.reading.progress and state.load.read_at is not None
    # An engine that makes progress does not hang, however long its health path waits behind other work.
    excused = moved and state.pulse.last in {Outcome.SILENT, Outcome.BROKEN}
    return replace(state, load=Load(reading, now, unmoved), pulse=Pulse() if excused else state.pulse)


def _other_process(state: State, reading: Reading) -> bool:
    """Only where the socket table says nothing: several API servers of one engine each tell their own start time."""
    before, after = state.load.reading.process_start, reading.process_start
    return state.identity is None and before is not None and after is not None and abs(after - before) > 1


def _unmoved_since(load: Load, reading: Reading, now: float) -> float | None:
    if not reading.running or not reading.progress:
        return None
    if load.read_at is None or now - load.read_at > PAGE_GAP_SECONDS:
        return now
    if reading.progress != load.reading.progress or not load.reading.running:
        return now
    return load.unmoved_since if load.unmoved_since is not None else load.read_at


# ---- judgement ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of a probe and its reason, one line."""

    ok: bool
    reason: str


Evidence = Callable[[State, float, Limits], str | None]


def phase(state: State, now: float, limits: Limits, draining: bool = False) -> Phase:
    """The phase at `now`."""
    if hang(state, now, limits) is not None:
        return Phase.DEAD if state.loss else Phase.STUCK
    if not state.listening:
        return Phase.DEAD if state.loss else Phase.STARTING
    if not state.started:
        return Phase.LOADING
    if not state.warm:
        return Phase.WARMING
    return Phase.DRAINING if draining else Phase.READY


def hang(state: State, now: float, limits: Limits) -> str | None:
    """The first positive evidence that the engine will not serve again by itself, or None."""
    return next((reason for evidence in EVIDENCE if (reason := evidence(state, now, limits)) is not None), None)


def _port_refuses(state: State, now: float, limits: Limits) -> str | None:
    if state.loss is None or not state.loss.was_ready or now - state.loss.since <= limits.silence:
        return None
    return f"the engine was ready and its port has refused for {now - state.loss.since:.0f} s"


def _health_fails(state: State, now: float, limits: Limits) -> str | None:
    pulse = state.pulse
    if not state.warm or pulse.failing_since is None or pulse.tries < limits.silent_tries:
        return None
    failing = now - pulse.failing_since
    if failing <= limits.silence:
        return None
    return f"the engine's health path has failed {pulse.tries} times in {failing:.0f} s ({_pulse_text(pulse)})"


def _no_progress(state: State, now: float, limits: Limits) -> str | None:
    load = state.load
    if not state.warm or load.unmoved_since is None or load.read_at is None or now - load.read_at > PAGE_GAP_SECONDS:
        return None
    unmoved = now - load.unmoved_since
    if unmoved <= limits.longest_prefill:
        return None
    return f"{load.reading.running or 0:.0f} requests run and no token or step was counted for {unmoved:.0f} s"


def _warmup_unanswered(state: State, now: float, limits: Limits) -> str | None:
    if state.warm or not state.warmup.unanswered:
        return None
    return f"a warm-up request was not answered within the start-up budget of {limits.startup_budget:.0f} s"


EVIDENCE: Final[tuple[Evidence, ...]] = (_port_refuses, _health_fails, _no_progress, _warmup_unanswered)


def _pulse_text(pulse: Pulse) -> str:
    return f"{pulse.last}: {pulse.detail}" if pulse.detail else str(pulse.last)


def liveness(state: State, now: float, limits: Limits) -> Verdict:
    """Alive unless there is positive evidence of a hang."""
    reason = hang(state, now, limits)
    return Verdict(ok=reason is None, reason=reason or "no evidence of a hang")


def startup(state: State, now: float, limits: Limits) -> Verdict:
    """Started once the port answers and the model is listed."""
    if state.started:
        return Verdict(ok=True, reason="the model is listed")
    spent = f"{now - state.since:.0f} s of {limits.startup_budget:.0f} s"
    if not state.listening:
        return Verdict(ok=False, reason=f"the engine's port does not answer yet ({spent})")
    return Verdict(ok=False, reason=f"the model is not listed yet ({spent}): {state.models_detail or 'no answer yet'}")


def readiness(state: State, now: float, limits: Limits, draining: bool = False) -> Verdict:
    """Ready when started, warmed, well and not draining."""
    here = phase(state, now, limits, draining)
    if here is Phase.READY and state.pulse.last is Outcome.UNWELL:
        return Verdict(ok=False, reason=f"the engine calls itself unwell: {state.pulse.detail}")
    return Verdict(ok=here is Phase.READY, reason=_readiness_reason(state, here, now, limits))


def _readiness_reason(state: State, here: Phase, now: float, limits: Limits) -> str:
    match here:
        case Phase.READY:
            return "ready"
        case Phase.DRAINING:
            return "draining"
        case Phase.WARMING:
            return f"warming up: {state.warmup.detail or 'the first requests are under way'}"
        case Phase.STARTING | Phase.LOADING:
            return startup(state, now, limits).reason
        case Phase.STUCK | Phase.DEAD:
            return hang(state, now, limits) or "nothing listens on the engine's port any more"
