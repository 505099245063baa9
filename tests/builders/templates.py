"""Pod templates and their containers, rendered for a service called `chat`."""

from typing import Any

from stoker.agent.config import AgentConfig
from stoker.engines.interface import Invocation
from stoker.plan.types import Layout
from stoker.render.identity import ServiceIdentity
from stoker.render.template import TemplateInputs, pod_template
from tests.builders.layouts import a_layout, an_invocation
from tests.builders.specs import SpecBuilder, a_spec

CHAT = ServiceIdentity("team-a", "chat", "11111111-2222-3333-4444-555555555555")


def template(
    spec: SpecBuilder | None = None,
    layout: Layout | None = None,
    invocation: Invocation | None = None,
    service: ServiceIdentity = CHAT,
) -> dict[str, Any]:
    """The whole template."""
    inputs = TemplateInputs(
        service=service,
        spec=(spec or a_spec()).build(),
        layout=layout or a_layout(),
        invocation=invocation or an_invocation(),
        agent_image="example.com/stoker:1",
        revision="0123456789",
    )
    return pod_template(inputs)


def pod(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """Its pod spec."""
    spec: dict[str, Any] = template(*args, **kwargs)["spec"]
    return spec


def engine(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """Its engine's container."""
    (container,) = pod(*args, **kwargs)["containers"]
    assert container["name"] == "engine"
    return dict(container)


def agent(*args: Any, **kwargs: Any) -> dict[str, Any]:
    """Its agent's container."""
    (container,) = pod(*args, **kwargs)["initContainers"]
    assert container["name"] == "agent"
    return dict(container)


def agent_config(*args: Any, **kwargs: Any) -> AgentConfig:
    """What its agent is told."""
    (variable,) = agent(*args, **kwargs)["env"]
    return AgentConfig.parse(variable["value"].replace("$$", "$"))
