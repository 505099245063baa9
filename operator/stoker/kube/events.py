"""Events on a service, for what a user should act on: posted once, not at every reconcile."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from stoker.kube.client import Client
from stoker.kube.errors import AlreadyExists, ApiError
from stoker.kube.resources import EVENT, INFERENCE_SERVICE
from stoker.kube.views import CHILD_MANAGER
from stoker.reconcile.decision import EventIntent

CONTROLLER = "serving.stoker.dev/operator"
KEPT_SECONDS = 3600.0
"""How long an API server keeps an event unless told otherwise; what happens again after that is told again."""
MAX_REMEMBERED = 10_000
MAX_NOTE_CHARS = 1024
MAX_NAME_CHARS = 253

log = logging.getLogger("stoker.events")


class EventPoster:
    """Posts events. While the API server keeps one, the same event of the same object is not posted again.

    The name of an event is made of its content, so that an operator that comes later posts it no second time.
    """

    def __init__(self, client: Client, instance: str) -> None:
        self._client = client
        self._instance = instance[:128]
        self._posted: OrderedDict[str, float] = OrderedDict()

    async def post(self, service: Mapping[str, Any], intents: tuple[EventIntent, ...]) -> None:
        """Post events. Never raises: an event that cannot be posted is not worth a failed reconcile."""
        for intent in intents:
            event = self._event(service, intent)
            name = event["metadata"]["name"]
            if _now() - self._posted.get(name, float("-inf")) < KEPT_SECONDS:
                continue
            try:
                await self._client.create(EVENT, event["metadata"]["namespace"], event, CHILD_MANAGER)
            except AlreadyExists:
                pass  # an operator before this one has said so already
            except ApiError as problem:
                log.info("an event could not be posted", extra={"problem": problem.message})
                continue
            self._remember(name)

    def _remember(self, name: str) -> None:
        self._posted[name] = _now()
        self._posted.move_to_end(name)
        if len(self._posted) > MAX_REMEMBERED:
            self._posted.popitem(last=False)

    def _event(self, service: Mapping[str, Any], intent: EventIntent) -> dict[str, Any]:
        metadata = service["metadata"]
        note = intent.message[:MAX_NOTE_CHARS]
        content = "\0".join((metadata["uid"], intent.type, intent.reason, note))
        suffix = f".{hashlib.blake2b(content.encode(), digest_size=8).hexdigest()}"
        return {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {
                "name": metadata["name"][: MAX_NAME_CHARS - len(suffix)].rstrip("-.") + suffix,
                "namespace": metadata["namespace"],
            },
            "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "type": intent.type,
            "reason": intent.reason,
            "action": "Reconcile",
            "note": note,
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
            "regarding": {
                "apiVersion": INFERENCE_SERVICE.api_version,
                "kind": INFERENCE_SERVICE.kind,
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
                "resourceVersion": metadata["resourceVersion"],
            },
        }


def _now() -> float:
    return asyncio.get_running_loop().time()
