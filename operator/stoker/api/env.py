"""``spec.pod.env``: the environment variables of the engine."""

from enum import StrEnum
from typing import Annotated, ClassVar

from stoker.api.base import ApiModel
from stoker.api.cel import Rule, exactly_one_of, quoted
from stoker.api.divisors import divisor_rules
from stoker.api.references import Effect, Reference
from stoker.api.types import DataKey, Divisor, EnvName, EnvValue, Flag, ObjectName, PodField, ResourceField

OWNED_ENV = (
    "CUDA_VISIBLE_DEVICES",
    "HF_HOME",
    "HF_TOKEN",
    "HOME",
    "HUGGING_FACE_HUB_TOKEN",
    "LLAMA_API_KEY",
    "LOGNAME",
    "NVIDIA_VISIBLE_DEVICES",
    "USER",
    "VLLM_API_KEY",
    "VLLM_CACHE_ROOT",
    "VLLM_ENGINE_READY_TIMEOUT_S",
    "VLLM_HOST_IP",
    "VLLM_PORT",
    "VLLM_SERVER_DEV_MODE",
)
"""Variables that Stoker sets, or that would open or break the engine."""

OWNED_ENV_PREFIXES = ("LLAMA_ARG_", "STOKER_")
"""Beginnings of such variables: LLAMA_ARG_* would pass arguments around their owner."""


class SecretKeySelector(ApiModel):
    """One key of a Secret."""

    name: Annotated[ObjectName, Reference("Secret", Effect.NEW_REVISION)]
    """Name of the Secret, in the same namespace."""
    key: DataKey
    """The key."""
    optional: Flag | None = None
    """true: the variable is left out where the Secret or the key is missing."""


class ConfigMapKeySelector(ApiModel):
    """One key of a ConfigMap."""

    name: Annotated[ObjectName, Reference("ConfigMap", Effect.NEW_REVISION)]
    """Name of the ConfigMap, in the same namespace."""
    key: DataKey
    """The key."""
    optional: Flag | None = None
    """true: the variable is left out where the ConfigMap or the key is missing."""


class FieldVersion(StrEnum):
    """The schemas of pods whose fields can be named."""

    V1 = "v1"


class FieldSelector(ApiModel):
    """A field of the pod."""

    api_version: FieldVersion | None = None
    """Version of the pod's schema. Absent: v1, the only one."""
    field_path: PodField
    """The field: metadata.name, metadata.namespace, metadata.uid, metadata.labels['KEY'], metadata.annotations['KEY'],
    spec.nodeName, spec.serviceAccountName, status.hostIP, status.hostIPs, status.podIP or status.podIPs."""


class ResourceSelector(ApiModel):
    """A resource of the engine's container."""

    resource: ResourceField
    """The resource, such as limits.memory: limits. or requests. with cpu, memory, ephemeral-storage or
    hugepages-SIZE."""
    divisor: Divisor | None = None
    """Unit of the value: "1" or 1m for CPU; "1", or 1k to 1E and 1Ki to 1Ei, for bytes. Absent or "0": 1."""

    RULES: ClassVar[tuple[Rule, ...]] = divisor_rules("a variable", lambda it: it.resource, lambda it: it.divisor)


class EnvSource(ApiModel):
    """Where the value of a variable comes from; exactly one of the fields."""

    secret_key_ref: SecretKeySelector | None = None
    """A key of a Secret. Secrets are read one by one, in the namespace of the InferenceService."""
    config_map_key_ref: ConfigMapKeySelector | None = None
    """A key of a ConfigMap."""
    field_ref: FieldSelector | None = None
    """A field of the pod."""
    resource_field_ref: ResourceSelector | None = None
    """A resource of the engine's container."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            field="",
            problem="exactly one source must be set",
            remedy="set one of secretKeyRef, configMapKeyRef, fieldRef and resourceFieldRef",
            expression=exactly_one_of("secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef"),
            holds=lambda it: len(it.model_dump(exclude_none=True)) == 1,
        ),
    )


class EnvVar(ApiModel):
    """One environment variable of the engine."""

    name: EnvName
    """Name of the variable. Variables that Stoker sets itself are refused."""
    value: EnvValue | None = None
    """The value as it stands; $(NAME) is replaced as Kubernetes does."""
    value_from: EnvSource | None = None
    """Where the value comes from."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            field="value",
            problem="exactly one of value and valueFrom must be set",
            remedy='set one of them; an empty value is value: ""',
            expression=exactly_one_of("value", "valueFrom"),
            holds=lambda it: (it.value is None) != (it.value_from is None),
        ),
        Rule(
            field="name",
            problem="this variable is set by Stoker, or would open or break the engine",
            remedy="use the field that stands for it (spec.model.credentialsSecret for HF_TOKEN), or remove it",
            expression=(
                f"!(self.name in {quoted(OWNED_ENV)}) && "
                + " && ".join(f"!self.name.startsWith('{prefix}')" for prefix in OWNED_ENV_PREFIXES)
            ),
            holds=lambda it: it.name not in OWNED_ENV and not it.name.startswith(OWNED_ENV_PREFIXES),
        ),
    )
