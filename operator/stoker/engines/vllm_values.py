"""The values that vLLM's typed fields take, by version and device."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.engines.spans import Span
from stoker.engines.versions import Version
from stoker.engines.vllm_table import kv_cache_dtypes

AUTO: Final = "auto"
"""The KV cache as the model computes it: two bytes an element."""

KV_ELEMENT_BYTES: Final[Mapping[str, Decimal]] = {
    AUTO: Decimal(2),
    "bfloat16": Decimal(2),
    "float16": Decimal(2),
    "fp8": Decimal(1),
    "fp8_e4m3": Decimal(1),
    "fp8_e5m2": Decimal(1),
    # A scale of four bytes for each token and head; heads of 64 elements are the smallest in use.
    "int8_per_token_head": Decimal("1.0625"),
    "fp8_per_token_head": Decimal("1.0625"),
    # A scale of one byte for 16 elements.
    "nvfp4": Decimal("0.5625"),
    # 656 bytes for a latent of 576 elements.
    "fp8_ds_mla": Decimal(656) / 576,
}
"""Bytes per element of the types whose size is known: only these can be planned, so only these are taken."""

CPU_EXPLICIT_KV_BYTES: Final = Version(0, 20)
"""Since then the CPU takes the size of the KV cache in bytes; before that in whole GiB, from a variable."""
_CPU_FP8: Final = Span(since=Version(0, 21))
"""Before that the CPU stores an fp8 cache in 16 bit without saying so."""
_CPU_DTYPES: Final = {AUTO: Span(), "fp8": _CPU_FP8, "fp8_e4m3": _CPU_FP8, "fp8_e5m2": _CPU_FP8}

READY_TIMEOUT: Final = Span(since=Version(0, 14))
"""Versions that give up on their own start after 600 s unless told otherwise."""
ATTENTION_VARIABLE: Final = Span(until=Version(0, 13))
"""Versions that take the attention backend from a variable alone."""
GGUF: Final = Span(until=Version(0, 24))
"""Versions that read .gguf files."""


def on_gpu(spec: InferenceServiceSpec) -> bool:
    """Return whether the engine computes on GPUs."""
    return spec.accelerator is not None


def kv_dtype_spans(spec: InferenceServiceSpec) -> Mapping[str, Span]:
    """Return the types of the KV cache that can be asked for on this device, with the versions that have them."""
    table: Mapping[str, Span] = kv_cache_dtypes() if on_gpu(spec) else _CPU_DTYPES
    return {name: span for name, span in table.items() if name in KV_ELEMENT_BYTES}


def takes_kv_bytes(spec: InferenceServiceSpec, version: Version | None) -> bool:
    """Return whether the size of a CPU engine's KV cache can be given in bytes."""
    return not on_gpu(spec) and version is not None and version >= CPU_EXPLICIT_KV_BYTES
