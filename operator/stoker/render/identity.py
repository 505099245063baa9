"""Which service a child belongs to."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.api.inferenceservice import API_VERSION, KIND


@dataclass(frozen=True, slots=True)
class ServiceIdentity:
    """The service as its children see it. ``uid`` is None where it does not exist yet (``stoker render``)."""

    namespace: str
    name: str
    uid: str | None

    @property
    def drain_token(self) -> str:
        """The word that the drain call must carry: a guard against accidents, not a secret."""
        origin = self.uid or f"{self.namespace}/{self.name}"
        return hashlib.sha256(f"stoker drain {origin}".encode()).hexdigest()[:32]

    def owner_references(self) -> list[dict[str, Any]]:
        """Return the owner reference of every child; none without a uid.

        The garbage collector deletes the children; nothing waits for them (N5): ``blockOwnerDeletion`` would, and
        needs a right on finalizers.
        """
        if self.uid is None:
            return []
        reference = {"apiVersion": API_VERSION, "kind": KIND, "name": self.name, "uid": self.uid}
        return [{**reference, "controller": True, "blockOwnerDeletion": False}]


def identity_of(service: Mapping[str, Any]) -> ServiceIdentity:
    """Return the identity of a service as the API server returned it, or as a file holds it."""
    metadata = service.get("metadata", {})
    return ServiceIdentity(metadata.get("namespace") or "default", metadata["name"], metadata.get("uid"))
