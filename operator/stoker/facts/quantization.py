"""What a quantization of weights costs and needs, by method."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

from stoker.facts.model import Checkpoint

Capability = tuple[int, int]
"""A GPU's CUDA compute capability: (major, minor)."""


class Scope(StrEnum):
    """Which weights a method shrinks."""

    LINEAR = "Linear"
    """All matrices of the layers; embeddings, output projection, norms and routers stay in 16 bits."""
    EXPERTS = "Experts"
    """The matrices of routed experts alone."""
    EVERYTHING = "Everything"
    """All weights, embeddings included, at an average width (GGUF)."""


@dataclass(frozen=True, slots=True)
class Method:
    """One way to store weights. ``bits`` are per quantized weight, scales and zero points included."""

    family: str
    """Methods of one family read each other's checkpoints."""
    bits: Decimal
    scope: Scope = Scope.LINEAR
    capability: Capability = (7, 0)
    """The least compute capability that a GPU needs to run it at all."""
    native: Capability = (7, 0)
    """The least compute capability that computes in it; below, weights are widened as they are used."""
    online: bool = False
    """An engine can quantize a 16-bit checkpoint to it while it loads."""


_AMPERE: Final = (8, 0)
_ADA: Final = (8, 9)
_BLACKWELL: Final = (10, 0)
_FP8: Final = Method("fp8", Decimal(8), capability=_AMPERE, native=_ADA, online=True)
_INT4_GROUPS_OF_128: Final = Decimal("4.15625")
"""4 bits, a 16-bit scale and a 4-bit zero point for each 128 weights."""
_NVFP4: Final = Decimal("4.5")
"""4 bits and an 8-bit scale for each 16 weights."""
_MXFP4: Final = Decimal("4.25")
"""4 bits and an 8-bit exponent for each 32 weights."""

METHODS: Final[dict[str, Method]] = {
    "fp8": _FP8,
    "fp8_per_tensor": _FP8,
    "fp8_per_channel": _FP8,
    "fp8_per_block": _FP8,
    "fbgemm_fp8": Method("fbgemm_fp8", Decimal(8), capability=_AMPERE, native=_ADA),
    "modelopt": Method("modelopt", Decimal(8), capability=_ADA, native=_ADA),
    "modelopt_fp4": Method("modelopt_fp4", _NVFP4, capability=_AMPERE, native=_BLACKWELL),
    "modelopt_mxfp8": Method("modelopt_mxfp8", Decimal("8.25"), capability=_ADA, native=_BLACKWELL),
    "nvfp4": Method("modelopt_fp4", _NVFP4, capability=_AMPERE, native=_BLACKWELL),
    "nvfp4_per_token": Method("nvfp4_per_token", _NVFP4, capability=_BLACKWELL, native=_BLACKWELL, online=True),
    "mxfp8": Method("mxfp8", Decimal("8.25"), capability=_AMPERE, native=_BLACKWELL, online=True),
    "mxfp4": Method("mxfp4", _MXFP4, Scope.EXPERTS, _AMPERE, _BLACKWELL),
    "gpt_oss_mxfp4": Method("mxfp4", _MXFP4, Scope.EXPERTS, _AMPERE, _BLACKWELL),
    "int8_per_channel_weight_only": Method("int8", Decimal(8), capability=_AMPERE, native=_AMPERE, online=True),
    "experts_int8": Method("experts_int8", Decimal(8), Scope.EXPERTS, _AMPERE, _AMPERE, online=True),
    "awq": Method("awq", _INT4_GROUPS_OF_128, capability=(7, 5)),
    "auto_awq": Method("awq", _INT4_GROUPS_OF_128, capability=(7, 5)),
    "awq_marlin": Method("awq", _INT4_GROUPS_OF_128, capability=_AMPERE),
    "gptq": Method("gptq", _INT4_GROUPS_OF_128),
    "auto_gptq": Method("gptq", _INT4_GROUPS_OF_128),
    "gptq_marlin": Method("gptq", _INT4_GROUPS_OF_128, capability=_AMPERE),
    "bitsandbytes": Method("bitsandbytes", Decimal("4.5"), online=True),
}
"""Methods by the name that vLLM has for them; bits and capabilities as its quantization layers have them."""

GGUF_BITS: Final[dict[str, Decimal]] = {
    name: Decimal(bits)
    for name, bits in {
        "F32": "32",
        "F16": "16",
        "BF16": "16",
        "Q8_0": "8.5",
        "Q6_K": "6.57",
        "Q5_K_M": "5.7",
        "Q5_K_S": "5.55",
        "Q5_1": "6",
        "Q5_0": "5.5",
        "Q4_K_M": "4.85",
        "Q4_K_S": "4.6",
        "Q4_1": "5",
        "Q4_0": "4.5",
        "IQ4_NL": "4.5",
        "IQ4_XS": "4.3",
        "Q3_K_L": "4.3",
        "Q3_K_M": "3.95",
        "Q3_K_S": "3.5",
        "Q2_K": "3.2",
        "MXFP4": "4.25",
    }.items()
}
"""Average bits per weight of a GGUF file by its type, as llama.cpp's quantizer mixes them."""

GGUF_TIED_EMBEDDING_BITS: Final = Decimal("8.5")
"""llama.cpp keeps an embedding table that is also the output projection at 6.6 to 8.5 bits, whatever the type."""


def gguf_type(file_name: str) -> str | None:
    """Return the quantization that a GGUF file's name states (``SmolLM2-135M-Instruct.Q4_1.gguf`` -> ``Q4_1``)."""
    stem = file_name.rsplit("/", 1)[-1].removesuffix(".gguf").upper().replace(".", "-")
    return next((part for part in reversed(stem.split("-")) if part in GGUF_BITS), None)


def method_of(checkpoint: Checkpoint) -> Method | None:
    """Return the method of a quantized checkpoint, with the bits that it states itself; None for an unknown one."""
    known = METHODS.get(checkpoint.method)
    if checkpoint.bits is None or (known and known.bits == checkpoint.bits):
        return known
    base = known or Method(checkpoint.method, checkpoint.bits)
    return Method(base.family, checkpoint.bits, base.scope, base.capability, base.native, base.online)
