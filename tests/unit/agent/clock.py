"""The state machine on a clock that the test turns."""

from __future__ import annotations

from typing import Any

from stoker.agent.judgement import liveness, phase, readiness
from stoker.agent.listener import Listener
from stoker.agent.state import Health, Limits, Models, Observation, Outcome, Page, Phase, State, Warmup, step
from tests.builders.agents import reading

LIMITS = Limits(longest_prefill=120, startup_budget=600)
UP = Listener(known=True, identity="boot/net/1")
OTHER = Listener(known=True, identity="boot/net/2")
DOWN = Listener(known=True)
BLIND = Listener(known=False)


class Clock:
    """Feeds observations at times of the test's choosing."""

    def __init__(self, state: State | None = None) -> None:
        self.now = 1000.0
        self.state = state or State(since=self.now)

    def see(self, *observations: Observation, after: float = 0.0) -> Clock:
        self.now += after
        for each in observations:
            self.state = step(self.state, each, self.now)
        return self

    def failed_tries(self, outcome: Outcome, seconds: float, every: float = 6.0) -> Clock:
        end = self.now + seconds
        while self.now < end:
            asked_at = self.now
            self.see(Health(outcome, asked_at), after=every)
        return self

    def pages(self, seconds: float, every: float = 2.0, **values: Any) -> Clock:
        end = self.now + seconds
        while self.now < end:
            self.see(Page(reading(**values)), after=every)
        return self

    @property
    def phase(self) -> Phase:
        return phase(self.state, self.now, LIMITS)

    @property
    def alive(self) -> bool:
        return liveness(self.state, self.now, LIMITS).ok

    @property
    def ready(self) -> bool:
        return readiness(self.state, self.now, LIMITS).ok


def ready_clock() -> Clock:
    return Clock().see(UP, Models(listed=True), Warmup(done=True), Health(Outcome.WELL, 1000.0))
