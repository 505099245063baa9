"""The Service under which clients reach the engines."""

from typing import Any

from stoker.render.identity import ServiceIdentity
from stoker.render.labels import selector_labels
from stoker.render.meta import child_meta
from stoker.render.names import service_name

HTTP_PORT = 8000
"""Port of the OpenAI-compatible API, at the Service and at the engine alike."""


def service(owner: ServiceIdentity, engine: str) -> dict[str, Any]:
    """Return the Service, named like the InferenceService wherever that is a legal name of one."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": child_meta(owner, engine, service_name(owner.name)),
        "spec": {
            "type": "ClusterIP",
            "selector": selector_labels(owner.name),
            "ports": [
                {"name": "http", "port": HTTP_PORT, "targetPort": "http", "protocol": "TCP", "appProtocol": "http"},
            ],
        },
    }
