"""Pods that no node takes: what is missing, what the nodes offer, which field to change."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from stoker.api.engine import Resources
from stoker.plan.host import AGENT_CPU_MILLICORES, AGENT_MEMORY_BYTES
from stoker.plan.landing import takes, untolerated
from stoker.plan.rollout import Strategy
from stoker.plan.snapshot import NodeView
from stoker.plan.units import shown
from stoker.status.case import NODES_UNKNOWN, Case, Diagnosis
from stoker.status.selection import left_out
from stoker.status.text import bounded, scheduler_said

MAX_NODES = 5
"""Most nodes that a message lists."""

_HOST = ("cpu", "memory")
_INSUFFICIENT = re.compile(r"(\d+) Insufficient ([a-z0-9./-]{0,127}[a-z0-9])", re.IGNORECASE)


def waits_for_ending_pods(case: Case) -> Diagnosis | None:
    """There will be room once pods of the same service are gone that are finishing their requests."""
    if case.pod.unschedulable_message is None or not case.held_is_known:
        return None
    node = next((node.name for node in case.nodes if _is_open(case, node) and _will_have_room(case, node)), None)
    if node is None:
        return None
    message = (
        f"pods of this service that are ending still hold what the pod needs on {node}; it starts when they are gone"
    )
    return Diagnosis("WaitingForEndingPods", message, stalled=False)


def _will_have_room(case: Case, node: NodeView) -> bool:
    """Whether a node lacks something for the pod now, and no longer without the pods that are ending."""
    held, ending = case.held.get(node.name, {}), case.ending.get(node.name, {})
    free = {name: node.allocatable.get(name, 0) - held.get(name, 0) for name in case.pod.requests}
    lacking = [name for name, count in case.pod.requests.items() if free[name] < count]
    return bool(lacking) and all(free[name] + ending.get(name, 0) >= case.pod.requests[name] for name in lacking)


def unschedulable(case: Case) -> Diagnosis | None:
    """No node has room, or none that the pod may use."""
    said = case.pod.unschedulable_message
    if said is None:
        return None
    parts = [text for cause in _CAUSES if (text := cause(case, said))]
    message = "; ".join(parts) or scheduler_said(said)
    return Diagnosis("Unschedulable", bounded(f"no node takes the pod: {message}"), stalled=False)


# ---- causes --------------------------------------------------------------------------------------------------------
def _devices(case: Case, said: str) -> str | None:
    resource = next((name for _, name in _INSUFFICIENT.findall(said) if "/" in name), None)
    if resource is None:
        return None
    need = case.pod.requests.get(resource, 0)
    needs = f"it needs {need} {resource} on one node"
    if not case.nodes_are_known:
        return f"{needs}; {NODES_UNKNOWN}"
    offers = _offers(case, resource)
    most = max((offer.total for offer in offers), default=0)
    remedy = _remedy(need, most, _way_to_make_room(case, offers, resource, need))
    return f"{needs}, and {_listed(offers, case.held_is_known)}; {remedy}"


@dataclass(frozen=True, slots=True)
class _Offer:
    node: str
    free: int
    total: int


def _offers(case: Case, resource: str) -> list[_Offer]:
    """Return what the nodes that the pod may use have of a resource, the fullest last."""
    found = []
    for node in case.nodes:
        total = node.allocatable.get(resource, 0)
        if total and _is_open(case, node) and (resource not in _HOST or _has_devices(case, node)):
            found.append(_Offer(node.name, max(0, total - case.held.get(node.name, {}).get(resource, 0)), total))
    return sorted(found, key=lambda offer: (-offer.free, offer.node))


def _is_open(case: Case, node: NodeView) -> bool:
    """Whether the node takes pods, and this one by its taints, its product and its labels."""
    return node.ready and node.schedulable and (case.spec is None or takes(case.spec, node))


def _has_devices(case: Case, node: NodeView) -> bool:
    """Whether a node has the devices that the pod asks for, free or not: only then its CPU and memory are of use."""
    return all(node.allocatable.get(name, 0) >= count for name, count in case.pod.requests.items() if "/" in name)


def _listed(offers: list[_Offer], free_is_known: bool, show: Callable[[int], str] = str) -> str:
    if not offers:
        return "no node that it may use has any"
    if not free_is_known:
        totals = ", ".join(f"{offer.node} has {show(offer.total)}" for offer in offers[:MAX_NODES])
        return f"{totals} in all (how much of it is free is not known)"
    shown_offers = [f"{offer.node} has {show(offer.free)} of {show(offer.total)} free" for offer in offers[:MAX_NODES]]
    more = f" and {len(offers) - MAX_NODES} more nodes less" if len(offers) > MAX_NODES else ""
    return ", ".join(shown_offers) + more


def _remedy(need: int, most: int, makes_room: str | None) -> str:
    if need > most > 0:
        return f"lower spec.parallelism.tensor x pipeline to {most} at most, or add larger nodes"
    if not most:
        return "add nodes with GPUs whose device plugin runs"
    return f"free GPUs, add nodes, or {makes_room or 'lower spec.replicas'}"


def _way_to_make_room(case: Case, offers: list[_Offer], resource: str, need: int) -> str | None:
    """Return how the pods that are being replaced would make room; None where that is done or would not be enough."""
    held = {node: counts.get(resource, 0) for node, counts in case.replaced.items()}
    if not any(held.get(offer.node) and offer.free + held[offer.node] >= need for offer in offers):
        return None
    if case.strategy == Strategy.RECREATE:
        return None
    if case.strategy != Strategy.REPLACE and case.spec is not None and case.spec.replicas >= 2:
        return "set spec.rollout.strategy to Replace, so that a pod of the old revision makes room while another serves"
    return "set spec.rollout.strategy to Recreate, so that the old revision's pod makes room (none serves meanwhile)"


def _host(case: Case, said: str) -> str | None:
    names = {name.lower() for _, name in _INSUFFICIENT.findall(said)}
    if _lacks_devices(case, names):
        return None
    texts = [text for name, text in (("cpu", _cpu(case)), ("memory", _memory(case))) if name in names]
    if "ephemeral-storage" in names:
        texts.append("there is too little ephemeral-storage; mount a volume for the cache in spec.pod.volumes")
    return "; ".join(texts) or None


def _lacks_devices(case: Case, lacking: set[str]) -> bool:
    """Whether no node has the devices: what it lacks besides is no cause then."""
    wanted = any("/" in name for name in lacking)
    return (
        wanted and case.nodes_are_known and not any(_is_open(case, it) and _has_devices(case, it) for it in case.nodes)
    )


def _cpu(case: Case) -> str:
    need = case.layout.cpu_request_millicores if case.layout else 0
    return f"too little CPU is free: {_of_host(case, 'cpu', need, AGENT_CPU_MILLICORES, _cores)}"


def _memory(case: Case) -> str:
    need = case.layout.memory_request_bytes if case.layout else 0
    return f"too little memory is free: {_of_host(case, 'memory', need, AGENT_MEMORY_BYTES, shown)}"


def _of_host(case: Case, resource: str, engine: int, agent: int, show: Callable[[int], str]) -> str:
    """Return what the pod needs of a node's CPU or memory, and what the nodes have of it."""
    field = f"spec.resources.{resource}"
    is_derived = _is_derived(case, resource)
    source = f"derived; {field} sets it" if is_derived else field
    needs = f"it needs {show(engine)} ({source}) and {show(agent)} for the agent on one node"
    if not case.nodes_are_known:
        return f"{needs}; {NODES_UNKNOWN}"
    offers = _offers(case, resource)
    most = max((offer.total for offer in offers), default=0)
    room = _way_to_make_room(case, offers, resource, engine + agent)
    free = f"free some of it, add nodes, or {room}" if room else "free some of it, or add nodes"
    lower = f"set a lower {field}" if is_derived else f"lower {field}"
    remedy = f"{lower}, or add larger nodes" if engine + agent > most > 0 else free
    return f"{needs}, and {_listed(offers, case.held_is_known, show)}; {remedy}"


def _is_derived(case: Case, resource: str) -> bool:
    """Whether the layout's amount of a resource is Stoker's own, and none that the spec states."""
    if case.spec is None:
        return False
    stated = case.spec.resources or Resources()
    return (stated.cpu if resource == "cpu" else stated.memory) is None


def _cores(millicores: int) -> str:
    return f"{millicores / 1000:g} core{'' if millicores == 1000 else 's'}"


def _taints(case: Case, said: str) -> str | None:
    if "untolerated taint" not in said:
        return None
    kept = (taint for node in case.nodes if case.spec for taint in untolerated(case.spec, node))
    taints = sorted({f"{key}={value}:{effect}" for key, value, effect in kept})
    named = f" ({', '.join(taints[:MAX_NODES])})" if taints else ""
    return (
        f"nodes have taints that it does not tolerate{named}; add them to spec.pod.tolerations where it may run there"
    )


def _spread(case: Case, said: str) -> str | None:
    if "topology spread" in said:
        return "spec.pod.topologySpreadConstraints leave no node"
    return "spec.pod.affinity leaves no node" if "affinity rules" in said else None


_CAUSES: tuple[Callable[[Case, str], str | None], ...] = (_devices, _host, left_out, _taints, _spread)
