"""What the watch streams still owe: each write of ours must come back through the watch of its kind.

The cache holds the answer of a write at once, so that a reconcile never works on a state from before its own writes.
What is left to watch over is the stream itself: a write that does not come back means that the stream has gone
silent, and that the changes of everybody else do not arrive either.
"""

from __future__ import annotations

from dataclasses import dataclass, field

ECHO_SECONDS = 5.0
"""A write that has not come back after this time is read by a GET."""

SILENCE_SECONDS = 60.0
"""A stream that owes an answer for longer is deaf, and the process that depends on it unhealthy."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One write that has not come back: the version that it made, and when (seconds, monotonic)."""

    kind: str
    namespace: str
    name: str
    version: int
    since: float


@dataclass(slots=True)
class Expectations:
    """The open expectations, by uid. Bounded by the number of objects that the operator writes."""

    _open: dict[str, Expectation] = field(default_factory=dict)

    def expect(self, uid: str, expectation: Expectation) -> None:
        """Remember a write. An older open one of the same object keeps its time: it is still owed."""
        older = self._open.get(uid)
        since = older.since if older is not None else expectation.since
        self._open[uid] = Expectation(
            expectation.kind, expectation.namespace, expectation.name, expectation.version, since
        )

    def seen(self, uid: str, version: int) -> None:
        """Note that the watch showed this version, or a later one, or the end of the object."""
        owed = self._open.get(uid)
        if owed is not None and version >= owed.version:
            del self._open[uid]

    def forget(self, uid: str) -> None:
        """Note that the object is gone: nothing of it will come any more."""
        self._open.pop(uid, None)

    def overdue(self, now: float, limit_seconds: float = ECHO_SECONDS) -> list[tuple[str, Expectation]]:
        """Return what has been owed for longer than the limit, by uid."""
        return [(uid, owed) for uid, owed in self._open.items() if now - owed.since > limit_seconds]

    def silent_kinds(self, now: float) -> list[str]:
        """Return the kinds whose stream has gone silent."""
        return sorted({owed.kind for _, owed in self.overdue(now, SILENCE_SECONDS)})

    def __len__(self) -> int:
        """Return how many writes have not come back."""
        return len(self._open)
