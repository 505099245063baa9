"""The arguments of ``vllm serve``: each typed field as the option that the version has.

The order is fixed. Booleans are written ``--x`` and ``--no-x``, the only way that every version from 0.12 to 0.33
takes. ``--generation-config`` is left alone: the sampling defaults that a model's makers ship with it apply, as they do
with vLLM by itself; ``args: ["--generation-config", "vllm"]`` asks for neutral ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from stoker.api.engine import Batching, Context, Execution, Quantization, Speculation
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.api.types import ClaimSource, Switch, model_source
from stoker.engines.interface import MODEL_MOUNT
from stoker.engines.versions import Version
from stoker.engines.vllm_arguments import read_arguments
from stoker.engines.vllm_table import vllm_options
from stoker.engines.vllm_values import takes_kv_bytes
from stoker.engines.vllm_version import version_of
from stoker.plan.types import Layout

PORT: Final = 8000
SHUTDOWN_TIMEOUT_SECONDS: Final = 15
"""How long vLLM itself waits for running requests after SIGTERM: what the drain before it may have left behind. Shorter
than the 20 s that a pod gets after a failed probe."""
QUIET_PATHS: Final = "/health,/metrics,/v1/models"
"""Paths that the agent asks every few seconds, left out of the access log."""


@dataclass(frozen=True, slots=True)
class _Rendering:
    """What every part of the argument list is made from."""

    spec: InferenceServiceSpec
    layout: Layout
    service_name: str
    version: Version | None

    def has(self, option: str) -> bool:
        return vllm_options().has(option, self.version)

    def given(self, option: str) -> bool:
        """Return whether ``engine.args`` has the option, so that a default of ours gives way."""
        read = read_arguments(self.spec.engine.args or (), vllm_options(), self.version)
        return any(option in argument.options for argument in read)


def serve_args(spec: InferenceServiceSpec, layout: Layout, service_name: str) -> tuple[str, ...]:
    """Return the arguments after ``vllm serve``, the model first and ``engine.args`` last."""
    it = _Rendering(spec, layout, service_name, version_of(spec))
    parts = (_identity, _server, _parallelism, _memory, _batching, _execution, _speculation)
    own = [argument for part in parts for argument in part(it)]
    return (model_argument(spec), *own, *(spec.engine.args or ()))


def model_argument(spec: InferenceServiceSpec) -> str:
    """Return the model as vLLM is told it: a repository of the Hub, or a path below the mount of the claim."""
    source = model_source(spec.model.source)
    if isinstance(source, ClaimSource):
        return f"{MODEL_MOUNT}/{source.path}".rstrip("/")
    return source.repository


def _identity(it: _Rendering) -> Iterator[str]:
    yield from ("--served-model-name", *(it.spec.model.names or (it.service_name,)))
    revision = it.spec.model.revision
    if revision is not None:
        yield from ("--revision", revision, "--code-revision", revision, "--tokenizer-revision", revision)


def _server(it: _Rendering) -> Iterator[str]:
    yield from ("--host", "0.0.0.0", "--port", str(PORT))  # noqa: S104 - in a pod, behind a NetworkPolicy
    yield "--disable-fastapi-docs"
    if it.has("--disable-access-log-for-endpoints") and not it.given("--disable-access-log-for-endpoints"):
        yield from ("--disable-access-log-for-endpoints", QUIET_PATHS)
    if it.has("--shutdown-timeout"):
        yield from ("--shutdown-timeout", str(SHUTDOWN_TIMEOUT_SECONDS))


def _parallelism(it: _Rendering) -> Iterator[str]:
    if it.layout.gpus_per_pod:
        yield from (
            "--tensor-parallel-size",
            str(it.layout.tensor),
            "--pipeline-parallel-size",
            str(it.layout.pipeline),
        )


def _memory(it: _Rendering) -> Iterator[str]:
    quantization = it.spec.quantization or Quantization()
    yield from ("--gpu-memory-utilization", str(it.layout.memory_fraction))
    if takes_kv_bytes(it.spec, it.version):
        yield from ("--kv-cache-memory-bytes", str(cpu_kv_bytes(it.layout)))
    if it.layout.max_length is not None:
        yield from ("--max-model-len", str(it.layout.max_length))
    if quantization.weights is not None:
        yield from ("--quantization", quantization.weights)
    if quantization.kv_cache is not None:
        yield from ("--kv-cache-dtype", quantization.kv_cache)
    yield from _switch("enable-prefix-caching", (it.spec.context or Context()).prefix_caching)


def cpu_kv_bytes(layout: Layout) -> int:
    """Return the KV cache of a CPU engine, in bytes: the layout's, or a quarter of the container where that is unknown.

    It is always told: by itself vLLM takes its share of the memory of the node, not of the container, and is killed.
    """
    return layout.kv_cache_bytes if layout.kv_cache_bytes is not None else layout.memory_request_bytes // 4


def _batching(it: _Rendering) -> Iterator[str]:
    batching = it.spec.batching or Batching()
    yield from ("--max-num-seqs", str(it.layout.max_sequences))
    if batching.max_batched_tokens is not None:
        yield from ("--max-num-batched-tokens", str(batching.max_batched_tokens))
    if it.layout.max_queued is not None and it.has("--max-num-queued-reqs"):
        yield from ("--max-num-queued-reqs", str(it.layout.max_queued))
    yield from _switch("enable-chunked-prefill", batching.chunked_prefill)
    if batching.scheduling is not None:
        yield from ("--scheduling-policy", batching.scheduling.value.lower())


def _execution(it: _Rendering) -> Iterator[str]:
    execution = it.spec.execution or Execution()
    if execution.cuda_graphs is not None:
        mode = "FULL_AND_PIECEWISE" if execution.cuda_graphs == Switch.ENABLED else "NONE"
        yield from ("--compilation-config", _json({"cudagraph_mode": mode}))
    if execution.attention_backend is not None and it.has("--attention-backend"):
        yield from ("--attention-backend", execution.attention_backend)


def _speculation(it: _Rendering) -> Iterator[str]:
    if it.spec.speculation is not None:
        yield from ("--speculative-config", _json(_drafting(it.spec.speculation)))


def _drafting(speculation: Speculation) -> dict[str, str | int]:
    config: dict[str, str | int] = {"method": speculation.method.value, "num_speculative_tokens": speculation.tokens}
    if speculation.prompt_lookup_max is not None:
        config["prompt_lookup_max"] = speculation.prompt_lookup_max
    if speculation.prompt_lookup_min is not None:
        config["prompt_lookup_min"] = speculation.prompt_lookup_min
    return config


def _switch(option: str, wanted: Switch | None) -> Iterator[str]:
    if wanted is not None:
        yield f"--{option}" if wanted == Switch.ENABLED else f"--no-{option}"


def _json(value: dict[str, str] | dict[str, str | int]) -> str:
    return json.dumps(value, separators=(",", ":"))
