"""On which nodes the pods of a spec may land."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.plan.snapshot import NodeView

GPU_RESOURCE: Final = "nvidia.com/gpu"
PRODUCT_LABEL: Final = "nvidia.com/gpu.product"
SLICE: Final = "-MIG-"
"""Between the GPU and the profile in the product of a slice: ``NVIDIA-A100-SXM4-80GB-MIG-3g.40gb``."""
_KEEPS_AWAY: Final = ("NoSchedule", "NoExecute")
_GPU_TOLERATION: Final[Mapping[str, object]] = {"key": GPU_RESOURCE, "operator": "Exists", "effect": "NoSchedule"}
"""What every pod with GPUs tolerates, as the renderer and Kubernetes' ExtendedResourceToleration add it."""


@dataclass(frozen=True, slots=True)
class Landing:
    """What is known of the nodes with GPUs that would take a pod. Affinity is not looked at."""

    largest: int | None = None
    """GPUs of the largest of them; None where there is none."""
    parts: tuple[str, ...] = ()
    """Those whose GPUs are slices or shares, as ``node (product)``."""
    has_whole: bool = False
    """Whether one of them has whole GPUs."""


NOWHERE: Final = Landing()
"""No node is known."""


def is_part(product: str) -> bool:
    """Return whether a product is a slice of a GPU, or a share of one, under the name of whole GPUs.

    The device plugin names them so under the strategies ``single`` (MIG) and without a resource of their own (sharing).
    """
    return SLICE in product or product.endswith("-SHARED")


def landing_of(spec: InferenceServiceSpec, nodes: Iterable[NodeView]) -> Landing:
    """Return what is known of the nodes with GPUs on which pods of ``spec`` may land."""
    taking = [node for node in nodes if node.allocatable.get(GPU_RESOURCE, 0) > 0 and takes(spec, node)]
    products = [(node.name, node.labels.get(PRODUCT_LABEL, "")) for node in taking]
    # In one order, whatever the one in which they were seen: a message names the first of them.
    parts = tuple(sorted(f"{name} ({product})" for name, product in products if is_part(product)))
    largest = max((node.allocatable[GPU_RESOURCE] for node in taking), default=None)
    return Landing(largest, parts, len(parts) < len(taking))


def takes(spec: InferenceServiceSpec, node: NodeView) -> bool:
    """Return whether a node takes the pods of a spec: its GPU product, its labels, its taints."""
    products = (spec.accelerator.products if spec.accelerator else None) or ()
    if products and node.labels.get(PRODUCT_LABEL) not in products:
        return False
    wanted = (spec.pod.node_selector if spec.pod else None) or {}
    return all(node.labels.get(key) == value for key, value in wanted.items()) and not any(untolerated(spec, node))


def untolerated(spec: InferenceServiceSpec, node: NodeView) -> Iterator[tuple[str, str, str]]:
    """Yield the taints of a node (key, value, effect) that keep the pods of a spec away."""
    listed = (spec.pod.tolerations if spec.pod else None) or ()
    tolerations = (*listed, *([_GPU_TOLERATION] if spec.accelerator else []))
    for taint in node.taints:
        if taint[2] in _KEEPS_AWAY and not any(_matches(toleration, *taint) for toleration in tolerations):
            yield taint


def _matches(toleration: Mapping[str, object], key: str, value: str, effect: str) -> bool:
    """Whether a toleration covers a taint, by the rules of the Kubernetes scheduler."""
    if toleration.get("effect") not in (None, "", effect):
        return False
    if toleration.get("key") in (None, ""):
        return toleration.get("operator") == "Exists"
    exists = toleration.get("operator") == "Exists"
    return toleration.get("key") == key and (exists or (toleration.get("value") or "") == value)
