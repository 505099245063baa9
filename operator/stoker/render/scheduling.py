"""Where pods may run: what the accelerator asks for, joined with what the user wrote."""

from collections.abc import Mapping, Sequence
from typing import Any

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.api.pod import Pod
from stoker.plan.types import Layout
from stoker.render.labels import selector_labels
from stoker.render.meta import tidy

PRODUCT_LABEL = "nvidia.com/gpu.product"
"""Node label of the GPU's model, set by NVIDIA's feature discovery."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def scheduling(service: str, spec: InferenceServiceSpec, layout: Layout) -> dict[str, Any]:
    """Return the fields of the pod that decide on nodes; absent ones are left out."""
    pod = spec.pod or Pod()
    fields = {
        "nodeSelector": tidy(pod.node_selector or {}),
        "affinity": _affinity(tidy(pod.affinity or {}), _products(spec)),
        "tolerations": tolerations(pod, layout),
        "topologySpreadConstraints": _spread(service, pod),
        "priorityClassName": pod.priority_class_name,
        "runtimeClassName": pod.runtime_class_name,
        "schedulerName": pod.scheduler_name,
    }
    return {field: value for field, value in fields.items() if value}


def tolerations(pod: Pod, layout: Layout) -> list[dict[str, Any]]:
    """Return the user's tolerations, and one for nodes that are kept for pods with GPUs.

    Kubernetes' ExtendedResourceToleration adds the same one: the key is the name of the resource.
    """
    listed: list[dict[str, Any]] = [tidy(toleration) for toleration in pod.tolerations or ()]
    if layout.gpus_per_pod and layout.resource_name:
        ours = {"key": layout.resource_name, "operator": "Exists", "effect": "NoSchedule"}
        listed += [ours] if ours not in listed else []
    return listed


def _products(spec: InferenceServiceSpec) -> tuple[str, ...]:
    return (spec.accelerator.products if spec.accelerator else None) or ()


def _affinity(affinity: Mapping[str, Any], products: Sequence[str]) -> dict[str, Any]:
    """Add the GPU's models to every alternative of the user's node affinity: alternatives are joined by "or"."""
    if not products:
        return dict(affinity)
    expression = {"key": PRODUCT_LABEL, "operator": "In", "values": list(products)}
    node = dict(affinity.get("nodeAffinity", {}))
    terms = node.get(_REQUIRED, {}).get("nodeSelectorTerms")
    narrowed = [_with(expression, term) for term in terms] if terms else [{"matchExpressions": [expression]}]
    return {**affinity, "nodeAffinity": {**node, _REQUIRED: {"nodeSelectorTerms": narrowed}}}


def _with(expression: Mapping[str, Any], term: Mapping[str, Any]) -> dict[str, Any]:
    if not any(term.values()):
        return {}  # an empty term selects no node; an expression would turn it into one that does
    return {**term, "matchExpressions": [*term.get("matchExpressions", []), dict(expression)]}


def _spread(service: str, pod: Pod) -> list[dict[str, Any]]:
    """Return the spread constraints; one without a selector would count no pod, so it gets that of the engines."""
    own = {"labelSelector": {"matchLabels": selector_labels(service)}}
    return [{**own, **tidy(constraint)} for constraint in pod.topology_spread_constraints or ()]
