"""The ServiceAccount of the engines: an identity without rights and without a mounted token."""

from typing import Any

from stoker.render.identity import ServiceIdentity
from stoker.render.meta import child_meta
from stoker.render.names import service_account_name


def service_account(service: ServiceIdentity, engine: str) -> dict[str, Any]:
    """Return the ServiceAccount."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": child_meta(service, engine, service_account_name(service.name)),
        "automountServiceAccountToken": False,
    }
