"""The agent: a native sidecar beside the engine, from the operator's own image."""

from typing import Any

from stoker.agent.config import CONFIG_ENV, AgentConfig
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.engines.interface import Invocation
from stoker.plan.host import AGENT_CPU_MILLICORES, AGENT_MEMORY_BYTES
from stoker.plan.types import Layout
from stoker.render import timing
from stoker.render.identity import ServiceIdentity
from stoker.render.quantities import bytes_quantity, cpu_quantity
from stoker.render.security import agent_security
from stoker.render.volumes import AGENT_STATE
from stoker.render.warmup import warmup_config

AGENT_PORT = 9090


def agent_config(
    service: ServiceIdentity, spec: InferenceServiceSpec, layout: Layout, invocation: Invocation
) -> AgentConfig:
    """Return everything that the agent knows of its engine."""
    return AgentConfig(
        port=AGENT_PORT,
        engine_port=invocation.port,
        served_name=served_name(service, spec),
        health_path=invocation.health_path,
        metrics=invocation.metrics,
        warmup=warmup_config(spec),
        startup_budget_seconds=layout.startup_budget_seconds,
        longest_prefill_seconds=invocation.longest_prefill_seconds,
        deaf_seconds=min(invocation.deaf_seconds, timing.drain_budget(layout)),
        settle_seconds=timing.SETTLE,
        drain_budget_seconds=timing.drain_budget(layout),
        drain_token=service.drain_token,
    )


def served_name(service: ServiceIdentity, spec: InferenceServiceSpec) -> str:
    """Return the first name under which the model is served: the field, else that of the service."""
    return spec.model.names[0] if spec.model.names else service.name


def agent_container(image: str, config: AgentConfig) -> dict[str, Any]:
    """Return the agent's container: an init container that stays (``restartPolicy: Always``).

    It asks for CPU of its own: an engine that takes every core must not make its probes late.
    """
    return {
        "name": "agent",
        "image": image,
        "command": ["stoker", "agent"],
        "restartPolicy": "Always",
        "env": [{"name": CONFIG_ENV, "value": literal(config.to_json())}],
        "ports": [{"name": "agent", "containerPort": config.port, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": cpu_quantity(AGENT_CPU_MILLICORES), "memory": bytes_quantity(AGENT_MEMORY_BYTES)},
            "limits": {"memory": "256Mi"},
        },
        "startupProbe": timing.agent_startup_probe(config.port),
        "livenessProbe": timing.agent_liveness_probe(config.port),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": agent_security(),
        "volumeMounts": [{"name": AGENT_STATE, "mountPath": config.state_dir}],
    }


def literal(text: str) -> str:
    """Return ``text`` so that it arrives byte for byte: Kubernetes expands ``$(NAME)`` and reads ``$$`` as ``$``."""
    return text.replace("$", "$$")
