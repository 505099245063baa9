"""The state machine of one engine, as its agent sees it: observations in, the state out (`judgement` reads it).

Pure: time comes in as an argument, in seconds of one monotonic clock. The state belongs to one incarnation of the
engine; an observation that was asked of another incarnation is dropped.
"""

from __future__ import annotations

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


STARTUP_GAP_SECONDS: Final = 9.0
"""The startup probe is called every 3 s while the engine's container runs. Where it was not for this long, another
container runs now: an engine that dies before it listens leaves no other trace."""


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
class Question:
    """A request of the agent's own to an idle engine, sent at `asked_at`, has ended; `silent`: not within its bound."""

    asked_at: float
    silent: bool


@dataclass(frozen=True, slots=True)
class StartupAsked:
    """The startup probe was called: the engine's container runs, which may be long after its agent does."""


Observation = Listener | Health | Models | Page | Warmup | Question | StartupAsked


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
    """The last metrics page, which page last showed progress, and since when requests have run without any."""

    reading: Reading = field(default_factory=Reading)
    read_at: float | None = None
    moved_at: float | None = None
    unmoved_since: float | None = None


@dataclass(frozen=True, slots=True)
class Mute:
    """Questions to an idle engine had no answer: the first was sent at `since`, the last given up at `until`."""

    since: float
    until: float


@dataclass(frozen=True, slots=True)
class Loss:
    """Nothing listens where an engine had started."""

    since: float
    was_ready: bool


@dataclass(frozen=True, slots=True)
class State:
    """Everything known about the present incarnation. Times are monotonic seconds.

    `since`: the first startup probe of the engine's container, which comes within seconds of its start; until then
    (`asked` is False) the time at which the agent began, or lost the engine before. `asked_at`: the last such probe.
    """

    incarnation: int = 1
    since: float = 0.0
    identity: str | None = None
    listening: bool = False
    asked_at: float | None = None
    started_at: float | None = None
    models_detail: str = ""
    warm: bool = False
    warmup: Warmup = Warmup(done=False)
    pulse: Pulse = field(default_factory=Pulse)
    load: Load = field(default_factory=Load)
    answered_at: float | None = None
    mute: Mute | None = None
    loss: Loss | None = None

    @property
    def asked(self) -> bool:
        """The startup probe was called."""
        return self.asked_at is not None

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
        case Question():
            after = _see_question(state, seen, now)
        case StartupAsked():
            after = _see_startup(state, now)
    return after


def _see_startup(state: State, now: float) -> State:
    if state.listening:
        return state
    runs_on = state.asked_at is not None and now - state.asked_at <= STARTUP_GAP_SECONDS
    return replace(state, asked_at=now) if runs_on else replace(state, asked_at=now, loss=None, since=now)


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


def _see_question(state: State, seen: Question, now: float) -> State:
    if not seen.silent:
        return replace(state, answered_at=now, mute=None)
    return replace(state, mute=Mute(state.mute.since if state.mute else seen.asked_at, now))


def _see_page(state: State, reading: Reading, now: float) -> State:
    if _other_process(state, reading):
        return _replace_engine(state, now, None) if state.listening else state
    unmoved = _unmoved_since(state.load, reading, now)
    moved = reading.progress != state.load.reading.progress and state.load.read_at is not None
    # An engine that makes progress does not hang, however long its health path waits behind other work.
    excused = moved and state.pulse.last in {Outcome.SILENT, Outcome.BROKEN}
    load = Load(reading, now, now if moved else state.load.moved_at, unmoved)
    return replace(state, load=load, pulse=Pulse() if excused else state.pulse)


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
