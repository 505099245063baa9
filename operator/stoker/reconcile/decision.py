"""What a reconcile does: the answer of ``decide``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.plan.snapshot import ObjectRef


@dataclass(frozen=True, slots=True)
class EventIntent:
    """An event on the service, for something that a user should act on. ``type`` is ``Normal`` or ``Warning``."""

    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Writes in the order in which they are made; an empty decision writes nothing.

    ``create_revision`` is a ControllerRevision that must exist before anything is applied. ``apply`` holds only
    children that differ from what was applied last, or that somebody else has touched (N2). ``status`` is the whole
    status, or None where none is written (an object that is being deleted).
    """

    create_revision: Mapping[str, Any] | None = None
    apply: tuple[Mapping[str, Any], ...] = ()
    delete: tuple[ObjectRef, ...] = ()
    status: Mapping[str, Any] | None = None
    events: tuple[EventIntent, ...] = ()
    requeue_after_seconds: float | None = None
