"""What we write, booked where the rest of the operator looks: the cache, and the expectations towards the watch.

The watch often shows a write before its answer has arrived. What it shows of an object that is being written is kept
and queues nothing; if it turns out, when the write has ended, that not all of that was ours, the service is queued
then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from stoker.kube.cache import Cache, version_of
from stoker.kube.expectations import Expectation, Expectations

_What = tuple[str, str, str]


@dataclass(slots=True)
class _Write:
    """One object that is being written: the versions that the watch showed meanwhile, and those that we made."""

    shown: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    made: set[int] = field(default_factory=set)


class Ledger:
    """Books writes. ``on_overtaken`` is told of an object that somebody else wrote while we did."""

    def __init__(self, cache: Cache, expectations: Expectations, clock: Callable[[], float]) -> None:
        self._cache = cache
        self._expectations = expectations
        self._clock = clock
        self._writing: dict[_What, _Write] = {}
        self.on_overtaken: Callable[[str, Mapping[str, Any]], None] = lambda kind, raw: None

    @contextmanager
    def writing(self, kind: str, namespace: str, name: str) -> Iterator[None]:
        """Mark an object as being written. One reconcile at a time writes an object."""
        write = self._writing[kind, namespace, name] = _Write()
        try:
            yield
        finally:
            del self._writing[kind, namespace, name]
            others = [raw for version, raw in write.shown.items() if version not in write.made]
            if others:
                self.on_overtaken(kind, others[-1])

    def defers(self, kind: str, raw: Mapping[str, Any]) -> bool:
        """Return whether what the watch shows of an object waits for the end of a write of ours."""
        metadata = raw["metadata"]
        write = self._writing.get((kind, metadata.get("namespace") or "", metadata["name"]))
        if write is None:
            return False
        write.shown[version_of(raw)] = raw
        return True

    def book(self, kind: str, raw: Mapping[str, Any]) -> None:
        """Keep the answer of a write, and expect the watch to show it, unless it has done so already."""
        metadata, version = raw["metadata"], version_of(raw)
        write = self._writing.get((kind, metadata["namespace"], metadata["name"]))
        if write is not None:
            write.made.add(version)
        if self._cache.shelf(kind).is_stale(metadata["uid"], version):
            return
        self._cache.put(kind, raw)
        owed = Expectation(kind, metadata["namespace"], metadata["name"], version, self._clock())
        self._expectations.expect(metadata["uid"], owed)

    def forget(self, kind: str, uid: str) -> None:
        """Note that an object is gone."""
        self._cache.remove(kind, uid)
        self._expectations.forget(uid)
