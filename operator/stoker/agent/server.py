"""The agent's HTTP interface: the engine's probes and preStop hook, the agent's own probes, metrics, status."""

from __future__ import annotations

import hmac
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import web

from stoker.agent.handover import Handover
from stoker.agent.judgement import Verdict
from stoker.agent.metrics import Family, engine_families, expose
from stoker.agent.observer import Observer, TooManyDrainsError, status
from stoker.agent.state import StartupAsked

log = logging.getLogger("stoker.agent")

OBSERVER: Final = web.AppKey("observer", Observer)
HANDOVER: Final = web.AppKey("handover", Handover)
SILENCE_LIMIT_SECONDS: Final = 30.0
"""The agent calls itself dead when its loops have not gone round for so long."""
PAGE_AGE_LIMIT_SECONDS: Final = 30.0
"""Figures of the engine older than this are left out of the agent's metrics."""
REASON_LIMIT: Final = 400
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def application(observer: Observer, handover: Handover) -> web.Application:
    """The application over one observer; callers of a drain are handed over to whom `handover` leads."""
    app = web.Application(client_max_size=1024)
    app[OBSERVER], app[HANDOVER] = observer, handover
    app.add_routes(
        [
            web.get("/startup", startup),
            web.get("/readiness", readiness),
            web.get("/liveness", liveness),
            web.get("/drain", drain),
            web.get("/agent/live", agent_live),
            web.get("/agent/started", agent_started),
            web.get("/metrics", metrics),
            web.get("/status", show_status),
        ]
    )
    return app


def answer(verdict: Verdict) -> web.Response:
    """200 or 503 with a reason on one line.

    The kubelet reads the status code alone (its event says "HTTP probe failed with statuscode: 503"). The reason is for
    whoever asks by hand; it also stands in `/status`, and in the agent's log at each change of the phase.
    """
    return web.Response(status=200 if verdict.ok else 503, text=one_line(verdict.reason) + "\n")


def one_line(text: str) -> str:
    """Text with everything that could break a line or a terminal replaced, and bounded."""
    return re.sub(r"[^\x20-\x7e\u00a0-\u1fff\u2010-\u2027\u3000-\uffef]", " ", text)[:REASON_LIMIT]


async def startup(request: web.Request) -> web.Response:
    """The engine's startup probe."""
    observer = request.app[OBSERVER]
    observer.look()
    observer.apply(StartupAsked())
    return answer(observer.startup())


async def readiness(request: web.Request) -> web.Response:
    """The engine's readiness probe."""
    observer = request.app[OBSERVER]
    observer.look()
    return answer(observer.readiness())


async def liveness(request: web.Request) -> web.Response:
    """The engine's liveness probe."""
    observer = request.app[OBSERVER]
    observer.look()
    return answer(observer.liveness())


async def drain(request: web.Request) -> web.Response:
    """The engine's preStop hook. Cancelled when the caller goes away, which ends the drain.

    The caller is kept while it waits: should this worker die, the next one answers it.
    """
    observer = request.app[OBSERVER]
    token = request.query.get("token", "")
    if not hmac.compare_digest(token.encode(), observer.config.drain_token.encode()):
        log.warning("a drain was refused: wrong token")
        return web.Response(status=403, text="wrong token\n")
    with kept(request):
        response = await drained(observer)
        await response.prepare(request)
        await response.write_eof()
    return response


@contextmanager
def kept(request: web.Request) -> Iterator[None]:
    """Have the request's connection outlive this worker while the body runs."""
    connection, handover = request.get_extra_info("socket"), request.app[HANDOVER]
    if connection is None or connection.fileno() < 0:  # the caller has gone already
        yield
        return
    number = handover.keep(connection.fileno())
    try:
        yield
    finally:
        handover.drop(number)


async def drained(observer: Observer, resumed: bool = False) -> web.Response:
    """The answer to a caller of the drain, when there is one."""
    try:
        done = await observer.drain(resumed)
    except TooManyDrainsError:
        return web.Response(status=503, text="too many callers wait for the drain\n")
    log.info("a drain ended", extra={"clean": done.clean, "reason": done.reason})
    return web.Response(text=one_line(done.reason) + "\n")


async def agent_live(request: web.Request) -> web.Response:
    """The agent's own liveness; says nothing of the engine."""
    silent = request.app[OBSERVER].silent_seconds()
    return answer(Verdict(silent <= SILENCE_LIMIT_SECONDS, f"the agent last looked at its engine {silent:.0f} s ago"))


async def agent_started(_request: web.Request) -> web.Response:
    """The agent's own startup probe; says nothing of the engine."""
    return answer(Verdict(ok=True, reason="the agent runs"))


async def metrics(request: web.Request) -> web.Response:
    """The engine's figures under the names that are the same for every engine."""
    observer = request.app[OBSERVER]
    observer.look()
    page = expose(families(observer), observer.config.served_name)
    return web.Response(body=page.encode(), headers={"Content-Type": METRICS_TYPE})


def families(observer: Observer) -> list[Family]:
    """The agent's own figures, and those of the engine while they are fresh."""
    ready, state = observer.readiness().ok, observer.state
    own = [
        Family("stoker_engine_ready", "gauge", "1 while the engine takes traffic.", float(ready)),
        Family("stoker_engine_warm", "gauge", "1 once warm-up was answered.", float(state.warm)),
        Family("stoker_engine_draining", "gauge", "1 from the begin of a drain.", float(observer.draining)),
        Family("stoker_engine_incarnation", "gauge", "Counts the engine's processes in this pod.", state.incarnation),
    ]
    if observer.config.metrics.served_apart:
        asked = "Requests of one token that the agent sent to an idle engine; the engine's counters hold them too."
        own.append(Family("stoker_engine_idle_checks_total", "counter", asked, observer.idle_checks))
    reading = observer.reading(PAGE_AGE_LIMIT_SECONDS)
    return own + (list(engine_families(reading)) if reading else [])


async def show_status(request: web.Request) -> web.Response:
    """Everything that is known, as JSON."""
    observer = request.app[OBSERVER]
    observer.look()
    return web.Response(text=json.dumps(status(observer)) + "\n", content_type="application/json")
