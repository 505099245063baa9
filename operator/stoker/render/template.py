"""The pod template of the engines."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.api.pod import HostAlias, Pod
from stoker.engines.interface import Invocation
from stoker.plan.types import Layout
from stoker.render import timing
from stoker.render.agent_container import agent_config, agent_container
from stoker.render.engine_container import engine_container
from stoker.render.identity import ServiceIdentity
from stoker.render.labels import pod_labels
from stoker.render.meta import tidy
from stoker.render.names import service_account_name
from stoker.render.scheduling import scheduling
from stoker.render.security import pod_security
from stoker.render.volumes import pod_volumes


@dataclass(frozen=True, slots=True)
class TemplateInputs:
    """Everything that a pod template is made of."""

    service: ServiceIdentity
    spec: InferenceServiceSpec
    layout: Layout
    invocation: Invocation
    agent_image: str
    revision: str


def pod_template(inputs: TemplateInputs) -> dict[str, Any]:
    """Return the pod template; equal inputs give equal templates."""
    return {"metadata": _metadata(inputs), "spec": {**_fixed(inputs), **_chosen(inputs)}}


def _metadata(inputs: TemplateInputs) -> dict[str, Any]:
    pod = inputs.spec.pod or Pod()
    labels = pod_labels(inputs.service.name, inputs.spec.engine.name.value, inputs.revision, pod.labels)
    annotations = {"kubectl.kubernetes.io/default-container": "engine", **(pod.annotations or {})}
    return {"labels": tidy(labels), "annotations": tidy(annotations)}


def _fixed(inputs: TemplateInputs) -> dict[str, Any]:
    service, spec, layout, invocation = inputs.service, inputs.spec, inputs.layout, inputs.invocation
    return {
        "initContainers": [agent_container(inputs.agent_image, agent_config(service, spec, layout, invocation))],
        "containers": [engine_container(service, spec, layout, invocation)],
        "volumes": pod_volumes(spec, layout, invocation),
        "terminationGracePeriodSeconds": timing.grace_period(layout),
        # A Service called vllm would otherwise set VLLM_PORT, and the engine would die of it.
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "securityContext": pod_security(invocation, spec.pod or Pod()),
    }


def _chosen(inputs: TemplateInputs) -> dict[str, Any]:
    pod = inputs.spec.pod or Pod()
    fields: dict[str, Any] = {
        "serviceAccountName": pod.service_account_name or service_account_name(inputs.service.name),
        "imagePullSecrets": [{"name": secret.name} for secret in pod.image_pull_secrets or ()],
        "hostAliases": _host_aliases(pod.host_aliases or ()),
        **scheduling(inputs.service.name, inputs.spec, inputs.layout),
    }
    return {field: value for field, value in fields.items() if value}


def _host_aliases(aliases: Iterable[HostAlias]) -> list[dict[str, Any]]:
    """Return one entry for each address: a server-side apply, other than a create, refuses an address twice."""
    names: dict[str, list[str]] = {}
    for alias in aliases:
        names.setdefault(alias.ip, []).extend(alias.hostnames)
    return [{"ip": ip, "hostnames": listed} for ip, listed in names.items()]
