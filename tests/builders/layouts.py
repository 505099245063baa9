"""Layouts of specs, by the table of known models and GPUs, or with facts and devices of one's own."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from stoker.agent.config import EngineMetrics
from stoker.engines.interface import EnvVar, Invocation, WritablePath
from stoker.facts.config import facts_from_config
from stoker.facts.families import known_model
from stoker.facts.gpus import GPUS
from stoker.facts.model import ModelFacts, UnknownFacts
from stoker.plan.inputs import Device, UnknownDevice, resolve_device, resolve_facts
from stoker.plan.landing import Landing
from stoker.plan.layout import plan_layout
from stoker.plan.snapshot import NodeView, ReferenceView
from stoker.plan.types import EngineTraits, Layout, Placement, Verdict
from tests.builders.configs import a_config
from tests.builders.specs import SpecBuilder
from tests.builders.traits import llama_cpp_traits, vllm_cpu_traits, vllm_traits

MIB, GIB = 2**20, 2**30


def traits_of(spec: SpecBuilder) -> EngineTraits:
    """Return the traits of the spec's engine."""
    if spec.raw()["engine"]["name"] == "llama.cpp":
        return llama_cpp_traits()
    return vllm_traits() if "accelerator" in spec.raw() else vllm_cpu_traits()


def planned(
    spec: SpecBuilder,
    *,
    traits: EngineTraits | None = None,
    facts: ModelFacts | UnknownFacts | None = None,
    device: Device | UnknownDevice | None = None,
    nodes: Sequence[NodeView] = (),
    references: Sequence[ReferenceView] = (),
) -> Layout:
    """Return the layout of a spec; what is not given is resolved as the operator resolves it."""
    parsed = spec.build()
    found = facts or resolve_facts(parsed, references)
    on = device or resolve_device(parsed, nodes)
    return plan_layout(parsed, traits or traits_of(spec), found, on)


def model(repository: str) -> ModelFacts:
    """Return a model of the table."""
    found = known_model(repository)
    assert found is not None, repository
    return found


def tiny(**changes: Any) -> ModelFacts:
    """Return the facts of a small llama, with changes to its config.json."""
    return facts_from_config(a_config(**changes))


def gpu(product: str = "NVIDIA-H100-80GB-HBM3", memory_bytes: int | None = None, largest: int | None = None) -> Device:
    """Return a GPU of the table, or one of any size."""
    known = GPUS[product]
    landing = Landing(largest, has_whole=largest is not None)
    return Device(memory_bytes or known.memory_mib * MIB, "test", product, known.capability, landing)


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
    )
    return replace(invocation, **changes)
