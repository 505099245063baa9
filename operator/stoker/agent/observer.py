"""The loops around the state machine: they watch the engine, warm it up, and hold drains open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final, Protocol

from stoker.agent import drain as drains
from stoker.agent.config import AgentConfig
from stoker.agent.drain import Done, DrainLimits
from stoker.agent.engine import Answer
from stoker.agent.handover import HELD_LIMIT
from stoker.agent.judgement import Verdict, idle_seconds
from stoker.agent.judgement import liveness as judge_liveness
from stoker.agent.judgement import phase as judge_phase
from stoker.agent.judgement import readiness as judge_readiness
from stoker.agent.judgement import startup as judge_startup
from stoker.agent.listener import Listener
from stoker.agent.metrics import Reading
from stoker.agent.question import ask
from stoker.agent.state import Health, Limits, Models, Observation, Page, Phase, Question, step
from stoker.agent.store import Saved, Store, resume, resume_drain, snapshot
from stoker.agent.warmup import WarmupPlan, warm_up

log = logging.getLogger("stoker.agent")

DRAIN_CALLERS_LIMIT: Final = HELD_LIMIT


class Engine(Protocol):
    """What the loops need of the engine's client."""

    async def health(self) -> Health:
        """Ask the health path."""
        ...

    async def models(self) -> Models:
        """Look for the served name."""
        ...

    async def metrics(self) -> Reading | None:
        """Read the metrics page."""
        ...

    async def post(self, path: str, body: dict[str, object], limit_seconds: float) -> Answer:
        """Send a JSON request."""
        ...


class Port(Protocol):
    """What the loops need to know of the engine's port, without asking the engine."""

    def read(self) -> Listener:
        """Return what listens on it."""
        ...

    def is_bound(self) -> bool:
        """Whether it is bound, even if nothing listens on it yet. Asked only of an engine that is to end."""
        ...


@dataclass(frozen=True, slots=True)
class Rhythm:
    """Pauses of the loops, in seconds. A drain reads the metrics page at the pace of `watch`.

    `idle`: how long an engine may show no sign of work before it is asked for one (`question`).
    `hold`: how long an engine that was drained takes no traffic. It is twice what the kubelet gives an engine from the
    end of its drain to SIGKILL; one that still runs then was drained by accident, and serves again.
    """

    watch: float = 1.0
    metrics: float = 2.0
    retry_limit: float = 10.0
    drain_check: float = 0.2
    idle: float = 60.0
    hold: float = 60.0


class TooManyDrainsError(Exception):
    """More callers wait for the drain than are let in."""


