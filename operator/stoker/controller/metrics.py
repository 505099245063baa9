"""The operator's own metrics, on a port of their own."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    GC_COLLECTOR,
    PLATFORM_COLLECTOR,
    PROCESS_COLLECTOR,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    start_http_server,
)

DURATIONS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """All series. Labels hold kinds, verbs and codes, never names of users' objects: their number is bounded."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self.registry.register(PROCESS_COLLECTOR)
        self.registry.register(PLATFORM_COLLECTOR)
        self.registry.register(GC_COLLECTOR)
        self.reconciles = Counter(
            "stoker_reconciles",
            "Reconciles by result: done, failed, timeout; not_leader, cancelled: the lead ended meanwhile.",
            ["result"],
            registry=self.registry,
        )
        self.reconcile_seconds = Histogram(
            "stoker_reconcile_seconds", "Duration of one reconcile.", buckets=DURATIONS, registry=self.registry
        )
        self.requests = Counter(
            "stoker_api_requests",
            "Requests to the API server; code 0 is no answer.",
            ["verb", "resource", "code"],
            registry=self.registry,
        )
        self.request_seconds = Histogram(
            "stoker_api_request_seconds",
            "Duration of requests to the API server.",
            ["verb"],
            buckets=DURATIONS,
            registry=self.registry,
        )
        self.children = Counter(
            "stoker_children", "Children by kind and what became of them.", ["kind", "result"], registry=self.registry
        )
        self.events_seen = Counter(
            "stoker_watch_events",
            "Watch events by kind; changed: it queued a service.",
            ["kind", "changed"],
            registry=self.registry,
        )
        self.leader = Gauge("stoker_leader", "1 while this replica writes.", registry=self.registry)
        self.optional_api = Gauge(
            "stoker_optional_api",
            "1 for the state that an optional API is in: served or broken; absent ones are not listed.",
            ["api", "state"],
            registry=self.registry,
        )

    def observe_request(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """Count a request to the API server."""
        self.requests.labels(verb, resource, code).inc()
        self.request_seconds.labels(verb).observe(seconds)

    def gauge(self, name: str, text: str, read: Callable[[], float]) -> None:
        """Add a gauge that is read when it is scraped."""
        Gauge(name, text, registry=self.registry).set_function(read)

    def serve(self, port: int) -> None:
        """Serve ``/metrics`` in a thread of its own, so that a busy event loop does not hide its own trouble."""
        start_http_server(port, registry=self.registry)
