"""Objects that the API server does not take: pods of a ReplicaSet, and children of ours."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from stoker.status.case import Diagnosis
from stoker.status.text import bounded, passed_on

_POD_NAME = re.compile(r'^(?:error creating: )?pods "[^"]{1,253}" is forbidden: ', re.IGNORECASE)
"""The name of a pod that never was; it differs with every try."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    reason: str
    pattern: re.Pattern[str]
    remedy: Callable[[re.Match[str]], str]
    stalled: bool


def _quota(found: re.Match[str]) -> str:
    fields = {"requests.cpu": "spec.resources.cpu", "limits.cpu": "spec.resources.cpu",
              "requests.memory": "spec.resources.memory", "limits.memory": "spec.resources.memory"}  # fmt: skip
    field = next((field for resource, field in fields.items() if resource in found[0]), None)
    lower = f"{field} or spec.replicas" if field else "spec.replicas or spec.parallelism"
    return f"lower {lower}, free what others of the namespace use, or have the quota raised"


def _says(text: str) -> Callable[[re.Match[str]], str]:
    return lambda _: text


_REFUSALS: tuple[_Refusal, ...] = (
    _Refusal("QuotaExceeded", re.compile(r"(?:exceeded|failed) quota[^\n]*"), _quota, stalled=False),
    _Refusal(
        "PodSecurityViolation",
        re.compile(r"violates PodSecurity"),
        _says("correct spec.pod.securityContext or spec.pod.volumes, or let the namespace enforce another level"),
        stalled=True,
    ),
    _Refusal(
        "ServiceAccountNotFound",
        re.compile(r"serviceaccount \S+ not found|service account \S+ (?:was )?not found"),
        _says("create the ServiceAccount, or correct spec.pod.serviceAccountName"),
        stalled=True,
    ),
    _Refusal(
        "PriorityClassNotFound",
        re.compile(r"no PriorityClass with name"),
        _says("create the PriorityClass, or correct spec.pod.priorityClassName"),
        stalled=True,
    ),
    _Refusal(
        "RuntimeClassNotFound",
        re.compile(r"RuntimeClass \S+ not found|runtimeclass\S* \S+ not found", re.IGNORECASE),
        _says("create the RuntimeClass, or correct spec.pod.runtimeClassName"),
        stalled=True,
    ),
    _Refusal(
        "AdmissionDenied",
        re.compile(r"admission webhook \S+ denied the request|ValidatingAdmissionPolicy|denied request"),
        _says("change the spec as it says, or talk to who runs that policy"),
        stalled=True,
    ),
    _Refusal(
        "ChildRefused",
        re.compile(r"\bis invalid: |Invalid value"),
        _says("correct the field of spec.pod that it stands for"),
        stalled=True,
    ),
)


def pods_not_created(messages: tuple[str, ...]) -> Diagnosis | None:
    """Pods could not even be created: a quota, an admission rule, a missing class or account."""
    return _diagnose("the pods", _POD_NAME.sub("", messages[0]), "PodsNotCreated") if messages else None


def child_not_applied(what: str, said: str) -> Diagnosis:
    """A child of ours (``Kind/name``) was not taken by the API server."""
    return _diagnose(what, said, "ApplyFailed")


def _diagnose(what: str, said: str, otherwise: str) -> Diagnosis:
    for refusal in _REFUSALS:
        if found := refusal.pattern.search(said):
            message = f"{what} cannot be made: {passed_on(said)}; {refusal.remedy(found)}"
            return Diagnosis(refusal.reason, bounded(message), refusal.stalled)
    return Diagnosis(otherwise, bounded(f"{what} cannot be made yet: {passed_on(said)}"), stalled=False)
