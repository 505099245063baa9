"""Names of everything that a service has, and label values made of what users wrote.

A name that Kubernetes takes as it stands is used as it stands, so that a person recognises it. Any other is shortened,
cleaned and marked with a hash of the original. A legal name that looks as if it had been marked is marked too: what
comes out of an unmarked name can therefore never equal what comes out of another (N15).
"""

import hashlib
import re

MAX_LENGTH = 63
"""Longest DNS-1035 label, and longest label value, in characters."""

_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_MARKED = re.compile(r".*-h[0-9a-f]{10}")


def child_name(service: str, suffix: str = "") -> str:
    """Return the name of a child of ``service``: a DNS-1035 label of at most 63 characters that ends in ``suffix``.

    Services are objects with DNS-1123 subdomains as names: up to 253 characters, dots, a digit in front.
    """
    room = MAX_LENGTH - len(suffix)
    if len(service) <= room and _DNS_1035.fullmatch(service) and not _MARKED.fullmatch(service):
        return service + suffix
    stem = re.sub(r"[^a-z0-9-]", "-", service.lower())
    stem = stem if stem[:1].isalpha() else f"x{stem}"
    return _marked(stem, service, room) + suffix


def service_name(service: str) -> str:
    """Return the name of the Service: that of the InferenceService wherever Kubernetes takes it."""
    return child_name(service)


def deployment_name(service: str) -> str:
    """Return the name of the Deployment of engines."""
    return child_name(service)


def disruption_budget_name(service: str) -> str:
    """Return the name of the PodDisruptionBudget."""
    return child_name(service)


def network_policy_name(service: str) -> str:
    """Return the name of the NetworkPolicy."""
    return child_name(service)


def service_account_name(service: str) -> str:
    """Return the name of the engines' ServiceAccount; ``-engine`` keeps it off an existing one (``default``)."""
    return child_name(service, "-engine")


def revision_name(service: str, key: str) -> str:
    """Return the name of the ControllerRevision that holds the revision ``key``."""
    return child_name(service, f"-{key}")


def label_value(text: str) -> str:
    """Return ``text`` as a label value: unchanged where it is one, else cleaned, shortened and marked with a hash."""
    if len(text) <= MAX_LENGTH and _LABEL_VALUE.fullmatch(text) and not _MARKED.fullmatch(text):
        return text
    stem = re.sub(r"[^A-Za-z0-9_.-]", "-", text).lstrip("-_.")
    return _marked(stem or "x", text, MAX_LENGTH)


def _marked(stem: str, original: str, room: int) -> str:
    mark = "-h" + hashlib.sha256(original.encode()).hexdigest()[:10]
    return stem[: room - len(mark)].rstrip("-_.") + mark
