"""What the cluster has left: room for further pods on its nodes."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.plan.host import AGENT_CPU_MILLICORES, AGENT_MEMORY_BYTES
from stoker.plan.landing import takes
from stoker.plan.snapshot import NodeView, Snapshot
from stoker.plan.types import Layout


def _free(snapshot: Snapshot, node: NodeView, resource: str) -> int:
    held = snapshot.held.get(node.name, {}).get(resource, 0)
    return max(node.allocatable.get(resource, 0) - held, 0)


def room_for_pods(spec: InferenceServiceSpec, layout: Layout, snapshot: Snapshot) -> int:
    """Return how many further pods of ``layout`` the cluster holds now, on the nodes that would take them.

    Pods of the service that wait for a node take their room first.
    """
    needs = _needs(layout)
    room = sum(_room(spec, snapshot, node, needs) for node in snapshot.nodes)
    waiting = sum(not pod.scheduled and not pod.terminating for pod in snapshot.pods)
    return max(room - waiting, 0)


def _needs(layout: Layout) -> Mapping[str, int]:
    """What one pod takes of a node. GPUs decide for a GPU engine; CPU and memory, the agent's too, for one without."""
    if layout.gpus_per_pod and layout.resource_name:
        return {layout.resource_name: layout.gpus_per_pod}
    cpu = layout.cpu_request_millicores + AGENT_CPU_MILLICORES
    return {"cpu": cpu, "memory": layout.memory_request_bytes + AGENT_MEMORY_BYTES}


def _room(spec: InferenceServiceSpec, snapshot: Snapshot, node: NodeView, needs: Mapping[str, int]) -> int:
    if not (node.ready and node.schedulable and takes(spec, node)):
        return 0
    return min(_free(snapshot, node, resource) // wanted for resource, wanted in needs.items() if wanted)
