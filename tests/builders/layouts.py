"""Layouts and invocations as planning and engines would give them, where a test is about what is made of them."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from stoker.agent.config import EngineMetrics
from stoker.engines.interface import EnvVar, Invocation, WritablePath
from stoker.plan.types import Layout, Placement, Verdict

GIB = 2**30


def a_layout(gpus: int = 1, **changes: Any) -> Layout:
    """A layout that fits: on `gpus` whole GPUs, or on the CPU with none."""
    layout = Layout(
        placement=Placement.GPU if gpus else Placement.CPU,
        pods_per_replica=1,
        gpus_per_pod=gpus,
        resource_name="nvidia.com/gpu" if gpus else None,
        tensor=max(gpus, 1),
        pipeline=1,
        max_length=8192,
        max_sequences=256,
        max_queued=512,
        gpu_layers=None,
        memory_fraction=Decimal("0.9"),
        kv_dtype="auto",
        weight_bytes=16 * GIB,
        kv_cache_bytes=None,
        kv_tokens=400_000,
        max_concurrency=Decimal("48.8"),
        shm_bytes=2 * GIB,
        memory_request_bytes=24 * GIB,
        cpu_request_millicores=4000,
        startup_budget_seconds=900,
        verdict=Verdict.FITS,
    )
    return replace(layout, **changes)


def an_invocation(*args: str, **changes: Any) -> Invocation:
    """How an engine is started that downloads its model and writes to /cache, /tmp and /dev/shm."""
    invocation = Invocation(
        image="example.com/engine:1",
        command=("engine", "serve"),
        args=args or ("a/model", "--served-model-name", "chat"),
        env=(
            EnvVar("HOME", "/cache/home"),
            EnvVar("OMP_NUM_THREADS", "1"),
            EnvVar("HF_TOKEN", secret_name="hub", secret_key="HF_TOKEN"),
        ),
        port=8000,
        health_path="/health",
        metrics=EngineMetrics(running="engine:running"),
        writable_paths=(
            WritablePath("cache", "/cache"),
            WritablePath("tmp", "/tmp"),
            WritablePath("shm", "/dev/shm", 2 * GIB, memory=True),
        ),
        user_id=2000,
        group_id=0,
        model_path=None,
        longest_prefill_seconds=60,
        drains_on_sigterm=True,
    )
    return replace(invocation, **changes)
