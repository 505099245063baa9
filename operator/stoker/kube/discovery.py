"""Which APIs the cluster serves, asked for every 30 s, so that one that appears later is used without a restart (N7).

An optional API may be absent, or exist and not answer, such as one whose conversion webhook is dead. Neither is an
error. No decision of this version depends on one, so it is told in the log and in the metrics, and no service is
bothered with it; what the served schema lacks concerns every service, and its status tells.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stoker.api.crd import SchemaGap, schema_gap
from stoker.kube.client import Client, Selection
from stoker.kube.errors import ApiError, Forbidden, NotFound
from stoker.kube.resources import CUSTOM_RESOURCE_DEFINITION, INFERENCE_SERVICE, Resource

POLL_SECONDS = 30.0

SAYS_NOTHING = (0, 401, 429)
"""Codes that are no answer about an API: none came, or we were not heard. What was known stays."""

LEADER_WORKER_SET = Resource("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet", "leaderworkersets")
OPTIONAL = (LEADER_WORKER_SET,)
"""The optional APIs that this version looks for; each is listed here in the change that makes use of it."""

log = logging.getLogger("stoker.discovery")


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Which APIs the cluster serves, and whether the served CRD is the operator's own."""

    served: frozenset[str] = frozenset()
    """``group/version/Kind`` of optional APIs that answer."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Optional APIs that exist but do not answer, with the reason."""
    crd_outdated: SchemaGap | None = None
    """What the served schema lacks; None when it is current."""


class Discovery:
    """Keeps ``capabilities`` up to date. ``on_change`` is told when they differ from before.

    ``namespace`` is one in which the operator may list; None where it may everywhere.
    """

    def __init__(self, client: Client, on_change: Callable[[], None], namespace: str | None = None) -> None:
        self._client = client
        self._on_change = on_change
        self._namespace = namespace
        self._crd_version: str | None = None
        self._outdated: SchemaGap | None = None
        self.capabilities = Capabilities()

    async def run(self) -> None:
        """Ask again and again, until cancelled."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            await self.poll()

    async def poll(self) -> None:
        """Ask once. Never raises: what cannot be told stays as it was."""
        served, broken = set(), {}
        for resource in OPTIONAL:
            problem = await self._problem(resource)
            name = _name(resource)
            if problem is None:
                served.add(name)
            elif problem:
                broken[name] = problem
        found = Capabilities(frozenset(served), broken, await self._crd_outdated())
        if found != self.capabilities:
            log.info("what the cluster serves has changed", extra={"served": sorted(served), "broken": broken})
            self.capabilities = found
            self._on_change()

    async def _problem(self, resource: Resource) -> str | None:
        """Return None when an API answers, "" when it is absent, else what is wrong with it."""
        try:
            document = await self._client.discover(resource.root)
            if all(each.get("name") != resource.plural for each in document.get("resources") or ()):
                return ""
            async for _ in self._client.pages(resource, self._namespace, Selection(first_only=True)):
                break
        except NotFound:
            return ""
        except Forbidden:
            return "the operator's role does not allow to list it"
        except ApiError as error:
            return self._known_problem(resource) if error.code in SAYS_NOTHING else error.message
        return None

    def _known_problem(self, resource: Resource) -> str | None:
        """Return what the last answer said, as ``_problem`` does."""
        name = _name(resource)
        return None if name in self.capabilities.served else self.capabilities.broken.get(name, "")

    async def _crd_outdated(self) -> SchemaGap | None:
        """Compare the served schema with our own, when it has changed since the last time."""
        name = f"{INFERENCE_SERVICE.plural}.{INFERENCE_SERVICE.group}"
        try:
            metadata = (await self._client.get_metadata(CUSTOM_RESOURCE_DEFINITION, None, name))["metadata"]
            if metadata["resourceVersion"] != self._crd_version:
                served = await self._client.get(CUSTOM_RESOURCE_DEFINITION, None, name)
                self._outdated = schema_gap(served)
                self._crd_version = metadata["resourceVersion"]
        except ApiError as error:
            log.info("the served schema could not be read", extra={"problem": error.message})
        return self._outdated


def _name(resource: Resource) -> str:
    return f"{resource.group}/{resource.version}/{resource.kind}"
