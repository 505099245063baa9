"""Labels of the children.

A selector holds exactly two labels of ours (N14): it can never be changed, so nothing that a user or a tool may alter
belongs into it. Labels and annotations of the InferenceService are never copied: those of Argo, Flux and Helm would
make their owners adopt or prune the children.
"""

from collections.abc import Mapping

from stoker.render.names import label_value

PREFIX = "serving.stoker.dev/"
SERVICE = PREFIX + "service"
COMPONENT = PREFIX + "component"
REVISION = PREFIX + "revision"
APPLIED_HASH = PREFIX + "applied-hash"
"""Annotation of every child: the hash of what was rendered."""
MANAGED_BY = "app.kubernetes.io/managed-by"
APP_NAME = "app.kubernetes.io/name"


def selector_labels(service: str) -> dict[str, str]:
    """Return the labels by which pods of the service's engines are found."""
    return {SERVICE: label_value(service), COMPONENT: "engine"}


def child_labels(service: str, engine: str) -> dict[str, str]:
    """Return the labels of every child of a service."""
    return {**selector_labels(service), MANAGED_BY: "stoker", APP_NAME: label_value(engine)}


def pod_labels(service: str, engine: str, revision: str, own: Mapping[str, str] | None) -> dict[str, str]:
    """Return the labels of pods: the user's (``spec.pod.labels``), then ours."""
    return {**(own or {}), **child_labels(service, engine), REVISION: revision}


def selector_text(service: str) -> str:
    """Return the selector as ``/scale`` and ``kubectl -l`` want it."""
    return ",".join(f"{key}={value}" for key, value in sorted(selector_labels(service).items()))