class Observer:
    """The agent's knowledge of its engine, kept up to date by `run`."""

    def __init__(
        self,
        config: AgentConfig,
        engine: Engine,
        port: Port,
        store: Store,
        clock: Callable[[], float],
        rhythm: Rhythm = Rhythm(),
        limits: Limits | None = None,
    ) -> None:
        self.config = config
        self.limits = limits or Limits(config.longest_prefill_seconds, config.startup_budget_seconds)
        self._engine, self._port, self._store, self._clock, self._rhythm = engine, port, store, clock, rhythm
        self._drain_done: Done | None = None
        self._drain_callers = 0
        settle, quiet, budget = config.settle_seconds, config.quiet_seconds, config.drain_budget_seconds
        self._drain_limits = DrainLimits(settle, quiet, budget, rhythm.hold)
        self._hurry = asyncio.Event()
        self._question: asyncio.Task[Question] | None = None
        self.idle_checks = 0
        self.beat_at = clock()
        self._saved: Saved | None = store.load()
        self.state = resume(self._saved, port.read(), clock())
        self._drain = resume_drain(self._saved, self.state, clock())
        self._told = self.phase
        self._save()
        log.info("the agent watches its engine", extra={"phase": self._told, "incarnation": self.state.incarnation})

    # ---- what is known ----------------------------------------------------------------------------------------------

    @property
    def draining(self) -> bool:
        """Whether a drain keeps the engine out of traffic: from its beginning until a while after its end."""
        return drains.holds(self._drain, self.state.incarnation, self._clock(), self._drain_limits)

    @property
    def phase(self) -> Phase:
        """The phase now."""
        return judge_phase(self.state, self._clock(), self.limits, self.draining)

    def startup(self) -> Verdict:
        """The answer of the startup probe."""
        return judge_startup(self.state, self._clock(), self.limits)

    def readiness(self) -> Verdict:
        """The answer of the readiness probe."""
        return judge_readiness(self.state, self._clock(), self.limits, self.draining)

    def liveness(self) -> Verdict:
        """The answer of the liveness probe."""
        return judge_liveness(self.state, self._clock(), self.limits)

    def reading(self, newest_seconds: float) -> Reading | None:
        """The last metrics page of this incarnation, unless it is older than that."""
        read_at = self.state.load.read_at
        return self.state.load.reading if read_at is not None and self._clock() - read_at <= newest_seconds else None

    def silent_seconds(self) -> float:
        """How long ago the loops last went round."""
        return self._clock() - self.beat_at

    # ---- observations -----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Read the socket table now, so that no probe answers for an engine that is gone."""
        self.apply(self._port.read())

    def apply(self, seen: Observation, incarnation: int | None = None) -> None:
        """Take in one observation, and tell and store what it changed."""
        self.state = step(self.state, seen, self._clock(), incarnation)
        if isinstance(seen, Page) and self._drain is not None:
            self._drain = drains.see(self._drain, seen.reading, self._clock(), self.config.metrics, self._drain_limits)
        self._tell()
        self._save()

    def _tell(self) -> None:
        before, self._told = self._told, self.phase
        if self._told is not before:
            known = {"phase": self._told, "before": before, "incarnation": self.state.incarnation}
            log.info("the engine changed its phase", extra={**known, "reason": self.readiness().reason})

    def _save(self) -> None:
        saved = snapshot(self.state, self._drain.began if self._drain is not None and self.draining else None)
        if saved != self._saved:
            self._saved = saved
            self._store.save(saved)

    # ---- loops ------------------------------------------------------------------------------------------------------

    async def run(self, beat: Callable[[], None] = lambda: None) -> None:
        """Watch until cancelled. Raises where a loop fails: the worker then ends and is restarted."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watch(beat))
            group.create_task(self._watch_health())
            group.create_task(self._watch_metrics())
            group.create_task(self._prepare())
            group.create_task(self._watch_idleness())

    async def _watch(self, beat: Callable[[], None]) -> None:
        while True:
            self.look()
            self.beat_at = self._clock()
            beat()
            await asyncio.sleep(self._rhythm.watch)

    async def _watch_health(self) -> None:
        while True:
            incarnation = self.state.incarnation
            self.apply(await self._engine.health(), incarnation)
            await asyncio.sleep(self._rhythm.watch)

    async def _watch_metrics(self) -> None:
        while True:
            self._hurry.clear()
            incarnation = self.state.incarnation
            reading = await self._engine.metrics() if self.state.started else None
            if reading is not None:
                self.apply(Page(reading), incarnation)
            await self._pause(self._rhythm.watch if self.draining else self._rhythm.metrics)

    async def _pause(self, seconds: float) -> None:
        """Sleep, but not while a drain has just begun."""
        try:
            await asyncio.wait_for(self._hurry.wait(), seconds)
        except TimeoutError:
            return

    async def _prepare(self) -> None:
        """Find the model and warm up, again for each incarnation."""
        retry = self._rhythm.watch
        while True:
            incarnation = self.state.incarnation
            if self.state.listening and not self.state.started:
                self.apply(await self._engine.models(), incarnation)
            failed = self.state.started and not self.state.warm and not await self._warm_up()
            retry = min(2 * retry, self._rhythm.retry_limit) if failed else self._rhythm.watch
            await asyncio.sleep(retry)

    async def _warm_up(self) -> bool:
        incarnation = self.state.incarnation
        plan = WarmupPlan.of(self.config.served_name, self.config.warmup)
        begun = self._clock()
        result = await warm_up(self._engine, plan, self.limits.startup_budget)
        self.apply(result, incarnation)
        took = round(self._clock() - begun, 3)
        level = logging.INFO if result.done else logging.WARNING
        log.log(level, "warm-up ended", extra={"done": result.done, "reason": result.detail, "seconds": took})
        return result.done

    async def _watch_idleness(self) -> None:
        while self.config.metrics.served_apart:
            idle = idle_seconds(self.state, self._clock())
            if idle is not None and idle >= self._rhythm.idle and not self.draining:
                await self._ask()
            await asyncio.sleep(self._rhythm.watch)

    async def _ask(self) -> None:
        """Ask for one token, unless a drain begins meanwhile."""
        incarnation, bound = self.state.incarnation, self.limits.longest_prefill
        question = ask(self._engine, self.config.served_name, bound, self._clock)
        self._question = task = asyncio.create_task(question)
        self.idle_checks += 1
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
        if not task.cancelled():
            self.apply(task.result(), incarnation)

    # ---- drain ------------------------------------------------------------------------------------------------------

    async def drain(self, resumed: bool = False) -> Done:
        """Hold until the engine hears SIGTERM and is drained. A caller that is cancelled lets go.

        Callers share one drain; `resumed` ones, which an earlier worker left, go on with the one it had begun.
        Raises TooManyDrainsError.
        """
        async with self._let_in():
            await self._until_it_hears()
            done = drains.refusal(self.phase)
            if done is None:
                self._join(resumed)
            while done is None:
                await asyncio.sleep(self._rhythm.drain_check)
                done = self._drain_ending()
            return done

    async def _until_it_hears(self) -> None:
        self.look()
        called_at, bound, most = self._clock(), False, self.config.deaf_seconds
        if drains.may_be_deaf(self.state, called_at, called_at, most):
            log.info("a new engine may not hear SIGTERM yet; it is held", extra={"most_seconds": most})
        while not bound and drains.may_be_deaf(self.state, called_at, self._clock(), most):
            bound = self._port.is_bound()
            # Engines make their handler just before or just after they bind their port.
            await asyncio.sleep(self._rhythm.watch if bound else self._rhythm.drain_check)
            self.look()

    def _drain_ending(self) -> Done | None:
        """The end of the drain, the same for all that wait for it."""
        self.look()
        if self._drain is None or self._drain.incarnation != self.state.incarnation:
            return drains.refusal(self.phase) or Done(clean=True, reason="nothing to drain: the engine was replaced")
        if self._drain_done is None:
            self._drain_done = drains.ending(self._drain, self.phase, self._clock(), self._drain_limits)
        return self._drain_done

    @asynccontextmanager
    async def _let_in(self) -> AsyncIterator[None]:
        if self._drain_callers >= DRAIN_CALLERS_LIMIT:
            raise TooManyDrainsError
        self._drain_callers += 1
        try:
            yield
        finally:
            self._drain_callers -= 1
            if self._drain_callers == 0 and self._drain is not None:
                self._drain = replace(self._drain, over_at=self._clock())
            self._tell()

    def _join(self, resumed: bool) -> None:
        """Take part in the drain that is under way, or begin one."""
        if self._drain is not None and drains.goes_on(self._drain, self.state.incarnation, resumed):
            self._drain = replace(self._drain, over_at=None)
        else:
            reading = self.reading(newest_seconds=10)
            self._drain, self._drain_done = drains.begin(self._clock(), reading, self.state.incarnation), None
        self._hurry.set()
        if self._question is not None:
            self._question.cancel()
        self._tell()
        self._save()


def status(observer: Observer) -> dict[str, object]:
    """The agent's knowledge as one document."""
    state = observer.state
    return {
        "protocol": observer.config.protocol,
        "servedName": observer.config.served_name,
        "phase": observer.phase,
        "incarnation": state.incarnation,
        "started": state.started,
        "warm": state.warm,
        "draining": observer.draining,
        "warmup": state.warmup.detail,
        "reasons": {
            "startup": observer.startup().reason,
            "readiness": observer.readiness().reason,
            "liveness": observer.liveness().reason,
        },
    }
