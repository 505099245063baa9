"""The operator: what the watch streams lead to, and what runs while this replica lives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import kopf
from kubernetes.aio.client import Configuration

from stoker.api.crd import SchemaGap
from stoker.controller.metrics import Metrics
from stoker.controller.options import Options, process_identity
from stoker.controller.reconciler import Parts, Reconciler
from stoker.controller.settings import LABELLED, OWN_OBJECTS
from stoker.controller.upkeep import Upkeep
from stoker.controller.workers import Workers
from stoker.kube.apply import ChildWriter
from stoker.kube.cache import Cache, ServiceKey, version_of
from stoker.kube.client import Client
from stoker.kube.config import load_configuration
from stoker.kube.discovery import Discovery
from stoker.kube.events import EventPoster
from stoker.kube.expectations import Expectations
from stoker.kube.held import ForeignHeld
from stoker.kube.lease import Elector
from stoker.kube.ledger import Ledger
from stoker.kube.logs import LogReader
from stoker.kube.queue import WorkQueue
from stoker.kube.references import ReferenceReader
from stoker.kube.resources import CHILDREN, CONTROLLER_REVISION, INFERENCE_SERVICE, NODE, Resource

NODES_SETTLE_SECONDS = 5.0
"""Changes of nodes are gathered for this long; they concern only services that wait for a place."""

CALM_SECONDS = 0.2
"""Children and pods change several times in a row as they start: such changes are gathered for this long."""

STUCK_SECONDS = 120.0
RESTART_SECONDS = 1.0

log = logging.getLogger("stoker")


class Operator:
    """Holds the parts together."""

    def __init__(self, options: Options, configuration: Configuration, resources: tuple[Resource, ...]) -> None:
        self._options = options
        self._nodes_are_known = NODE in resources
        self._loop = asyncio.get_running_loop()
        self.metrics = Metrics()
        self.queue = WorkQueue()
        self.cache = Cache(tuple(kind for kind in CHILDREN if kind != CONTROLLER_REVISION.kind))
        self.expectations = Expectations()
        self.ledger = Ledger(self.cache, self.expectations, self._loop.time)
        self.ledger.on_overtaken = self._concerns
        ungated = Client(configuration, observer=self.metrics.observe_request)
        identity = process_identity(options)
        self.elector = Elector(ungated, options.lease_namespace, options.lease_name, identity)
        self.elector.on_change = self._on_leadership
        self._client = ungated.gated(self.elector)
        self.discovery = Discovery(self._client, self._on_capabilities, next(iter(options.namespaces), None))
        self._references = ReferenceReader(self._client, self._add, lambda: self.elector.led)
        self._logs = LogReader(self._client, self._add)
        self._upkeep = self._make_upkeep(resources)
        self._reconciler = Reconciler(self._parts(identity))
        self._workers = Workers(self.queue, self._reconciler.reconcile, options.workers, self._count)
        self.ended = asyncio.Event()
        """Set when nothing of this process runs any more but the watch streams."""
        self._stopping: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._complete = False
        self._nodes_changed = False
        self._crd_gap: SchemaGap | None = None
        self._last_result_at = self._loop.time()
        self._add_gauges()

    # ---- where the watch streams lead to ----------------------------------------------------------------------------

    def seen(self, kind: str, raw: Mapping[str, Any]) -> None:
        """Keep an object, and queue the service that it concerns if anything of interest has changed."""
        self.expectations.seen(raw["metadata"]["uid"], version_of(raw))
        self.metrics.events_seen.labels(kind, str(self._keep(kind, raw)).lower()).inc()

    def gone(self, kind: str, raw: Mapping[str, Any]) -> None:
        """Forget an object, and queue the service that it concerned."""
        uid = raw["metadata"]["uid"]
        # Of an object whose deletion was missed, only its name is told: then what is kept of it says whose it was.
        key = self.cache.key_of(kind, raw) or self.cache.key_of_kept(kind, uid) if kind != "Node" else None
        self.cache.remove(kind, uid, version_of(raw))
        self.expectations.forget(uid)
        self.metrics.events_seen.labels(kind, "true").inc()
        if kind == "Node":
            self._on_node()  # who waits for a place is told what is left
        if key is None:
            return
        if kind == INFERENCE_SERVICE.kind:
            self._reconciler.forget(key)  # also in a replica that does not lead: its Secrets are not read any more
        self._add(key)

    def complete(self) -> None:
        """Note that everything has been listed once: from now on the cache can be trusted."""
        if not self._complete:
            self._complete = True
            log.info("everything has been listed", extra={"services": len(self.cache.services)})
            self._set_working(self.elector.led)

    # ---- life -------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to work."""
        if self._options.metrics_port:
            self.metrics.serve(self._options.metrics_port)
        await self.discovery.poll()
        for run in (
            self.elector.run,
            self.discovery.run,
            self._references.run,
            self._logs.run,
            self._upkeep.check_expectations,
            self._upkeep.sweep_forever,
            self._upkeep.measure_lag,
        ):
            self._tasks.append(asyncio.create_task(_forever(run), name=run.__qualname__))

    async def stop(self) -> None:
        """End: no write begins any more, and the Lease is given back."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._workers.stop()
        await self.elector.release()
        await self._client.close()
        self.ended.set()

    def problems(self) -> list[str]:
        """Return what makes this process unfit to go on: silent watch streams, a queue that does not move."""
        now = self._loop.time()
        found = [f"the watch of {kind} is silent" for kind in self.expectations.silent_kinds(now)]
        oldest = self.queue.oldest_seconds() if self.elector.led and self._complete else 0.0
        if oldest > STUCK_SECONDS and now - self._last_result_at > STUCK_SECONDS:
            found.append(f"a service has waited for {oldest:.0f} s and nothing is being done")
        return found

    async def connection(self) -> kopf.ConnectionInfo:
        """Return the connection for kopf, read anew: it asks again when the credentials are refused."""
        return connection_info(await load_configuration(self._options.kubeconfig, self._options.context))

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _keep(self, kind: str, raw: Mapping[str, Any]) -> bool:
        """Keep an object however it came, and queue its service if anything of interest has changed."""
        changed = self.cache.put(kind, raw)
        if changed and not self.ledger.defers(kind, raw):
            self._concerns(kind, raw)
        return changed

    def _concerns(self, kind: str, raw: Mapping[str, Any]) -> None:
        if kind == "Node":
            self._on_node()
            return
        key = self.cache.key_of(kind, raw)
        if key is not None:
            self._add(key, 0.0 if kind == INFERENCE_SERVICE.kind else CALM_SECONDS)

    def _add(self, key: ServiceKey, delay_seconds: float = 0.0) -> None:
        """Queue a key; a replica that does not lead queues nothing, and looks at everything when it begins to lead."""
        if self._complete and self.elector.led:
            if delay_seconds:
                self.queue.add_after(key, delay_seconds)
            else:
                self.queue.add(key)

    def _add_all(self) -> None:
        for service in self.cache.services:
            self.queue.add((service.namespace, service.name))

    def _on_node(self) -> None:
        if not self._nodes_changed:
            self._nodes_changed = True
            self._loop.call_later(NODES_SETTLE_SECONDS, self._on_nodes)

    def _on_nodes(self) -> None:
        self._nodes_changed = False
        for key in self.cache.waiting_services():
            self._add(key)

    def _on_capabilities(self) -> None:
        capabilities = self.discovery.capabilities
        self.metrics.optional_api.clear()
        for api in capabilities.served:
            self.metrics.optional_api.labels(api, "served").set(1)
        for api in capabilities.broken:
            self.metrics.optional_api.labels(api, "broken").set(1)
        if capabilities.crd_outdated == self._crd_gap:
            return  # no decision depends on the optional APIs
        self._crd_gap = capabilities.crd_outdated
        if self._crd_gap:
            log.warning("CRDOutdated", extra={"problem": f"the served schema lacks {self._crd_gap}"})
        if self._complete and self.elector.led:
            self._add_all()

    def _on_leadership(self, leads: bool) -> None:
        self.metrics.leader.set(leads)
        self._set_working(leads)

    def _set_working(self, leads: bool) -> None:
        if not self._complete:
            return
        if leads:
            self._last_result_at = self._loop.time()
            self._add_all()
            self._workers.start()
        else:
            self._stopping = self._loop.create_task(self._workers.stop(), name="stop workers")

    def _count(self, result: str, seconds: float) -> None:
        self._last_result_at = self._loop.time()
        self.metrics.reconciles.labels(result).inc()
        self.metrics.reconcile_seconds.observe(seconds)
        if self.queue.core.overflowed and not len(self.queue.core):
            self.queue.core.overflowed = False
            self._add_all()  # which keys were refused is not known

    def _make_upkeep(self, resources: tuple[Resource, ...]) -> Upkeep:
        selections = [(resource, OWN_OBJECTS if resource in LABELLED else "") for resource in resources]
        upkeep = Upkeep(self._client, self.cache, self.expectations, selections, self._options.namespaces)
        upkeep.seen, upkeep.gone = self._keep, self.gone  # what was read, the stream still owes
        return upkeep

    def _parts(self, identity: str) -> Parts:
        return Parts(
            client=self._client,
            cache=self.cache,
            writer=ChildWriter(self._client, self.cache, self.ledger),
            ledger=self.ledger,
            references=self._references,
            logs=self._logs,
            foreign_held=ForeignHeld(self._client),
            discovery=self.discovery,
            events=EventPoster(self._client, identity),
            metrics=self.metrics,
            settings=self._options.settings,
            clock=self._loop.time,
            nodes_are_known=self._nodes_are_known,
        )

    def _add_gauges(self) -> None:
        gauge = self.metrics.gauge
        gauge("stoker_queue_depth", "Services that wait for a reconcile.", lambda: len(self.queue.core))
        gauge("stoker_queue_delayed", "Services that wait for their time.", lambda: self.queue.core.delayed)
        gauge("stoker_reconciles_running", "Reconciles that run.", lambda: self._workers.running)
        gauge("stoker_services", "Services that are known.", lambda: len(self.cache.services))
        gauge("stoker_writes_unseen", "Writes that the watch has not shown yet.", lambda: len(self.expectations))
        gauge(
            "stoker_crd_outdated",
            "1 while the served CustomResourceDefinition lacks fields, rules or defaults that this operator knows.",
            lambda: self.discovery.capabilities.crd_outdated is not None,
        )
        gauge("stoker_nodes_known", "0 where the role does not allow to watch nodes.", lambda: self._nodes_are_known)
        gauge("stoker_loop_lag_seconds", "How late the event loop was.", lambda: self._upkeep.loop_lag_seconds)


def connection_info(configuration: Configuration) -> kopf.ConnectionInfo:
    """Return a client configuration in kopf's words."""
    token = configuration.api_key.get("BearerToken") or configuration.api_key.get("authorization") or ""
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        ca_data=None if configuration.ssl_ca_cert else configuration.ca_cert_data,
        insecure=not configuration.verify_ssl,
        scheme="Bearer" if token else None,
        token=token.split()[-1] if token else None,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
        proxy_url=configuration.proxy,
    )


async def _forever(run: Callable[[], Awaitable[None]]) -> None:
    """Run something that shall never end; begin anew when it does."""
    while True:
        try:
            await run()
        except Exception:
            log.exception("a part of the operator failed and begins anew")
        await asyncio.sleep(RESTART_SECONDS)
