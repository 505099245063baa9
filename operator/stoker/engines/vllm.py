"""vLLM, 0.12 and later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final

from stoker.agent.config import EngineMetrics
from stoker.api.engine import Batching, EngineName
from stoker.api.faults import Fault
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.api.types import ClaimSource, Switch, model_source
from stoker.engines import environment, vllm_faults
from stoker.engines.interface import MODEL_MOUNT, EnvVar, Invocation
from stoker.engines.progress import longest_prefill_seconds
from stoker.engines.versions import Version
from stoker.engines.vllm_args import PORT, cpu_kv_bytes, serve_args
from stoker.engines.vllm_arguments import read_arguments
from stoker.engines.vllm_memory import counted
from stoker.engines.vllm_table import vllm_options
from stoker.engines.vllm_values import (
    ATTENTION_VARIABLE,
    AUTO,
    KV_ELEMENT_BYTES,
    READY_TIMEOUT,
    kv_dtype_spans,
    on_gpu,
    takes_kv_bytes,
)
from stoker.engines.vllm_version import maker_image, version_of, version_text
from stoker.plan.types import EngineTraits, FractionOf, Layout

USER_ID, GROUP_ID = 2000, 0
"""The user ``vllm`` of the makers' image since 0.22; older images start under it with the variables given here."""
GPU_SEQUENCES, CPU_SEQUENCES = 256, 128
"""Sequences at once unless told otherwise. vLLM's own choice differs by GPU (256 or 1024); on the CPU it is 128."""
GPU_BLOCK_TOKENS, CPU_BLOCK_TOKENS = 16, 128
GIB: Final = 2**30
BATCHED_TOKENS: Final = ((0, 2048), (70 * GIB, 8192), (160 * GIB, 16384))
"""vLLM's own choice of the tokens of a step, by the memory of the device."""
FIRST_SHAPE_SECONDS: Final = 120
"""What a GPU kernel takes to be compiled for a shape that comes up for the first time."""
IMPORT_SECONDS: Final = 120
"""vLLM hears SIGTERM once torch and transformers are imported: after 10 s on two idle cores, later from a cold disk."""
STEP_TIMEOUT_SECONDS: Final = 300
"""How long vLLM waits for one step of its workers unless told otherwise: then its core ends itself."""
CPU_OVERHEAD_BYTES: Final = 3 * GIB
"""Two Python processes with torch, and what they compile."""

_SHARES_HASHES: Final = ("--kv-transfer-config", "--kv-events-config")
"""Options by which the hashes of KV blocks leave the pod."""

METRICS: Final = EngineMetrics(
    running="vllm:num_requests_running",
    waiting="vllm:num_requests_waiting",
    kv_usage="vllm:kv_cache_usage_perc",
    prompt_tokens="vllm:prompt_tokens_total",
    generation_tokens="vllm:generation_tokens_total",
    steps="vllm:iteration_tokens_total_count",
    requests_accepted=("vllm:prompt_tokens_total", "vllm:request_success_total"),
    ttft="vllm:time_to_first_token_seconds",
    tpot="vllm:request_time_per_output_token_seconds",
    served_apart=True,
)
"""Series of vLLM 0.12 and later; the same names to this day."""


class Vllm:
    """vLLM behind the interface of engines."""

    name: str = EngineName.VLLM.value

    def default_image(self, spec: InferenceServiceSpec) -> str:
        """Return the makers' image of the version."""
        return maker_image(spec)

    def version(self, spec: InferenceServiceSpec) -> str | None:
        """Return the version: the field, else the image's tag, else the default; None where a tag does not tell."""
        return version_text(spec.engine)

    def faults(self, spec: InferenceServiceSpec) -> Sequence[Fault]:
        """Return what this version cannot do."""
        return vllm_faults.faults(spec)

    def traits(self, spec: InferenceServiceSpec) -> EngineTraits:
        """Return what planning must know."""
        version, gpu = version_of(spec), on_gpu(spec)
        dtypes = {name for name, span in kv_dtype_spans(spec).items() if span.covers(version)}
        usual = EngineTraits(
            name=self.name,
            version=version_text(spec.engine),
            fraction_of=FractionOf.TOTAL,
            default_memory_fraction=Decimal("0.9"),
            default_max_sequences=GPU_SEQUENCES if gpu else CPU_SEQUENCES,
            kv_element_bytes={name: KV_ELEMENT_BYTES[name] for name in sorted(dtypes)},
            default_kv_dtype=AUTO,
            has_queue_limit=vllm_options().has("--max-num-queued-reqs", version),
            supports_pipeline=True,
            supports_tensor=True,
            context_is_shared=True,
            block_tokens=GPU_BLOCK_TOKENS if gpu else CPU_BLOCK_TOKENS,
            kv_cache_step_bytes=1 if gpu or takes_kv_bytes(spec, version) else GIB,
            default_batched_tokens=BATCHED_TOKENS if gpu else BATCHED_TOKENS[:1],
            shares_memory=True,
            host_overhead_bytes=CPU_OVERHEAD_BYTES,
        )
        return counted(spec, version, usual)

    def invocation(self, spec: InferenceServiceSpec, layout: Layout, service_name: str) -> Invocation:
        """Return how vLLM is started."""
        version = version_of(spec)
        on_volume = isinstance(model_source(spec.model.source), ClaimSource)
        return Invocation(
            image=spec.engine.image or maker_image(spec),
            command=("vllm", "serve"),
            args=serve_args(spec, layout, service_name),
            env=tuple(_variables(spec, layout, version)),
            port=PORT,
            health_path="/health",
            metrics=METRICS,
            writable_paths=environment.WRITABLE,
            user_id=USER_ID,
            group_id=GROUP_ID,
            model_path=MODEL_MOUNT if on_volume else None,
            longest_prefill_seconds=_longest_prefill(spec, layout),
            deaf_seconds=IMPORT_SECONDS,
        )


