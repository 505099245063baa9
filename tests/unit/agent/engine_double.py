"""A stand-in for an engine: a real HTTP server in a process of its own, that can be told to misbehave.

    python engine_double.py PORT SPELLING LOAD_SECONDS

It speaks the health, model, metrics and generation paths as vLLM and llama.cpp do, and no model is behind it. Like vLLM
it does not listen while it loads; like llama.cpp it listens and answers 503. `POST /double` sets its behaviour.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

from aiohttp import web

NAMES = {
    "vllm": {
        "running": "vllm:num_requests_running",
        "waiting": "vllm:num_requests_waiting",
        "prompt": "vllm:prompt_tokens_total",
        "generated": "vllm:generation_tokens_total",
        "steps": "vllm:iteration_tokens_total_count",
    },
    "llama.cpp": {
        "running": "llamacpp:requests_processing",
        "waiting": "llamacpp:requests_deferred",
        "prompt": "llamacpp:prompt_tokens_total",
        "generated": "llamacpp:tokens_predicted_total",
        "steps": "llamacpp:n_decode_total",
    },
}


@dataclass
class Behaviour:
    """What the double does; each field is set by `POST /double`."""

    health: str = "well"  # well, unwell, hang
    metrics: str = "well"  # well, garbage, huge, error, hang, absent
    generate: str = "well"  # well, frozen, mute (frozen, and no figure tells of it), no-chat, error, empty
    model: str = "m"
    token_seconds: float = 0.0


@dataclass
class Double:
    """Figures of the double."""

    spelling: str
    behaviour: Behaviour = field(default_factory=Behaviour)
    loaded: bool = False
    thawed: asyncio.Event = field(default_factory=asyncio.Event)
    figures: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(("running", "waiting", "prompt", "generated", "steps", "finished"), 0.0)
    )
    paths: list[str] = field(default_factory=list)


DOUBLE = web.AppKey("double", Double)


def loading() -> web.Response:
    return web.json_response({"error": {"message": "Loading model", "code": 503}}, status=503)


async def health(request: web.Request) -> web.Response:
    double = request.app[DOUBLE]
    if double.behaviour.health == "hang":
        await asyncio.sleep(3600)
    if not double.loaded:
        return loading()
    return web.Response(status=200 if double.behaviour.health == "well" else 503)


async def models(request: web.Request) -> web.Response:
    double = request.app[DOUBLE]
    return web.json_response({"data": [{"id": double.behaviour.model}]}) if double.loaded else loading()


async def metrics(request: web.Request) -> web.Response:
    double = request.app[DOUBLE]
    match double.behaviour.metrics:
        case "hang":
            await asyncio.sleep(3600)
        case "error":
            return web.Response(status=500)
        case "garbage":
            return web.Response(body=b"\xff\xfe{{{" + page(double).encode().replace(b" ", b"{"))
        case "huge":
            return web.Response(body=page(double).encode() + b"# padding\n" * 1_000_000)
        case "absent":
            return web.Response(text="other 1\n")
    return web.Response(text=page(double))


def page(double: Double) -> str:
    """The metrics page; vLLM's has labels, a rank with nothing to do, and a series with a longer name."""
    names, vllm = NAMES[double.spelling], double.spelling == "vllm"
    lines = []
    for key, name in names.items():
        lines.append(
            f'{name}{{engine="0",model_name="m"}} {double.figures[key]}' if vllm else f"{name} {double.figures[key]}"
        )
    if vllm:
        lines += [f'{name}{{engine="1",model_name="m"}} 0.0' for name in names.values()]
        lines.append('vllm:num_requests_waiting_by_reason{engine="0",reason="deferred"} 7.0')
        lines.append(f'http_requests_total{{handler="/v1/chat/completions"}} {double.figures["finished"]}')
    return "\n".join(lines) + "\n"


async def generate(request: web.Request) -> web.StreamResponse:
    double = request.app[DOUBLE]
    double.paths.append(request.path)
    body = await request.json()
    if body["model"] != double.behaviour.model:
        return web.Response(status=404)
    if double.behaviour.generate == "mute":
        await double.thawed.wait()
    if double.behaviour.generate == "error" or (double.behaviour.generate == "no-chat" and "messages" in body):
        return web.Response(status=400, text="cannot\ndo that")
    if double.behaviour.generate == "empty":
        return web.json_response({"choices": []})
    double.figures["running"] += 1
    try:
        return await (stream if body.get("stream") else whole)(request, double, body)
    finally:
        double.figures["running"] -= 1
        double.figures["finished"] += 1


async def whole(_request: web.Request, double: Double, body: dict[str, Any]) -> web.StreamResponse:
    for _ in range(body["max_tokens"]):
        await token(double)
    return web.json_response({"choices": [{"index": 0}]})


async def stream(request: web.Request, double: Double, body: dict[str, Any]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    for index in range(body["max_tokens"]):
        await token(double)
        await response.write(f"data: {index}\n\n".encode())
    await response.write(b"data: [DONE]\n\n")
    return response


async def token(double: Double) -> None:
    await asyncio.sleep(double.behaviour.token_seconds)
    await double.thawed.wait()
    double.figures["generated"] += 1
    double.figures["steps"] += 1


async def control(request: web.Request) -> web.Response:
    """Set the behaviour anew (what is not named falls back to its default) and tell the figures."""
    double = request.app[DOUBLE]
    if request.method == "POST":
        double.behaviour = Behaviour(**await request.json())
        (double.thawed.clear if double.behaviour.generate in {"frozen", "mute"} else double.thawed.set)()
    return web.json_response({**double.figures, "paths": double.paths, "behaviour": asdict(double.behaviour)})


def application(double: Double) -> web.Application:
    app = web.Application()
    app[DOUBLE] = double
    app.router.add_get("/health", health)
    app.router.add_get("/v1/models", models)
    app.router.add_get("/metrics", metrics)
    app.router.add_post("/v1/chat/completions", generate)
    app.router.add_post("/v1/completions", generate)
    app.router.add_route("*", "/double", control)
    return app


async def main(port: int, spelling: str, load_seconds: float) -> None:
    double = Double(spelling)
    double.thawed.set()
    if spelling == "vllm":
        await asyncio.sleep(load_seconds)
    runner = web.AppRunner(application(double), handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    if spelling == "llama.cpp":
        await asyncio.sleep(load_seconds)
    double.loaded = True
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    print(json.dumps({"listening": port}), flush=True)
    await stopped.wait()
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
