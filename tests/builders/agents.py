"""Builders for tests of the agent: configurations, readings, metrics pages in two spellings."""

from __future__ import annotations

from typing import Any

from stoker.agent.config import AgentConfig, EngineMetrics
from stoker.agent.metrics import Reading

TOKEN = "token-of-a-test"

VLLM = EngineMetrics(
    running="vllm:num_requests_running",
    waiting="vllm:num_requests_waiting",
    kv_usage="vllm:kv_cache_usage_perc",
    prompt_tokens="vllm:prompt_tokens_total",
    generation_tokens="vllm:generation_tokens_total",
    steps="vllm:iteration_tokens_total_count",
    requests_accepted=("http_requests_total",),
    ttft="vllm:time_to_first_token_seconds",
    tpot="vllm:request_time_per_output_token_seconds",
    served_apart=True,
)
LLAMA_CPP = EngineMetrics(
    running="llamacpp:requests_processing",
    waiting="llamacpp:requests_deferred",
    prompt_tokens="llamacpp:prompt_tokens_total",
    generation_tokens="llamacpp:tokens_predicted_total",
    steps="llamacpp:n_decode_total",
)
SPELLINGS = {"vllm": VLLM, "llama.cpp": LLAMA_CPP}


def agent_config(**changes: Any) -> AgentConfig:
    """A valid configuration with short times."""
    values: dict[str, Any] = {
        "served_name": "m",
        "metrics": VLLM,
        "startup_budget_seconds": 60,
        "longest_prefill_seconds": 30,
        "settle_seconds": 1,
        "quiet_seconds": 1,
        "drain_budget_seconds": 3600,
        "drain_token": TOKEN,
        **changes,
    }
    return AgentConfig(**values)


def reading(running: float | None = 0, waiting: float | None = 0, **others: Any) -> Reading:
    """A metrics page as read: idle unless told otherwise."""
    values: dict[str, Any] = {"prompt_tokens": 10.0, "generation_tokens": 5.0, "steps": 7.0, **others}
    return Reading(running=running, waiting=waiting, **values)
