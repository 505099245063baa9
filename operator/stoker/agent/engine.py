"""The client of the engine: one pool of connections, a time limit on every call, a bound on every body."""

from __future__ import annotations

import asyncio
import errno
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from stoker.agent.config import AgentConfig
from stoker.agent.metrics import PAGE_LIMIT_BYTES, Reading, read_page
from stoker.agent.state import Health, Models, Outcome

HEALTH_SECONDS: Final = 5.0
MODELS_SECONDS: Final = 10.0
METRICS_SECONDS: Final = 15.0
CONNECT_SECONDS: Final = 5.0
BODY_LIMIT_BYTES: Final = 1024 * 1024
CONNECTIONS: Final = 8

# What can go wrong between two processes of one pod: the network, the protocol, a header that cannot be read.
CALL_ERRORS: Final = (aiohttp.ClientError, OSError, ValueError)


class BodyTooLargeError(ValueError):
    """A body is longer than the bound of its kind."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answered request: status and body."""

    status: int
    body: bytes


class EngineClient:
    """Talks to the engine of this pod over the loopback. `close` must be awaited at the end."""

    def __init__(self, config: AgentConfig, clock: Callable[[], float], health_seconds: float = HEALTH_SECONDS) -> None:
        self._config = config
        self._health_seconds = health_seconds
        self._clock = clock
        self._base = f"http://127.0.0.1:{config.engine_port}"
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS, use_dns_cache=False),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    async def close(self) -> None:
        """Close the pool."""
        await self._session.close()

    async def health(self) -> Health:
        """Ask the health path. Never raises."""
        asked_at = self._clock()
        try:
            answer = await self._call("GET", self._config.health_path, self._health_seconds)
        except TimeoutError:
            return Health(Outcome.SILENT, asked_at, f"no answer within {self._health_seconds:.0f} s")
        except CALL_ERRORS as error:
            return Health(Outcome.REFUSED if is_refused(error) else Outcome.BROKEN, asked_at, describe(error))
        well = answer.status == 200
        return Health(Outcome.WELL if well else Outcome.UNWELL, asked_at, f"HTTP {answer.status}")

    async def models(self) -> Models:
        """Look for the served name in the model list. Never raises."""
        try:
            answer = await self._call("GET", self._config.models_path, MODELS_SECONDS)
        except TimeoutError:
            return Models(listed=False, detail=f"no answer within {MODELS_SECONDS:.0f} s")
        except CALL_ERRORS as error:
            return Models(listed=False, detail=describe(error))
        if answer.status != 200:
            return Models(listed=False, detail=f"HTTP {answer.status}")
        names = model_names(answer.body)
        if self._config.served_name in names:
            return Models(listed=True)
        return Models(listed=False, detail=f"{self._config.served_name!r} is not among {sorted(names)[:8]}")

    async def metrics(self) -> Reading | None:
        """Read the metrics page; None where it cannot be had. Never raises."""
        try:
            answer = await self._call("GET", self._config.metrics_path, METRICS_SECONDS, PAGE_LIMIT_BYTES)
        except (TimeoutError, *CALL_ERRORS):
            return None
        if answer.status != 200:
            return None
        return read_page(answer.body.decode("utf-8", "replace"), self._config.metrics)

    async def post(self, path: str, body: dict[str, Any], limit_seconds: float) -> Answer:
        """Send a JSON request. Raises TimeoutError and `CALL_ERRORS`."""
        return await self._call("POST", path, limit_seconds, json_body=body)

    async def _call(
        self,
        method: str,
        path: str,
        limit_seconds: float,
        limit_bytes: int = BODY_LIMIT_BYTES,
        json_body: dict[str, Any] | None = None,
    ) -> Answer:
        limits = aiohttp.ClientTimeout(total=limit_seconds, sock_connect=CONNECT_SECONDS)
        request = self._session.request(
            method, self._base + path, json=json_body, timeout=limits, allow_redirects=False
        )
        async with request as response:
            return Answer(response.status, await _bounded(response, limit_bytes))


async def _bounded(response: aiohttp.ClientResponse, limit_bytes: int) -> bytes:
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit_bytes:
            response.close()
            raise BodyTooLargeError(f"the body is longer than {limit_bytes} bytes")
    return bytes(body)


def is_refused(error: BaseException) -> bool:
    """Whether nothing accepts connections on the port."""
    return isinstance(error, OSError) and error.errno == errno.ECONNREFUSED


def describe(error: BaseException) -> str:
    """An error of a call in a few words."""
    if isinstance(error, asyncio.TimeoutError):
        return "no answer in time"
    if is_refused(error):
        return "connection refused"
    return (str(error) or type(error).__name__)[:200]


def model_names(body: bytes) -> frozenset[str]:
    """The names in an OpenAI model list: ids, and aliases where the engine lists them. Empty for anything else."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return frozenset()
    entries = document.get("data") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        return frozenset()
    return frozenset(name for entry in entries if isinstance(entry, dict) for name in _names(entry))


def _names(entry: dict[str, Any]) -> list[str]:
    aliases = entry.get("aliases")
    candidates = [entry.get("id"), *(aliases if isinstance(aliases, list) else [])]
    return [name for name in candidates if isinstance(name, str)]
