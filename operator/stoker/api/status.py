"""``status`` of an InferenceService: what is, seen from the children, never what was asked."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from stoker.api.base import ApiModel, ListMap

MAX_MESSAGE_BYTES = 1024
"""Most bytes of a message in the status."""

Word = Annotated[str, StringConstraints(pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$", max_length=64)]
Text = Annotated[str, StringConstraints(max_length=MAX_MESSAGE_BYTES)]
Short = Annotated[str, StringConstraints(max_length=253)]
Url = Annotated[str, StringConstraints(max_length=512)]
MAX_COUNT = 2**53
"""Most bytes or tokens that the status tells: what every reader of JSON holds exactly."""
MAX_NUMBER = 2**31 - 1
Number = Annotated[int, Field(strict=True, ge=0, le=MAX_NUMBER)]
Bytes = Annotated[int, Field(strict=True, ge=0, le=MAX_COUNT)]
Generation = Annotated[int, Field(strict=True, ge=-1, le=2**53)]
Instant = Annotated[str, StringConstraints(max_length=40), Field(json_schema_extra={"format": "date-time"})]


class ConditionType(StrEnum):
    """The conditions of an InferenceService; all are good when True, Reconciling and Stalled apart."""

    READY = "Ready"
    AVAILABLE = "Available"
    UP_TO_DATE = "UpToDate"
    FITS = "Fits"
    WARM = "Warm"
    MODEL_VERIFIED = "ModelVerified"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(ApiModel):
    """One condition, as Kubernetes' own objects have them."""

    type: Word
    """Ready, Available, UpToDate, Fits, Warm, ModelVerified; Reconciling and Stalled only while they hold."""
    status: ConditionStatus
    """True, False or Unknown."""
    reason: Word
    """Why, in one word for programs."""
    message: Text
    """Why, in words: what is wrong, which field to change, what would be right."""
    observed_generation: Generation
    """The generation of the InferenceService that the condition is about."""
    last_transition_time: Instant
    """When the condition's status changed last."""


class Origin(ApiModel):
    """Where one input of the layout came from."""

    name: Short
    """The input, such as deviceMemory."""
    origin: Short
    """Where its value was found, such as spec.accelerator.memory or a label of the nodes."""


class LayoutStatus(ApiModel):
    """The arithmetic of one replica over its devices; what is unknown is absent."""

    verdict: Word
    """Fits, TooSmall or Unknown."""
    placement: Word
    """Where the weights are: GPU, CPU or Split."""
    pods_per_replica: Number
    """Number of pods of one replica."""
    gpus_per_pod: Number
    """Number of GPUs of each pod."""
    resource_name: Short | None = None
    """The resource that the pods ask for."""
    tensor: Number
    """Tensor parallelism."""
    pipeline: Number
    """Pipeline parallelism."""
    max_length: Bytes | None = None
    """Longest sequence, in tokens."""
    max_sequences: Number
    """Most requests that run at once in one replica."""
    max_queued: Number | None = None
    """Most requests that wait in one replica."""
    gpu_layers: Number | None = None
    """Layers on the GPU, where some stay in memory (llama.cpp)."""
    memory_fraction: Short | None = None
    """Fraction of the memory of a GPU that the engine may use."""
    kv_dtype: Short
    """Data type of the KV cache."""
    weight_bytes_per_rank: Bytes | None = None
    """Weights on the fullest GPU (on the CPU: in memory), in bytes."""
    kv_bytes_per_token_per_rank: Bytes | None = None
    """KV cache of one token on the fullest GPU, in bytes."""
    kv_tokens: Bytes | None = None
    """Tokens that the KV cache of one replica holds."""
    max_concurrency: Short | None = None
    """How many sequences of full length fit into the KV cache at once."""
    memory_request_bytes: Bytes
    """Memory of the engine's container, in bytes."""
    cpu_request_millicores: Number
    """CPU of the engine's container, in thousandths of a core."""
    startup_budget_seconds: Number
    """How long a start may take, in seconds."""
    short_by_bytes: Bytes | None = None
    """What is missing on the fullest GPU, in bytes; only where the verdict is TooSmall."""
    reasons: Annotated[tuple[Text, ...] | None, Field(max_length=16)] = None
    """Why the verdict is what it is."""
    suggestions: Annotated[tuple[Text, ...] | None, Field(max_length=8)] = None
    """The smallest layouts that would fit, where this one does not."""
    origins: Annotated[tuple[Origin, ...] | None, Field(max_length=32), ListMap("name")] = None
    """Where each input came from."""


class RevisionStatus(ApiModel):
    """The revision that pods are made of."""

    key: Short
    """The revision's key, which its pods carry as a label."""
    name: Short
    """Name of the ControllerRevision."""
    number: Bytes
    """Its number; later ones are higher."""
    strategy: Word
    """How it replaces the revision before: Surge, Replace or Recreate."""
    strategy_reason: Text
    """Why that way was chosen."""
    outdated: Annotated[tuple[Text, ...] | None, Field(max_length=16)] = None
    """What this version of Stoker would render differently; nothing rolls until rollout.restartedAt asks for it."""


class InferenceServiceStatus(ApiModel):
    """What is."""

    observed_generation: Generation
    """The generation of the object that this status is about; -1 before the first look at it."""
    replicas: Number | None = None
    """Number of pods that exist and are not ending."""
    ready_replicas: Number | None = None
    """Number of pods that serve, of whatever revision."""
    updated_replicas: Number | None = None
    """Number of pods of the newest revision."""
    available_replicas: Number | None = None
    """Number of pods that have served for a while."""
    gpus: Number | None = None
    """Number of GPUs that the existing pods hold or wait for."""
    selector: Annotated[str, StringConstraints(max_length=512)] | None = None
    """Label selector of the pods, as /scale gives it to autoscalers."""
    url: Url | None = None
    """Address of the service inside the cluster."""
    layout: LayoutStatus | None = None
    """The arithmetic of one replica over its devices."""
    revision: RevisionStatus | None = None
    """The revision that pods are made of."""
    conditions: Annotated[tuple[Condition, ...] | None, Field(max_length=16), ListMap("type")] = None
    """The conditions."""
