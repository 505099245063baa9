"""What was observed, in the projections that decisions read."""

from collections.abc import Mapping

from stoker.plan.snapshot import NodeView, PodView

GIB = 2**30
_MEMORY_MIB: Mapping[str, int] = {
    "NVIDIA-H100-80GB-HBM3": 81559,
    "NVIDIA-A100-SXM4-80GB": 81920,
    "NVIDIA-H200": 143771,
    "NVIDIA-L4": 23034,
    "Tesla-T4": 15360,
}


def a_node(
    name: str = "node-0",
    *,
    gpus: int = 0,
    product: str = "NVIDIA-H100-80GB-HBM3",
    memory_mib: int | None = None,
    cpu_millicores: int = 32_000,
    memory_bytes: int = 256 * GIB,
    labels: Mapping[str, str] | None = None,
    taints: tuple[tuple[str, str, str], ...] = (),
    ready: bool = True,
    schedulable: bool = True,
) -> NodeView:
    """A node, with GPUs and the labels that GPU feature discovery gives it."""
    found: dict[str, str] = {}
    if gpus:
        memory = memory_mib if memory_mib is not None else _MEMORY_MIB[product]
        found = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": str(memory)}
    allocatable = {"cpu": cpu_millicores, "memory": memory_bytes} | ({"nvidia.com/gpu": gpus} if gpus else {})
    return NodeView(name, ready, schedulable, found | dict(labels or {}), allocatable, taints)


def a_pod(
    name: str = "chat-0",
    *,
    node: str | None = None,
    gpus: int = 0,
    ready: bool = False,
    phase: str = "Pending",
    unschedulable: str | None = None,
    terminating: bool = False,
    revision: str | None = "r1",
) -> PodView:
    """A pod of the service, pending unless it is on a node."""
    return PodView(
        namespace="team-a",
        name=name,
        uid=f"uid-{name}",
        revision=revision,
        node=node,
        phase="Running" if node and phase == "Pending" else phase,
        reason=None,
        message=None,
        ready=ready,
        scheduled=node is not None,
        unschedulable_message=unschedulable,
        terminating=terminating,
        requests={"nvidia.com/gpu": gpus} if gpus else {},
    )
