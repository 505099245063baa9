"""API objects as the API server returns them, in the parts that views read."""

from __future__ import annotations

from typing import Any


def an_object(
    kind: str,
    name: str = "chat",
    *,
    namespace: str = "team-a",
    uid: str | None = None,
    version: int = 1,
    owner: str | None = None,
    labels: dict[str, str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Return an object; ``owner`` is the uid of the InferenceService that controls it."""
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{kind}-{name}",
        "resourceVersion": str(version),
        "generation": 1,
        "labels": labels or {},
    }
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "apiVersion": "serving.stoker.dev/v1alpha1",
                "kind": "InferenceService",
                "name": "chat",
                "uid": owner,
                "controller": True,
            }
        ]
    return {"kind": kind, "metadata": metadata, **more}


def a_stored_pod(name: str = "chat-0", *, version: int = 1, service: str = "chat", **more: Any) -> dict[str, Any]:
    """Return a pod of a service that waits for a node, unless ``spec`` and ``status`` say otherwise."""
    spec = {
        "containers": [{"name": "engine", "resources": {"limits": {"nvidia.com/gpu": "2"}}}],
        **more.pop("spec", {}),
    }
    labels = {"serving.stoker.dev/service": service, "serving.stoker.dev/revision": "r1"}
    return an_object("Pod", name, version=version, labels=labels, spec=spec, **more)
