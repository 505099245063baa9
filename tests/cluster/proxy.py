"""A proxy before the API server, on plain HTTP, whose watches answer as a test wants."""

from __future__ import annotations

import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web

from clusters.controlplane import ControlPlane
from clusters.ports import free_ports

Json = dict[str, object]

EXPIRED: Json = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
GONE: Json = {"type": "ERROR", "object": EXPIRED}
HOP_BY_HOP = {"host", "content-length", "transfer-encoding", "content-encoding", "connection", "accept-encoding"}


class Proxy:
    """Counts lists and watches by path. Every watch gets ``answer`` and ends; all else is the API server's."""

    def __init__(self, plane: ControlPlane, upstream: aiohttp.ClientSession, port: int) -> None:
        self.plane = plane
        self.answer = GONE
        self.watches: Counter[str] = Counter()
        self._upstream = upstream
        self._port = port

    def kubeconfig(self, original: Path) -> Path:
        """Return a kubeconfig for the same user that leads through this proxy."""
        document = yaml.safe_load(original.read_text())
        document["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self._port}"}
        path = original.with_suffix(".proxied")
        path.write_text(yaml.safe_dump(document))
        return path

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one request."""
        if request.query.get("watch") == "true":
            self.watches[request.path] += 1
            return web.Response(text=json.dumps(self.answer) + "\n", content_type="application/json")
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        url = f"{self.plane.server}{request.rel_url}"
        async with self._upstream.request(
            request.method, url, headers=headers, data=await request.read() or None
        ) as answer:
            body = await answer.read()
            return web.Response(status=answer.status, body=body, headers={"Content-Type": answer.content_type})


@asynccontextmanager
async def a_proxy(plane: ControlPlane) -> AsyncIterator[Proxy]:
    """Have a proxy for a while."""
    (port,) = free_ports(1)
    trust = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=str(plane.ca)))
    async with aiohttp.ClientSession(connector=trust) as upstream:
        proxy = Proxy(plane, upstream, port)
        app = web.Application(client_max_size=8 * 1024**2)
        app.router.add_route("*", "/{path:.*}", proxy.handle)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            yield proxy
        finally:
            await runner.cleanup()
