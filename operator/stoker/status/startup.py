"""Pods whose containers do not start: images, missing Secrets, nodes that refuse them."""

import re

from stoker.api.faults import join
from stoker.plan.snapshot import ContainerView
from stoker.status.case import AGENT, Case, Diagnosis
from stoker.status.text import bounded, passed_on, redacted, word

_PULL_REASONS = {
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
}
_START_REASONS = {"CreateContainerError", "RunContainerError", "StartError", "ContainerCannotRun"}
_IMAGE = re.compile(r'image (?:tag |name |reference )?"([^"]{1,512})"')
_NO_REFERENCE = re.compile(
    r"pars(?:e|ing) image (?:name|reference)|invalid reference format|repository name \S{0,300} ?must be lowercase"
)
"""A name that no registry is ever asked for. Not every runtime gives it the reason InvalidImageName."""
_ABSENT = re.compile(r"not found|manifest unknown|does not exist|NAME_UNKNOWN|NotFound", re.IGNORECASE)
_DENIED = re.compile(r"unauthori[sz]ed|denied|authentication required|\b40[13]\b|forbidden", re.IGNORECASE)
_MISSING_OBJECT = re.compile(r'(secret|configmap) "([^"]{1,253})" not found', re.IGNORECASE)
_MISSING_KEY = re.compile(r"couldn't find key (\S{1,253}) in (Secret|ConfigMap) (?:[^/\s]{1,63}/)?(\S{1,253})")
_NO_PROGRAM = re.compile(r"executable file not found|no such file or directory|exec format error", re.IGNORECASE)


# ---- images --------------------------------------------------------------------------------------------------------
def image_not_pulled(case: Case) -> Diagnosis | None:
    """The image of a container cannot be pulled."""
    found = next((c for c in case.pod.containers if c.waiting_reason in _PULL_REASONS), None)
    if found is None:
        return None
    said = redacted(found.waiting_message or "")
    image = _IMAGE.search(said)
    what = f"the {found.name}'s image {image[1] if image else ''}".rstrip()
    if found.name == AGENT:
        remedy = "it is the operator's own: set the chart's image to one that the nodes can reach"
        return Diagnosis("ImagePull", bounded(f"{what} cannot be pulled; {remedy}: {said}"), stalled=False)
    return _engine_image(what, found, said)


def _engine_image(what: str, container: ContainerView, said: str) -> Diagnosis:
    if container.waiting_reason == "InvalidImageName" or _NO_REFERENCE.search(said):
        remedy = f"correct spec.engine.image{': ' * bool(said)}{said}"
        return Diagnosis("ImagePull", bounded(f"{what} is no image reference; {remedy}"), stalled=True)
    if _DENIED.search(said):
        remedy = "name a Secret with credentials for the registry in spec.pod.imagePullSecrets, or correct the image"
        return Diagnosis("ImagePull", bounded(f"{what} may not be pulled; {remedy}: {said}"), stalled=True)
    if _ABSENT.search(said):
        remedy = "correct spec.engine.image or spec.engine.version"
        return Diagnosis("ImagePull", bounded(f"{what} does not exist; {remedy}: {said}"), stalled=True)
    cause = said or container.waiting_reason or ""
    return Diagnosis("ImagePull", bounded(f"{what} (spec.engine.image) cannot be pulled yet: {cause}"), stalled=False)


# ---- configuration -------------------------------------------------------------------------------------------------
def object_missing(case: Case) -> Diagnosis | None:
    """A Secret or ConfigMap of a variable, or a key of it, is missing."""
    for container in case.pod.containers:
        if container.waiting_reason == "CreateContainerConfigError":
            return _missing(case, container.waiting_message or "")
    return None


def _missing(case: Case, said: str) -> Diagnosis:
    if found := _MISSING_OBJECT.search(said):
        kind = "Secret" if found[1].lower() == "secret" else "ConfigMap"
        where = _field(case, kind, found[2])
        message = f"there is no {kind} {found[2]} in this namespace; create it, or name another one in {where}"
        return Diagnosis(f"{kind}NotFound", message, stalled=True)
    if found := _MISSING_KEY.search(said):
        key, kind, name = found.groups()
        message = f"{kind} {name} has no key {key}; add it, or correct {_field(case, kind, name, key)}"
        return Diagnosis(f"{kind}KeyNotFound", message, stalled=True)
    return Diagnosis("ContainerConfigInvalid", bounded(f"the container cannot be made: {redacted(said)}"), stalled=True)


def _field(case: Case, kind: str, name: str, key: str | None = None) -> str:
    """Return the field that names an object, or a key of it."""
    if case.spec and kind == "Secret" and case.spec.model.credentials_secret == name:
        return "spec.model.credentialsSecret"
    variables = (case.spec.pod.env if case.spec and case.spec.pod else None) or ()
    for index, variable in enumerate(variables):
        source = variable.value_from
        reference = source and (source.secret_key_ref if kind == "Secret" else source.config_map_key_ref)
        if reference and reference.name == name and key in (None, reference.key):
            selector = "secretKeyRef" if kind == "Secret" else "configMapKeyRef"
            return join("spec.pod.env", index, "valueFrom", selector, "name" if key is None else "key")
    return "spec.pod.env"


def container_not_started(case: Case) -> Diagnosis | None:
    """The image is there, and its program cannot be run."""
    for container in case.pod.containers:
        reason = container.waiting_reason if container.waiting_reason in _START_REASONS else container.terminated_reason
        if reason in _START_REASONS:
            said = container.waiting_message or container.last_words or reason
            missing = bool(_NO_PROGRAM.search(said))
            what = "is not an image of this engine" if missing else "does not start"
            remedy = "correct spec.engine.image or spec.engine.name"
            message = f"the {container.name}'s image {what}: {passed_on(said)}; {remedy}"
            return Diagnosis("ContainerNotStarted", bounded(message), stalled=missing)
    return None


# ---- nodes ---------------------------------------------------------------------------------------------------------
def refused_by_node(case: Case) -> Diagnosis | None:
    """The kubelet refused or evicted the pod; a new one takes its place."""
    pod = case.pod
    if pod.phase != "Failed" or not pod.reason:
        return None
    where, said = f"node {pod.node or 'unknown'}", passed_on(pod.message or pod.reason)
    if pod.reason == "UnexpectedAdmissionError":
        hint = "its device plugin could not hand out the GPUs: look at the plugin's log, and at sharing on that node"
        return Diagnosis(pod.reason, bounded(f"{where} refused the pod: {said}; {hint}"), stalled=False)
    if pod.reason == "Evicted":
        hint = "raise spec.resources.memory, or mount a volume for what it writes in spec.pod.volumes"
        return Diagnosis(pod.reason, bounded(f"{where} evicted the pod: {said}; {hint}"), stalled=False)
    return Diagnosis(word(pod.reason, "RefusedByNode"), bounded(f"{where} ended the pod: {said}"), stalled=False)
