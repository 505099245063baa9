"""Who holds the GPUs: what the pods of everybody else take, listed when it matters.

How a revision replaces the one before depends on the free GPUs (N18), and others than us hold GPUs too. To watch
every pod of the cluster would cost more than all the rest of the operator; the question arises only when a revision
is made. So our own pods come from the watch, always fresh, and those of the others from one list, which serves all who
ask within the age that they allow. A revision that replaces another allows none: pods whose way to be replaced was
chosen by the GPUs of a moment ago wait for room that nobody gives. Those who ask at the same time share a list.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from stoker.kube.client import Client, Selection
from stoker.kube.errors import ApiError
from stoker.kube.resources import POD
from stoker.kube.views import pod_view
from stoker.plan.counts import add_pods
from stoker.render.labels import MANAGED_BY

FRESH_SECONDS = 15.0
"""How old a list may be that nothing is replaced by."""

REPLACING_SECONDS = 0.0
"""How old a list may be, when it is asked for, by which pods are replaced."""

FOREIGN_PODS = Selection(
    labels=f"{MANAGED_BY}!=stoker", fields="spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
)

log = logging.getLogger("stoker.held")


class ForeignHeld:
    """What pods of others hold, by node and resource."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._held: dict[str, dict[str, int]] = {}
        self._began_at: float | None = None
        self.is_known = True
        """Whether the last attempt to list succeeded."""
        self._lock = asyncio.Lock()

    def is_fresh(self, max_age_seconds: float = FRESH_SECONDS) -> bool:
        """Return whether the last list was begun recently enough to decide by."""
        return self._began_since(_now() - max_age_seconds)

    @property
    def last(self) -> Mapping[str, Mapping[str, int]]:
        """The last list, however old; empty when there was none."""
        return self._held

    async def refresh(self, max_age_seconds: float = FRESH_SECONDS) -> None:
        """List the pods of others unless the last list is fresh. Whoever comes meanwhile waits for the same list.

        Never raises: where pods cannot be listed, ``is_known`` and a line in the log say so.
        """
        oldest = _now() - max_age_seconds  # counted from the question: the list that it waited for may take long
        async with self._lock:
            if self._began_since(oldest):
                return
            began_at = _now()
            try:
                self._held = await self._list()
                self.is_known = True
            except ApiError as problem:
                self.is_known = False
                log.warning("pods of others could not be listed", extra={"problem": problem.message})
            self._began_at = began_at

    def _began_since(self, oldest: float) -> bool:
        return self._began_at is not None and self._began_at >= oldest

    async def _list(self) -> dict[str, dict[str, int]]:
        held: dict[str, dict[str, int]] = {}
        async for page in self._client.pages(POD, selection=FOREIGN_PODS):
            add_pods(held, map(pod_view, page))
        return held


def _now() -> float:
    return asyncio.get_running_loop().time()
