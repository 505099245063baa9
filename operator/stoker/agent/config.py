"""The agent's whole configuration: one JSON document in one environment variable.

`render/` builds this model and dumps it (`to_json`); the agent parses it (`parse`). Both sides share the class, so that
a field cannot exist on one side only. Nothing but pydantic is imported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

CONFIG_ENV: Final = "STOKER_AGENT_CONFIG"
"""Name of the environment variable that holds the configuration."""

PROTOCOL: Final = 1
"""Version of the contract between an operator and its agents."""

MetricName = Annotated[str, Field(pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$", max_length=200)]
UrlPath = Annotated[str, Field(pattern=r"^/[\x21-\x7e]*$", max_length=256)]
Port = Annotated[int, Field(ge=1, le=65535)]
Seconds = Annotated[int, Field(ge=1, le=7 * 86400)]
Pause = Annotated[int, Field(ge=0, le=3600)]


class AgentConfigError(ValueError):
    """The configuration cannot be used. `faults` has one line for each thing that is wrong."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


class EngineMetrics(_Model):
    """Names of an engine's series, exactly as on its metrics page; `None` where the engine has no such series.

    `ttft` and `tpot` are histograms, named without `_bucket`. `steps` counts the engine's iterations.
    `requests_accepted` are counters that move when work was taken in. `served_apart`: the page comes from another
    process than the one that computes, so that a page which answers is no sign that the engine's core lives.
    """

    running: MetricName | None = None
    waiting: MetricName | None = None
    kv_usage: MetricName | None = None
    prompt_tokens: MetricName | None = None
    generation_tokens: MetricName | None = None
    steps: MetricName | None = None
    requests_accepted: tuple[MetricName, ...] = Field(default=(), max_length=8)
    ttft: MetricName | None = None
    tpot: MetricName | None = None
    served_apart: bool = False


BUILT_IN_PROMPTS: Final = (
    "Say hello.",
    "Count from one to twenty. " * 16,
)
"""One short prompt and one of about a hundred tokens: two shapes of work."""


class WarmupConfig(_Model):
    """Requests that the engine must answer before it takes traffic. No request means no warm-up."""

    requests: int = Field(default=1, ge=0, le=100)
    prompts: tuple[Annotated[str, Field(min_length=1, max_length=32768)], ...] = Field(default=(), max_length=64)
    task: Literal["Generate"] = "Generate"
    max_tokens: int = Field(default=8, ge=1, le=1024)


class AgentConfig(_Model):
    """What one agent needs to know of its engine. Times are in seconds.

    `longest_prefill_seconds`: the longest time in which a healthy, busy engine may show no progress.
    `deaf_seconds`: for how long after its start an engine that has not bound its port may lose a SIGTERM; 0: never.
    `drain_budget_seconds`: the longest that a drain may take: the pod's grace period minus a margin.
    `drain_token`: a guard against accidents, not a secret.
    """

    protocol: Literal[1] = PROTOCOL
    port: Port = 9090
    engine_port: Port = 8000
    served_name: str = Field(min_length=1, max_length=512)
    health_path: UrlPath = "/health"
    models_path: UrlPath = "/v1/models"
    metrics_path: UrlPath = "/metrics"
    metrics: EngineMetrics = EngineMetrics()
    warmup: WarmupConfig = WarmupConfig()
    startup_budget_seconds: Seconds
    longest_prefill_seconds: Seconds
    deaf_seconds: Pause = 0
    settle_seconds: Pause = 10
    quiet_seconds: Pause = 5
    drain_budget_seconds: int = Field(ge=0, le=7 * 86400)
    state_dir: str = Field(default="/run/stoker", pattern=r"^/[^\x00]*$", max_length=1024)
    drain_token: str = Field(min_length=8, max_length=128, pattern=r"^[A-Za-z0-9._~-]+$")

    @model_validator(mode="after")
    def _ports_differ(self) -> Self:
        if self.port == self.engine_port:
            raise ValueError(f"port and enginePort are both {self.port}; give the agent a port of its own")
        return self

    def to_json(self) -> str:
        """The document for the environment variable; equal configurations give equal bytes."""
        return self.model_dump_json(by_alias=True)

    @classmethod
    def parse(cls, document: str) -> AgentConfig:
        """Read the document. Raises `AgentConfigError` with one line per fault."""
        try:
            return cls.model_validate_json(document)
        except ValidationError as error:
            raise AgentConfigError([_fault(detail) for detail in error.errors(include_url=False)]) from None


def _fault(detail: ErrorDetails) -> str:
    path = ".".join(str(part) for part in detail["loc"]) or "document"
    message = detail["msg"].removeprefix("Value error, ")
    return f"{CONFIG_ENV}: {path}: {message[0].lower()}{message[1:]}"
