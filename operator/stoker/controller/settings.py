"""How kopf is used here: for watch streams, for the barrier until everything has been listed once, and for probes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from typing import Any, cast

import kopf

from stoker.controller.pauses import PacedWatching, Pauses
from stoker.kube.resources import CHILDREN, POD, Resource
from stoker.render.labels import MANAGED_BY

OWN_OBJECTS = f"{MANAGED_BY}=stoker"
LABELLED = (*CHILDREN.values(), POD)
"""The kinds of which only what carries our label is watched."""


class Backoffs(Iterable[float]):
    """Pauses between attempts, growing, without an end: an API server that is down for an hour is waited for."""

    def __iter__(self) -> Iterator[float]:
        """Yield the pauses in seconds."""
        return chain((1.0, 1.0, 2.0, 3.0, 5.0, 8.0), repeat(13.0))


class NoDiffBase(kopf.DiffBaseStorage):
    """Keeps no last-handled state: kopf would copy each object for it, for handlers that are not used here."""

    def build(self, **_: Any) -> Any:  # noqa: ANN401 - kopf's own types
        """Return nothing to compare."""
        return {}

    def fetch(self, **_: Any) -> Any:  # noqa: ANN401
        """Return nothing to compare with."""
        return None

    def store(self, **_: Any) -> None:  # noqa: ANN401
        """Keep nothing: the objects carry no annotation of ours."""


def kopf_settings() -> kopf.OperatorSettings:
    """Return the settings: no posting, no peering, no scanning, no annotation, time limits everywhere."""
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.persistence.finalizer = "serving.stoker.dev/never-set"
    settings.networking.request_timeout = 60.0
    settings.networking.connect_timeout = 10.0
    settings.networking.error_backoffs = Backoffs()
    settings.watching.server_timeout = 600
    settings.watching.client_timeout = 660.0
    settings.watching.chunk_size = 500
    settings.queueing.worker_limit = None  # a limit below the number of indexed objects is a deadlock in kopf
    settings.queueing.idle_timeout = 1.0
    settings.queueing.exit_timeout = 0.5
    settings.execution.max_workers = 1
    for resource in LABELLED:
        select(settings, resource, OWN_OBJECTS)
    settings.watching = cast(Any, PacedWatching(settings.watching, Pauses()))
    return settings


def select(settings: kopf.OperatorSettings, resource: Resource, selector: str) -> None:
    """Watch only what a label selector matches, chosen by the API server."""
    settings.watching.label_selectors[resource.group, resource.version, resource.plural] = selector
