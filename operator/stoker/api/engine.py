"""``spec.engine`` and what it is told: parallelism, accelerator, quantization, context, batching, execution."""

import re
from enum import StrEnum
from typing import Annotated, ClassVar

from pydantic import Field

from stoker.api.base import ApiModel
from stoker.api.cel import Rule, raw
from stoker.api.types import (
    Argument,
    Count,
    CpuQuantity,
    EngineVersion,
    Fraction,
    Image,
    LabelValue,
    LayerCount,
    MemoryQuantity,
    MethodName,
    Prompt,
    Ranks,
    Switch,
    Timestamp,
    Tokens,
)

VLLM_VERSION = r"^(0[.](1[2-9]|[2-9][0-9]|[1-9][0-9][0-9])|[1-9][0-9]{0,2}[.][0-9]{1,3})([^0-9].*)?$"
"""The versions of vLLM whose command line Stoker renders: 0.12 and later."""


class EngineName(StrEnum):
    """The engines of this release."""

    VLLM = "vllm"
    LLAMA_CPP = "llama.cpp"


def _is_vllm_version(engine: "Engine") -> bool:
    return engine.name != EngineName.VLLM or engine.version is None or bool(re.match(VLLM_VERSION, engine.version))


def _is_llama_cpp_version(engine: "Engine") -> bool:
    return engine.name != EngineName.LLAMA_CPP or engine.version is None or engine.version.startswith("b")


class Engine(ApiModel):
    """The program that serves the model."""

    name: EngineName
    """vllm or llama.cpp."""
    version: EngineVersion | None = None
    """Version of the engine, such as 0.32.0 (vLLM, at least 0.12) or b11434 (llama.cpp). It decides which arguments
    are rendered, and the tag of the image. Absent: the version that this release of Stoker was made for."""
    image: Image | None = None
    """Image of the engine, in place of the maker's own at that version."""
    args: Annotated[tuple[Argument, ...], Field(max_length=64)] | None = None
    """Further arguments for the engine, each one item of its argument list, after those that Stoker renders. Arguments
    that a field of this object or Stoker itself owns are refused."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            field="version",
            problem="this is no version of vLLM from 0.12 on, and older ones are not supported",
            remedy="set engine.version to 0.12.0 or later, such as 0.32.0",
            expression=f"self.name != 'vllm' || !has(self.version) || self.version.matches({raw(VLLM_VERSION)})",
            holds=_is_vllm_version,
        ),
        Rule(
            field="version",
            problem="llama.cpp counts its builds, and this is none",
            remedy="set engine.version to a build such as b11434",
            expression="self.name != 'llama.cpp' || !has(self.version) || self.version.startsWith('b')",
            holds=_is_llama_cpp_version,
        ),
    )


class Parallelism(ApiModel):
    """How one replica is laid out over GPUs of one node; it takes tensor x pipeline of them."""

    tensor: Ranks | None = None
    """Number of GPUs that share each layer (tensor parallelism). It must divide the attention heads. Absent: 1."""
    pipeline: Ranks | None = None
    """Number of stages into which the layers are cut (pipeline parallelism). Absent: 1."""


class Accelerator(ApiModel):
    """The GPUs of the engine. Absent altogether: the engine computes on the CPU."""

    products: Annotated[tuple[LabelValue, ...], Field(min_length=1, max_length=16)] | None = None
    """GPU models that will do, as the node label nvidia.com/gpu.product has them, such as NVIDIA-H100-80GB-HBM3.
    Absent: any."""
    memory: MemoryQuantity | None = None
    """Memory of one GPU in bytes as a quantity, such as 80Gi. Absent: the node label nvidia.com/gpu.memory, then the
    table of known GPUs."""
    memory_fraction: Fraction | None = None
    """Fraction of the memory of one GPU that the engine may use for weights, activations and KV cache, above 0 and at
    most 1, such as "0.9". The context of CUDA lies beside it: a fraction that leaves it no room is refused. Only
    with vLLM: llama.cpp takes what it needs. Absent: "0.9"."""


class Quantization(ApiModel):
    """How weights and KV cache are stored. The engine's version decides which methods exist."""

    weights: MethodName | None = None
    """Quantization of the weights by the engine's own name, such as fp8. Only with vLLM: llama.cpp finds it in the
    file. Absent: as the checkpoint has them."""
    kv_cache: MethodName | None = None
    """Data type of the KV cache by the engine's own name, such as fp8 (vLLM) or q8_0 (llama.cpp). Absent: that of the
    model."""


class Context(ApiModel):
    """The sequences that the engine takes."""

    max_length: Tokens | None = None
    """Longest sequence, prompt and answer together, in tokens. Absent: that of the model."""
    prefix_caching: Switch | None = None
    """Whether the KV cache of equal beginnings of prompts is shared. Absent: the engine's own choice."""


class Scheduling(StrEnum):
    """The order in which waiting requests are taken."""

    FCFS = "FCFS"
    PRIORITY = "Priority"


