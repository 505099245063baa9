"""What a state means: a phase, evidence of a hang, and the answers of the probes. Pure, as the state itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from stoker.agent.state import PAGE_GAP_SECONDS, Limits, Outcome, Phase, Pulse, State


def idle_seconds(state: State, now: float) -> float | None:
    """How long a warm engine has given no sign of work; None where requests run, or no fresh page says.

    Signs are a counter of progress that moves, and an answer to a question.
    """
    load = state.load
    if not state.warm or load.read_at is None or now - load.read_at > PAGE_GAP_SECONDS:
        return None
    if load.reading.running or not load.reading.progress:
        return None
    return now - max(state.since, load.moved_at or state.since, state.answered_at or state.since)


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


def _mute_when_asked(state: State, now: float, limits: Limits) -> str | None:
    """Only beside a page that shows no progress since: a request may wait behind others that came after it was sent."""
    mute, load = state.mute, state.load
    if not state.warm or mute is None or load.read_at is None or now - load.read_at > PAGE_GAP_SECONDS:
        return None
    if load.read_at <= mute.until or not load.reading.progress or (load.moved_at or 0) >= mute.since:
        return None
    return f"no request ran and one of a single token has not been answered for {now - mute.since:.0f} s"


def _warmup_unanswered(state: State, now: float, limits: Limits) -> str | None:
    if state.warm or not state.warmup.unanswered:
        return None
    return f"a warm-up request was not answered within the start-up budget of {limits.startup_budget:.0f} s"


EVIDENCE: Final[tuple[Evidence, ...]] = (
    _port_refuses,
    _health_fails,
    _no_progress,
    _mute_when_asked,
    _warmup_unanswered,
)


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
