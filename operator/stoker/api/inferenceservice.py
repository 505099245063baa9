"""The InferenceService: one model, declared as it shall be served."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, StringConstraints

from stoker.api.base import ApiModel
from stoker.api.cel import Rule, raw
from stoker.api.engine import (
    Accelerator,
    Batching,
    Context,
    Engine,
    EngineName,
    Execution,
    Parallelism,
    Quantization,
    Resources,
    Rollout,
    Speculation,
    Warmup,
)
from stoker.api.model import Model
from stoker.api.pod import Pod
from stoker.api.types import KNOWN_SCHEME, Flag, Replicas, Switch

GROUP = "serving.stoker.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "InferenceService"
PLURAL = "inferenceservices"
SHORT_NAME = "infsvc"
CATEGORY = "inference"


def _ranks(spec: "InferenceServiceSpec") -> int:
    parallelism = spec.parallelism or Parallelism()
    return (parallelism.tensor or 1) * (parallelism.pipeline or 1)


def _is_llama_cpp(spec: "InferenceServiceSpec") -> bool:
    return spec.engine.name == EngineName.LLAMA_CPP


def _chunks_hold_context(spec: "InferenceServiceSpec") -> bool:
    batching, context = spec.batching or Batching(), spec.context or Context()
    if batching.chunked_prefill != Switch.DISABLED or batching.max_batched_tokens is None or context.max_length is None:
        return True
    return batching.max_batched_tokens >= context.max_length


_GGUF_FILE = "^(hf://[^/]+/[^/]+|pvc://[^/]+)/.+[.]gguf$"
"""A .gguf file in a repository or on a claim: their own names may end so too."""
_TENSOR = "(has(self.parallelism) && has(self.parallelism.tensor) ? self.parallelism.tensor : 1)"
_PIPELINE = "(has(self.parallelism) && has(self.parallelism.pipeline) ? self.parallelism.pipeline : 1)"
_GPU_LAYERS = "has(self.execution) && has(self.execution.gpuLayers)"


class InferenceServiceSpec(ApiModel):
    """What shall be served, and how."""

    model: Model
    """The model."""
    engine: Engine
    """The program that serves it."""
    parallelism: Parallelism | None = None
    """How one replica is laid out over GPUs."""
    accelerator: Accelerator | None = None
    """The GPUs; accelerator: {} takes any. Absent: the engine computes on the CPU."""
    quantization: Quantization | None = None
    """How weights and KV cache are stored."""
    context: Context | None = None
    """The sequences that the engine takes."""
    batching: Batching | None = None
    """How requests are batched."""
    execution: Execution | None = None
    """How the engine computes."""
    speculation: Speculation | None = None
    """Speculative decoding. Only with vLLM. Absent: none."""
    resources: Resources | None = None
    """CPU and memory of the engine."""
    replicas: Replicas = 1
    """Number of replicas; 0 stops the service. Moved by kubectl scale too."""
    warmup: Warmup | None = None
    """Requests that a new pod answers before it is ready."""
    rollout: Rollout | None = None
    """How pods are replaced when the object changes."""
    paused: Flag | None = None
    """true: changes make no new revision; status, healing, scaling and deletion go on. Absent: false."""
    pod: Pod | None = None
    """What the engine's pods get besides what Stoker decides."""

    # Scaling, pausing and restarting are changes of the spec too.
    SPARES_OLD: ClassVar[bool] = True
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            field="parallelism",
            problem="parallelism is over GPUs, and there is no accelerator",
            remedy="add accelerator: {} for any GPU, or set tensor and pipeline to 1",
            expression=f"has(self.accelerator) || {_TENSOR} * {_PIPELINE} == 1",
            holds=lambda spec: spec.accelerator is not None or _ranks(spec) == 1,
        ),
        Rule(
            field="parallelism.pipeline",
            problem="one replica takes more than 64 GPUs of one node",
            remedy="lower tensor x pipeline to the GPUs of one node",
            expression=f"{_TENSOR} * {_PIPELINE} <= 64",
            holds=lambda spec: _ranks(spec) <= 64,
        ),
        Rule(
            field="parallelism.tensor",
            problem="llama.cpp cuts models by layers only",
            remedy="set parallelism.pipeline to the number of GPUs and tensor to 1",
            expression=f"self.engine.name != 'llama.cpp' || {_TENSOR} == 1",
            holds=lambda spec: not _is_llama_cpp(spec) or (spec.parallelism or Parallelism()).tensor in (None, 1),
        ),
        Rule(
            field="execution.gpuLayers",
            problem="only llama.cpp splits layers between GPU and CPU",
            remedy="remove execution.gpuLayers, or set engine.name to llama.cpp",
            expression=f"!({_GPU_LAYERS}) || self.engine.name == 'llama.cpp'",
            holds=lambda spec: (spec.execution or Execution()).gpu_layers is None or _is_llama_cpp(spec),
        ),
        Rule(
            field="execution.gpuLayers",
            problem="layers are put on a GPU, and there is no accelerator",
            remedy="add accelerator: {} for any GPU, or remove execution.gpuLayers",
            expression=f"!({_GPU_LAYERS}) || has(self.accelerator)",
            holds=lambda spec: (spec.execution or Execution()).gpu_layers is None or spec.accelerator is not None,
        ),
        Rule(
            field="execution.cudaGraphs",
            problem="CUDA graphs run on GPUs, and there is no accelerator",
            remedy="add accelerator: {} for any GPU, or remove execution.cudaGraphs",
            expression="!has(self.execution) || !has(self.execution.cudaGraphs) || has(self.accelerator)",
            holds=lambda spec: (spec.execution or Execution()).cuda_graphs is None or spec.accelerator is not None,
        ),
        Rule(
            field="model.source",
            problem="llama.cpp reads .gguf files, and the path names none",
            remedy="end the source with the .gguf file: pvc://claim/model.gguf or hf://owner/name/model.gguf",
            expression=(
                f"self.engine.name != 'llama.cpp' || !self.model.source.matches({raw(KNOWN_SCHEME)}) || "
                f"self.model.source.matches({raw(_GGUF_FILE)})"
            ),
            holds=lambda spec: (
                not _is_llama_cpp(spec)
                or not re.match(KNOWN_SCHEME, spec.model.source)
                or bool(re.fullmatch(_GGUF_FILE, spec.model.source))
            ),
            unchanged=(
                "oldSelf.value().engine.name == self.engine.name && oldSelf.value().model.source == self.model.source"
            ),
        ),
        Rule(
            field="batching.maxBatchedTokens",
            problem="without chunked prefill one step holds a whole prompt, and maxBatchedTokens is below maxLength",
            remedy="raise batching.maxBatchedTokens to context.maxLength, or enable chunkedPrefill",
            expression=(
                "!has(self.batching) || !has(self.batching.chunkedPrefill) || !has(self.batching.maxBatchedTokens) || "
                "!has(self.context) || !has(self.context.maxLength) || self.batching.chunkedPrefill != 'Disabled' || "
                "self.batching.maxBatchedTokens >= self.context.maxLength"
            ),
            holds=_chunks_hold_context,
        ),
    )


class ObjectMeta(ApiModel):
    """The part of an object's metadata that Stoker reads; Kubernetes checks it, so further fields are passed over."""

    model_config = ConfigDict(extra="ignore")

    name: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    deletion_timestamp: str | None = None
    creation_timestamp: str | None = None
    labels: Mapping[str, str] | None = None
    annotations: Mapping[str, str] | None = None


class InferenceService(ApiModel):
    """One model, declared as it shall be served."""

    api_version: Literal["serving.stoker.dev/v1alpha1"]
    kind: Literal["InferenceService"]
    metadata: ObjectMeta
    spec: InferenceServiceSpec
    status: Annotated[Mapping[str, Any] | None, Field(default=None)] = None
    """The status as it was read; ``stoker.api.status`` has its shape."""

    @property
    def name(self) -> str:
        """The object's name."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """The object's namespace; ``default`` where a manifest names none."""
        return self.metadata.namespace or "default"