def _variables(spec: InferenceServiceSpec, layout: Layout, version: Version | None) -> Iterator[EnvVar]:
    yield from environment.home("vllm")
    yield from environment.hub(spec)
    yield from environment.devices(spec)
    yield from _caches()
    yield EnvVar("VLLM_NO_USAGE_STATS", "1")
    if READY_TIMEOUT.covers(version) or version is None:
        yield EnvVar("VLLM_ENGINE_READY_TIMEOUT_S", str(layout.startup_budget_seconds))
    yield from _patience(_longest_prefill(spec, layout))
    yield from _attention(spec, version)
    yield from _hashes(spec, version)
    if on_gpu(spec):
        ranks = max(1, layout.gpus_per_pod)
        yield EnvVar("OMP_NUM_THREADS", str(max(1, environment.cores(layout) // ranks)))
    else:
        yield from _cpu(spec, layout, version)


def _caches() -> Iterator[EnvVar]:
    folders = {
        "VLLM_CACHE_ROOT": "vllm",
        "TRITON_CACHE_DIR": "triton",
        "TORCHINDUCTOR_CACHE_DIR": "inductor",
        "NUMBA_CACHE_DIR": "numba",
    }
    yield from (EnvVar(name, f"{environment.CACHE}/{folder}") for name, folder in folders.items())


def _patience(longest_step_seconds: int) -> Iterator[EnvVar]:
    """Yield vLLM's own bound of a step where its default would end an engine that the agent knows to be busy."""
    if longest_step_seconds > STEP_TIMEOUT_SECONDS:
        yield EnvVar("VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS", str(longest_step_seconds))


def _attention(spec: InferenceServiceSpec, version: Version | None) -> Iterator[EnvVar]:
    backend = spec.execution.attention_backend if spec.execution else None
    if backend is not None and ATTENTION_VARIABLE.covers(version):
        yield EnvVar("VLLM_ATTENTION_BACKEND", backend)


def _hashes(spec: InferenceServiceSpec, version: Version | None) -> Iterator[EnvVar]:
    """Yield one seed for all pods where others compare the hashes of their blocks, which are random otherwise."""
    given = read_arguments(spec.engine.args or (), vllm_options(), version)
    if any(option in argument.options for argument in given for option in _SHARES_HASHES):
        yield EnvVar("PYTHONHASHSEED", "0")


def _cpu(spec: InferenceServiceSpec, layout: Layout, version: Version | None) -> Iterator[EnvVar]:
    # Bound to cores, every pod of a node would take the same ones: threads are counted, not bound.
    yield EnvVar("VLLM_CPU_OMP_THREADS_BIND", "nobind")
    yield EnvVar("OMP_NUM_THREADS", str(environment.cores(layout)))
    if not takes_kv_bytes(spec, version):
        yield EnvVar("VLLM_CPU_KVCACHE_SPACE", str(max(1, cpu_kv_bytes(layout) // GIB)))


def _longest_prefill(spec: InferenceServiceSpec, layout: Layout) -> int:
    batching = spec.batching or Batching()
    tokens = batching.max_batched_tokens or (BATCHED_TOKENS[-1] if on_gpu(spec) else BATCHED_TOKENS[0])[1]
    if batching.chunked_prefill == Switch.DISABLED:
        tokens = max(tokens, layout.max_length or 0)
    return longest_prefill_seconds(layout, tokens, FIRST_SHAPE_SECONDS if on_gpu(spec) else 0)
