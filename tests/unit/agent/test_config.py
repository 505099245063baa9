"""The agent's configuration: the same class writes and reads it, and every fault has a line of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stoker.agent.config import AgentConfig, AgentConfigError, EngineMetrics

MINIMAL: dict[str, Any] = {
    "servedName": "m",
    "startupBudgetSeconds": 60,
    "longestPrefillSeconds": 30,
    "drainBudgetSeconds": 40,
    "drainToken": "token-of-a-test",
}


def faults_of(**changes: Any) -> tuple[str, ...]:
    with pytest.raises(AgentConfigError) as caught:
        AgentConfig.parse(json.dumps({**MINIMAL, **changes}))
    return caught.value.faults


def test_what_is_dumped_parses_to_the_same_configuration() -> None:
    config = AgentConfig(
        served_name='a "b" \\ c\n',
        startup_budget_seconds=900,
        longest_prefill_seconds=120,
        drain_budget_seconds=100,
        drain_token="0123456789abcdef",
        metrics=EngineMetrics(running="vllm:num_requests_running", requests_accepted=("a", "b")),
    )
    assert AgentConfig.parse(config.to_json()) == config
    assert config.to_json() == config.model_copy().to_json()


def test_keys_of_the_document_are_camel_case() -> None:
    document = json.loads(AgentConfig.parse(json.dumps(MINIMAL)).to_json())
    assert {"enginePort", "settleSeconds", "stateDir", "metrics", "warmup"} <= set(document)
    assert "kvUsage" in document["metrics"]


def test_defaults_are_those_of_the_interface() -> None:
    config = AgentConfig.parse(json.dumps(MINIMAL))
    assert (config.protocol, config.port, config.engine_port) == (1, 9090, 8000)
    assert (config.settle_seconds, config.quiet_seconds, config.state_dir) == (10, 5, "/run/stoker")
    assert (config.health_path, config.models_path, config.metrics_path) == ("/health", "/v1/models", "/metrics")


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"unknownField": 1}, "unknownField"),
        ({"protocol": 2}, "protocol"),
        ({"port": 0}, "port"),
        ({"servedName": ""}, "servedName"),
        ({"healthPath": "health"}, "healthPath"),
        ({"metricsPath": "/a b"}, "metricsPath"),
        ({"metrics": {"running": "not a name"}}, "metrics.running"),
        ({"warmup": {"requests": 101}}, "warmup.requests"),
        ({"warmup": {"task": "Embed"}}, "warmup.task"),
        ({"drainToken": "short"}, "drainToken"),
        ({"drainToken": "has a space"}, "drainToken"),
        ({"stateDir": "relative"}, "stateDir"),
        ({"drainBudgetSeconds": -1}, "drainBudgetSeconds"),
        ({"port": 8000, "enginePort": 8000}, "document"),
    ],
)
def test_a_fault_names_its_field(changes: dict[str, Any], path: str) -> None:
    (fault,) = faults_of(**changes)
    assert fault.startswith(f"STOKER_AGENT_CONFIG: {path}: ")


def test_every_fault_is_told_at_once() -> None:
    assert len(faults_of(port=0, servedName="", drainToken="")) == 3


def test_a_broken_document_is_one_fault() -> None:
    with pytest.raises(AgentConfigError) as caught:
        AgentConfig.parse("{")
    assert len(caught.value.faults) == 1
