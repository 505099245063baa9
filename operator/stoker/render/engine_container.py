"""The engine's container."""

from collections.abc import Iterator
from typing import Any

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.engines.interface import EnvVar, Invocation
from stoker.plan.types import Layout
from stoker.render import timing
from stoker.render.agent_container import AGENT_PORT, literal
from stoker.render.identity import ServiceIdentity
from stoker.render.meta import tidy
from stoker.render.quantities import bytes_quantity, cpu_quantity
from stoker.render.security import container_security
from stoker.render.volumes import engine_mounts


def engine_container(
    service: ServiceIdentity, spec: InferenceServiceSpec, layout: Layout, invocation: Invocation
) -> dict[str, Any]:
    """Return the engine's container. Its probes and its preStop hook ask the agent, which knows the engine."""
    return {
        "name": "engine",
        "image": invocation.image,
        "command": [literal(word) for word in invocation.command],
        "args": [literal(word) for word in invocation.args],
        "env": list(_environment(spec, invocation)),
        "ports": [{"name": "http", "containerPort": invocation.port, "protocol": "TCP"}],
        "resources": engine_resources(layout),
        "startupProbe": timing.startup_probe(AGENT_PORT, layout.startup_budget_seconds),
        "readinessProbe": timing.readiness_probe(AGENT_PORT),
        "livenessProbe": timing.liveness_probe(AGENT_PORT),
        "lifecycle": timing.pre_stop(AGENT_PORT, service.drain_token),
        # The end of the log becomes the termination message: why an engine died can be told without reading logs.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": container_security(),
        "volumeMounts": engine_mounts(spec, layout, invocation),
    }


def engine_resources(layout: Layout) -> dict[str, Any]:
    """Return requests and limits: memory and GPUs are equal in both, CPU is a request only (no throttling).

    GPUs stand here alone: an init container that held them would be admitted with them again after a node's restart.
    """
    hard = {"memory": bytes_quantity(layout.memory_request_bytes)}
    if layout.gpus_per_pod and layout.resource_name:
        hard[layout.resource_name] = str(layout.gpus_per_pod)
    return {"requests": {"cpu": cpu_quantity(layout.cpu_request_millicores), **hard}, "limits": dict(hard)}


def _environment(spec: InferenceServiceSpec, invocation: Invocation) -> Iterator[dict[str, Any]]:
    """Yield the engine's variables, then the user's; a user's variable takes the place of the engine's."""
    own = (spec.pod.env if spec.pod else None) or ()
    taken = {variable.name for variable in own}
    yield from (_variable(variable) for variable in invocation.env if variable.name not in taken)
    yield from (tidy(variable.to_json()) for variable in own)


def _variable(variable: EnvVar) -> dict[str, Any]:
    if variable.secret_name is None:
        return {"name": variable.name, "value": literal(variable.value or "")}
    reference = {"name": variable.secret_name, "key": variable.secret_key}
    return {"name": variable.name, "valueFrom": {"secretKeyRef": reference}}
