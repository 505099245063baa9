"""What planning knows of an engine, without the engine: `a_trait(block_tokens=128)`."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

from stoker.plan.types import EngineTraits, FractionOf

GIB = 2**30

_VLLM = EngineTraits(
    name="vllm",
    version="0.32.0",
    fraction_of=FractionOf.TOTAL,
    default_memory_fraction=Decimal("0.9"),
    default_max_sequences=256,
    kv_element_bytes={"auto": Decimal(2), "bfloat16": Decimal(2), "fp8": Decimal(1), "fp8_ds_mla": Decimal(1)},
    default_kv_dtype="auto",
    has_queue_limit=True,
    supports_pipeline=True,
    supports_tensor=True,
    context_is_shared=True,
    block_tokens=16,
    default_batched_tokens=((0, 2048), (70 * GIB, 8192), (160 * GIB, 16384)),
)
_LLAMA_CPP = replace(
    _VLLM,
    name="llama.cpp",
    version="b11434",
    fraction_of=FractionOf.UNUSED,
    default_max_sequences=4,
    kv_element_bytes={"f16": Decimal(2), "q8_0": Decimal(34) / 32, "q4_0": Decimal(18) / 32},
    default_kv_dtype="f16",
    has_queue_limit=False,
    supports_tensor=False,
    context_is_shared=False,
    block_tokens=32,
    default_batched_tokens=((0, 512),),
    shares_memory=False,
    splits_layers=True,
    host_overhead_bytes=GIB // 2,
)


def vllm_traits(**changes: Any) -> EngineTraits:
    """vLLM on GPUs."""
    return replace(_VLLM, **changes)


def vllm_cpu_traits(**changes: Any) -> EngineTraits:
    """vLLM on the CPU, in a version that takes its KV cache in whole GiB."""
    on_cpu: dict[str, Any] = {"block_tokens": 128, "kv_cache_step_bytes": GIB, "default_max_sequences": 128}
    return replace(_VLLM, **{**on_cpu, "default_batched_tokens": ((0, 2048),), **changes})


def llama_cpp_traits(**changes: Any) -> EngineTraits:
    """llama.cpp."""
    return replace(_LLAMA_CPP, **changes)