class Batching(ApiModel):
    """How the engine batches requests."""

    max_sequences: Count | None = None
    """Most requests that run at once. Absent: 256 for vLLM on GPUs and 128 on the CPU, 4 for llama.cpp; never more than
    maxBatchedTokens."""
    max_batched_tokens: Tokens | None = None
    """Most tokens that one step computes. Absent: the engine's own choice."""
    chunked_prefill: Switch | None = None
    """Whether long prompts are computed in pieces between other requests' tokens. Only with vLLM. Absent: the engine's
    own choice."""
    max_queued: Count | None = None
    """Most requests that wait; further ones are refused with 503. Only with vLLM. Absent: twice maxSequences,
    where the engine's version can limit it."""
    scheduling: Scheduling | None = None
    """FCFS takes requests as they come, Priority by the field priority of the request. Only with vLLM.
    Absent: FCFS."""


class Execution(ApiModel):
    """How the engine computes."""

    cuda_graphs: Switch | None = None
    """Whether steps are captured as CUDA graphs: faster decoding for memory and a longer start. Only with vLLM.
    Absent: the engine's own choice."""
    attention_backend: MethodName | None = None
    """Attention implementation by vLLM's own name, such as FLASH_ATTN. Absent: the engine's own choice."""
    gpu_layers: LayerCount | None = None
    """llama.cpp: number of layers on the GPU; the others stay on the CPU. Absent: all."""


class SpeculationMethod(StrEnum):
    """Ways to draft tokens."""

    NGRAM = "ngram"


class Speculation(ApiModel):
    """Speculative decoding: tokens are drafted cheaply and verified together."""

    method: SpeculationMethod
    """ngram drafts tokens by looking up the last ones in the prompt."""
    tokens: Annotated[int, Field(strict=True, ge=1, le=32)]
    """Number of tokens drafted per step."""
    prompt_lookup_min: Annotated[int, Field(strict=True, ge=1, le=64)] | None = None
    """Shortest run of tokens that is looked up. Absent: the engine's own choice."""
    prompt_lookup_max: Annotated[int, Field(strict=True, ge=1, le=64)] | None = None
    """Longest run of tokens that is looked up. Absent: the engine's own choice."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            field="promptLookupMin",
            problem="promptLookupMin is larger than promptLookupMax",
            remedy="lower promptLookupMin or raise promptLookupMax",
            expression=(
                "!has(self.promptLookupMin) || !has(self.promptLookupMax) || "
                "self.promptLookupMin <= self.promptLookupMax"
            ),
            holds=lambda it: (
                it.prompt_lookup_min is None
                or it.prompt_lookup_max is None
                or it.prompt_lookup_min <= it.prompt_lookup_max
            ),
        ),
    )


class Resources(ApiModel):
    """What the engine's container asks of the node besides GPUs. Request and limit are the same for memory."""

    cpu: CpuQuantity | None = None
    """CPU cores, such as 8, 500m or "0.5" (in quotes). Absent: derived from the layout."""
    memory: MemoryQuantity | None = None
    """Memory in bytes as a quantity, such as 64Gi, shared memory and page cache of the loader included. For a CPU
    engine the KV cache is what is left of it. Absent: derived from the layout."""


class Warmup(ApiModel):
    """Requests that a new pod answers before it is ready, so that no user pays for compilation."""

    requests: Annotated[int, Field(strict=True, ge=0, le=100)] | None = None
    """Number of requests; 0 switches the warm-up off. Absent: 1, or one for each prompt."""
    prompts: Annotated[tuple[Prompt, ...], Field(min_length=1, max_length=8)] | None = None
    """Prompts that are sent in turn, from the first on. Each must fit into context.maxLength together with its answer
    of 8 tokens. Absent: two built-in ones, the first of 2 words, the second, which only a second request sends, of
    80."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            field="requests",
            problem="there are fewer requests than prompts, so that some prompts would never be sent",
            remedy="raise warmup.requests to the number of prompts, or remove prompts",
            expression="!has(self.prompts) || !has(self.requests) || self.requests >= self.prompts.size()",
            holds=lambda it: it.prompts is None or it.requests is None or it.requests >= len(it.prompts),
        ),
    )


class RolloutStrategy(StrEnum):
    """How pods of a new revision take over."""

    AUTO = "Auto"
    SURGE = "Surge"
    REPLACE = "Replace"
    RECREATE = "Recreate"


class Rollout(ApiModel):
    """How pods are replaced when the object changes."""

    strategy: RolloutStrategy | None = None
    """Surge starts a new pod before it stops an old one; Replace stops one first, while the others serve; Recreate
    stops all first. Auto chooses once per revision, from the GPUs that are free. Absent: Auto."""
    restarted_at: Timestamp | None = None
    """A time stamp (RFC 3339). A new value asks for freshly rendered pods; its removal replaces nothing."""
