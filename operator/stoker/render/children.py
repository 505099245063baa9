"""All children of a service, in the order in which they are created."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.render.deployment import deployment
from stoker.render.identity import ServiceIdentity
from stoker.render.meta import with_applied_hash
from stoker.render.networkpolicy import network_policy
from stoker.render.poddisruptionbudget import pod_disruption_budget
from stoker.render.service import service as cluster_service
from stoker.render.serviceaccount import service_account

KINDS = ("ServiceAccount", "NetworkPolicy", "Service", "PodDisruptionBudget", "Deployment")
"""Kinds of children, in the order of creation: what pods need stands before the pods."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """What the Deployment runs: a stored template, how often, and how it replaces an older one."""

    engine: str
    template: Mapping[str, Any]
    replicas: int
    strategy: str


def render_children(service: ServiceIdentity, rollout: Rollout) -> list[dict[str, Any]]:
    """Return the wanted children, each with the hash of its own content."""
    engine, replicas = rollout.engine, rollout.replicas
    children = (
        service_account(service, engine),
        network_policy(service, engine),
        cluster_service(service, engine),
        pod_disruption_budget(service, engine, replicas),
        deployment(service, engine, rollout.template, replicas, rollout.strategy),
    )
    return [with_applied_hash(child) for child in children if child is not None]
