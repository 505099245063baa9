"""One typed facade over ``kubernetes.aio``: raw dictionaries, a time limit and a bound on every call.

The library gives configuration, authentication and transport. Its generated model classes are not used: they cost
memory and drop fields that they do not know.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from urllib.parse import urlencode

import aiohttp
import yarl
from kubernetes.aio.client import ApiClient, Configuration

from stoker import __version__
from stoker.kube.errors import TooLarge, Unavailable, error_from_response
from stoker.kube.resources import POD, Resource

DEFAULT_TIMEOUT_SECONDS = 10.0
CONNECT_TIMEOUT_SECONDS = 5.0
MAX_OBJECT_BYTES = 8 << 20
MAX_PAGE_BYTES = 128 << 20
PAGE_ITEMS = 500
CONNECTIONS = 64

_JSON = "application/json"
_APPLY = "application/apply-patch+yaml"
_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class WriteGate(Protocol):
    """Says whether this process may write now."""

    def remaining_seconds(self) -> float:
        """Return for how long writes are safe. Raises NotLeader when they are not."""


class Observer(Protocol):
    """Told of each call, for metrics."""

    def __call__(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """``code`` is 0 when there was no answer."""


def unobserved(verb: str, resource: str, code: int, seconds: float) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request. ``timeout_seconds`` covers it whole, from the connection to the last byte of the answer."""

    verb: str
    resource: str
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    content_type: str = _JSON
    accept: str = _JSON
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    max_bytes: int = MAX_OBJECT_BYTES


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects of a collection: selectors as the API server spells them, whether metadata is enough, or one."""

    labels: str = ""
    fields: str = ""
    metadata_only: bool = False
    first_only: bool = False

    def query(self) -> dict[str, str]:
        """Return the query parameters of the first page."""
        limit = 1 if self.first_only else PAGE_ITEMS
        chosen = {"labelSelector": self.labels, "fieldSelector": self.fields, "limit": str(limit)}
        return {name: value for name, value in chosen.items() if value}


class Client:
    """Calls on the API server. Every method raises an ApiError of ``stoker.kube.errors``, and only those.

    ``gate`` is asked before each write; ``ungated`` returns the same connections without it, for the Lease itself.
    """

    def __init__(
        self, configuration: Configuration, *, gate: WriteGate | None = None, observer: Observer = unobserved
    ) -> None:
        configuration.retries = None
        configuration.connection_pool_maxsize = CONNECTIONS
        self._api = ApiClient(configuration)
        self._configuration = configuration
        self._gate = gate
        self._observer = observer
        self._user_agent = f"stoker/{__version__}"

    def gated(self, gate: WriteGate) -> Client:
        """Return a client over the same connections whose writes ask ``gate`` first."""
        other = Client.__new__(Client)
        other.__dict__.update(self.__dict__, _gate=gate)
        return other

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()  # type: ignore[no-untyped-call]

    # ---- reads ------------------------------------------------------------------------------------------------------

    async def get(self, resource: Resource, namespace: str | None, name: str) -> dict[str, Any]:
        """Return one object."""
        return _parsed(await self.call(Call("get", resource.plural, "GET", resource.path(namespace, name))))

    async def get_metadata(self, resource: Resource, namespace: str | None, name: str) -> dict[str, Any]:
        """Return one object's metadata alone."""
        path = resource.path(namespace, name)
        return _parsed(await self.call(Call("get", resource.plural, "GET", path, accept=_METADATA)))

    async def pages(
        self, resource: Resource, namespace: str | None = None, selection: Selection | None = None
    ) -> AsyncIterator[list[dict[str, Any]]]:
        """Yield the objects of a collection page by page. Raises Expired when a page token has grown too old."""
        chosen = selection or Selection()
        call = Call(
            "list",
            resource.plural,
            "GET",
            resource.path(namespace),
            query=chosen.query(),
            accept=_METADATA_LIST if chosen.metadata_only else _JSON,
            timeout_seconds=30.0,
            max_bytes=MAX_PAGE_BYTES,
        )
        while True:
            page = _parsed(await self.call(call))
            yield page.get("items") or []
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return
            call = replace(call, query={**call.query, "continue": token})

    async def discover(self, path: str) -> dict[str, Any]:
        """Return a discovery document, such as ``/apis/apps/v1``."""
        return _parsed(await self.call(Call("get", "discovery", "GET", path)))

    async def log_tail(self, namespace: str, pod: str, container: str, *, previous: bool, max_bytes: int) -> str:
        """Return the end of a container's log, at most ``max_bytes`` of it, read within 5 seconds."""
        query = {"container": container, "previous": str(previous).lower(), "tailLines": "200"}
        path = POD.path(namespace, pod, "log")
        call = Call("get", "pods/log", "GET", path, query=query, timeout_seconds=5.0, accept="*/*")
        return (await self.call(call))[-max_bytes:].decode("utf-8", "replace")

    # ---- writes -----------------------------------------------------------------------------------------------------

    async def create(
        self, resource: Resource, namespace: str | None, body: Mapping[str, Any], manager: str
    ) -> dict[str, Any]:
        """Create an object (POST). Raises AlreadyExists, whoever owns the one that stands."""
        call = Call("create", resource.plural, "POST", resource.path(namespace), query=_strict(manager), body=body)
        return await self._write(call)

    async def apply(
        self, resource: Resource, namespace: str | None, body: Mapping[str, Any], manager: str
    ) -> dict[str, Any]:
        """Server-side apply, forced. ``metadata.uid`` must be set: without it, an apply adopts or creates (N22)."""
        metadata = body["metadata"]
        if not metadata.get("uid"):
            raise ValueError("an apply needs metadata.uid, so that it can neither adopt nor create")
        path = resource.path(namespace, metadata["name"])
        query = {**_strict(manager), "force": "true"}
        return await self._write(
            Call("apply", resource.plural, "PATCH", path, query=query, body=body, content_type=_APPLY)
        )

    async def json_patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        operations: Sequence[Mapping[str, Any]],
        manager: str,
    ) -> dict[str, Any]:
        """Apply a JSON patch (RFC 6902)."""
        path, body = resource.path(namespace, name), list(operations)
        return await self._write(
            Call("patch", resource.plural, "PATCH", path, query=_strict(manager), body=body, content_type=_JSON_PATCH)
        )

    async def merge_patch(
        self, resource: Resource, namespace: str | None, name: str, body: Mapping[str, Any], manager: str
    ) -> dict[str, Any]:
        """Apply a JSON merge patch (RFC 7386)."""
        path = resource.path(namespace, name)
        return await self._write(
            Call("patch", resource.plural, "PATCH", path, query=_strict(manager), body=body, content_type=_MERGE_PATCH)
        )

    async def update(
        self,
        resource: Resource,
        namespace: str | None,
        body: Mapping[str, Any],
        manager: str,
        *,
        subresource: str | None = None,
        drop_unknown: bool = False,
    ) -> dict[str, Any]:
        """Replace an object or a subresource (PUT).

        ``metadata.resourceVersion`` must be set, so that nothing unseen is overwritten: Conflict when it is old.
        With ``drop_unknown`` fields that the served schema lacks are left out; otherwise they are refused.
        """
        metadata = body["metadata"]
        if not metadata.get("resourceVersion"):
            raise ValueError("an update needs metadata.resourceVersion")
        path = resource.path(namespace, metadata["name"], subresource)
        plural = f"{resource.plural}/{subresource}" if subresource else resource.plural
        query = {**_strict(manager), **({"fieldValidation": "Ignore"} if drop_unknown else {})}
        return await self._write(Call("update", plural, "PUT", path, query=query, body=body))

    async def delete(self, resource: Resource, namespace: str | None, name: str, *, uid: str) -> None:
        """Delete one object in the background, only while it is the one with that uid.

        Raises NotFound when it is gone, and Conflict when another stands there.
        """
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
            "preconditions": {"uid": uid},
        }
        await self._write(Call("delete", resource.plural, "DELETE", resource.path(namespace, name), body=options))

    # ---- transport --------------------------------------------------------------------------------------------------

    async def _write(self, call: Call) -> dict[str, Any]:
        if self._gate is not None:
            safe = min(call.timeout_seconds, self._gate.remaining_seconds())
            call = replace(call, timeout_seconds=safe)
        return _parsed(await self.call(call))

    async def call(self, call: Call) -> bytes:
        """Make one request and return the answer's body. Raises an ApiError for everything that is not a success."""
        clock = asyncio.get_running_loop().time
        start, code = clock(), 0
        try:
            response = await self._send(call)
            code = response.status
            try:
                data = await _read(response.content, call.max_bytes)
            finally:
                response.release()
        except TimeoutError as problem:
            sentence = f"{call.method} {call.path}: no answer within {call.timeout_seconds:.0f} s"
            raise Unavailable(sentence) from problem
        except (aiohttp.ClientError, OSError) as problem:
            raise Unavailable(f"{call.method} {call.path}: {problem or type(problem).__name__}") from problem
        finally:
            self._observer(call.verb, call.resource, code, clock() - start)
        if code >= 400:
            raise error_from_response(code, data, response.headers.get("Retry-After"))
        return data

    async def _send(self, call: Call) -> aiohttp.ClientResponse:
        headers = {"Accept": call.accept, "Content-Type": call.content_type, "User-Agent": self._user_agent}
        await self._api.update_params_for_auth(headers, [], ["BearerToken"], call.path, call.method, call.body)
        suffix = f"?{urlencode(call.query)}" if call.query else ""
        return await self._session().request(
            call.method,
            yarl.URL(f"{self._configuration.host}{call.path}{suffix}", encoded=True),
            headers=headers,
            data=None if call.body is None else canonical_json(call.body),
            timeout=aiohttp.ClientTimeout(
                total=call.timeout_seconds, sock_connect=min(call.timeout_seconds, CONNECT_TIMEOUT_SECONDS)
            ),
            proxy=self._configuration.proxy,
            server_hostname=self._configuration.tls_server_name,
        )

    def _session(self) -> aiohttp.ClientSession:
        """Return the library's session: its own ``request`` would choose how a body is written."""
        transport = self._api.rest_client
        if transport.pool_manager is None:
            transport.pool_manager = transport._create_pool_manager()
        session: aiohttp.ClientSession = transport.pool_manager
        return session


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 - any JSON
    """Write JSON byte for byte as the API server's own encoder does: sorted, compact, ``<``, ``>`` and ``&`` escaped.

    A ControllerRevision keeps its ``data`` as the bytes that were sent, and compares bytes to find that it is
    immutable. A patch of any other field writes them anew in this form: with any other, even the garbage collector's
    removal of an owner reference is refused. Source: ValidateControllerRevisionUpdate of Kubernetes, and
    encoding/json of Go.
    """
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode()


def _parsed(body: bytes) -> dict[str, Any]:
    """Parse an answer. Raises Unavailable when it is no JSON object: a proxy answered, or the body was cut."""
    try:
        parsed = json.loads(body)
    except ValueError as problem:
        raise Unavailable(f"the answer is not JSON: {problem}") from problem
    if not isinstance(parsed, dict):
        raise Unavailable("the answer is not a JSON object")
    return parsed


async def _read(content: aiohttp.StreamReader, max_bytes: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in content.iter_any():
        size += len(chunk)
        if size > max_bytes:
            raise TooLarge(f"the answer is larger than {max_bytes} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def _strict(manager: str) -> dict[str, str]:
    return {"fieldManager": manager, "fieldValidation": "Strict"}
