"""``spec.pod``: what the engine's pods get besides what Stoker decides."""

from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Annotated, ClassVar

from pydantic import Field

from stoker.api.annotations import annotation_rules
from stoker.api.base import ApiModel, ListMap
from stoker.api.cel import Rule, quoted
from stoker.api.embedded import Embedded, KubernetesType
from stoker.api.env import EnvVar
from stoker.api.keys import are_keys, is_key
from stoker.api.references import Effect, Reference
from stoker.api.types import (
    ANNOTATION_KEY_PATTERN,
    LABEL_KEY_PATTERN,
    MAX_KEY_PREFIX,
    AnnotationValue,
    IpAddress,
    LabelValue,
    ObjectName,
)
from stoker.api.volumes import Volume

OWN_PREFIX = "serving.stoker.dev/"
"""Prefix of the labels and annotations that Stoker sets itself."""

MAX_PROJECTED_SOURCES = 128
"""Most sources of all projected volumes: with the other fields, a service names fewer objects than are looked at."""

OWNED_LABELS = ("app.kubernetes.io/managed-by", "app.kubernetes.io/name")
"""Further labels that Stoker sets itself."""


def _owns_key(entries: Mapping[str, str] | None) -> bool:
    return any(key.startswith(OWN_PREFIX) or key in OWNED_LABELS for key in entries or {})


def _key_rules(field: str) -> tuple[Rule, ...]:
    attribute = "node_selector" if field == "nodeSelector" else field
    pattern = ANNOTATION_KEY_PATTERN if field == "annotations" else LABEL_KEY_PATTERN
    return (
        Rule(
            field=field,
            problem="a key is no valid label key",
            remedy=(
                "write keys as [prefix/]name, such as example.com/team, the name at most 63 characters, "
                f"the prefix at most {MAX_KEY_PREFIX}"
            ),
            expression=f"!has(self.{field}) || self.{field}.all(k, {is_key('k', pattern)})",
            holds=lambda pod: are_keys(getattr(pod, attribute), pattern),
        ),
    )


def _owned_key_rules(field: str) -> tuple[Rule, ...]:
    return (
        *_key_rules(field),
        Rule(
            field=field,
            problem=f"keys that begin with {OWN_PREFIX}, and {' and '.join(OWNED_LABELS)}, are set by Stoker",
            remedy="use another key",
            expression=(
                f"!has(self.{field}) || self.{field}.all(k, "
                f"!k.startsWith('{OWN_PREFIX}') && !(k in {quoted(OWNED_LABELS)}))"
            ),
            holds=lambda pod: not _owns_key(getattr(pod, field)),
        ),
    )


def _are_distinct(values: Iterable[object]) -> bool:
    listed = list(values)
    return len(set(listed)) == len(listed)


def _kind_of_spread(constraint: Embedded) -> tuple[object, object]:
    return constraint.get("topologyKey"), constraint.get("whenUnsatisfiable")


def _projected_sources(volume: Volume) -> int:
    return len((volume.projected or {}).get("sources") or ())


class LocalReference(ApiModel):
    """The name of an object in the same namespace."""

    name: Annotated[ObjectName, Reference("Secret", Effect.NEXT_START)]
    """Name of the Secret."""


def _is_ip(text: str) -> bool:
    """Whether Kubernetes takes ``text`` for an address: neither with a zone, nor an IPv4 address written as IPv6."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return "%" not in text and not (isinstance(address, IPv6Address) and address.ipv4_mapped is not None)


class HostAlias(ApiModel):
    """Names for one address, for the pod's hosts file."""

    ip: IpAddress
    """The address, IPv4 or IPv6."""
    hostnames: Annotated[tuple[ObjectName, ...], Field(min_length=1, max_length=16)]
    """The names."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            field="ip",
            problem="this is no IP address",
            remedy="write one such as 10.0.0.7 or fd00::7, without leading zeros, zone or IPv4 mapped into IPv6",
            expression="isIP(self.ip)",
            holds=lambda alias: _is_ip(alias.ip),
        ),
    )


Affinity = Annotated[Embedded, KubernetesType("V1Affinity")]
Toleration = Annotated[Embedded, KubernetesType("V1Toleration")]
SpreadConstraint = Annotated[Embedded, KubernetesType("V1TopologySpreadConstraint")]
PodSecurityContext = Annotated[Embedded, KubernetesType("V1PodSecurityContext")]


class Pod(ApiModel):
    """What the engine's pods get besides what Stoker decides."""

    labels: Annotated[Mapping[str, LabelValue], Field(max_length=32)] | None = None
    """Labels of the pods."""
    annotations: Annotated[Mapping[str, AnnotationValue], Field(max_length=32)] | None = None
    """Annotations of the pods."""
    env: Annotated[tuple[EnvVar, ...] | None, Field(max_length=64), ListMap("name")] = None
    """Environment variables of the engine's container."""
    node_selector: Annotated[Mapping[str, LabelValue], Field(max_length=32)] | None = None
    """Labels that a node must have, besides those that follow from spec.accelerator."""
    affinity: Affinity | None = None
    """Affinity as in a pod."""
    tolerations: Annotated[tuple[Toleration, ...], Field(max_length=32)] | None = None
    """Tolerations as in a pod."""
    topology_spread_constraints: Annotated[tuple[SpreadConstraint, ...], Field(max_length=8)] | None = None
    """Spread over topology domains as in a pod."""
    priority_class_name: ObjectName | None = None
    """PriorityClass of the pods."""
    runtime_class_name: ObjectName | None = None
    """RuntimeClass of the pods."""
    scheduler_name: ObjectName | None = None
    """Scheduler of the pods. Absent: default-scheduler."""
    service_account_name: ObjectName | None = None
    """ServiceAccount of the pods, in place of their own one. Its token is not mounted."""
    image_pull_secrets: Annotated[tuple[LocalReference, ...] | None, Field(max_length=16), ListMap("name")] = None
    """Secrets with credentials for the registry."""
    security_context: PodSecurityContext | None = None
    """Security context of the pods; its fields replace those that Stoker sets for Pod Security "restricted". What
    "restricted" forbids is refused by the API server where the namespace enforces it."""
    volumes: Annotated[tuple[Volume, ...] | None, Field(max_length=32), ListMap("name")] = None
    """Volumes, each mounted into the engine's container."""
    host_aliases: Annotated[tuple[HostAlias, ...] | None, Field(max_length=16)] = None
    """Entries of the pods' hosts file."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        *_owned_key_rules("labels"),
        *_owned_key_rules("annotations"),
        *_key_rules("nodeSelector"),
        *annotation_rules(lambda pod: pod.annotations or {}),
        Rule(
            field="volumes",
            problem="two volumes have the same mountPath",
            remedy="give each volume a mountPath of its own",
            expression=(
                "!has(self.volumes) || self.volumes.all(x, self.volumes.exists_one(y, y.mountPath == x.mountPath))"
            ),
            holds=lambda pod: _are_distinct(volume.mount_path for volume in pod.volumes or ()),
        ),
        Rule(
            field="topologySpreadConstraints",
            problem="two constraints have the same topologyKey and whenUnsatisfiable",
            remedy="keep one of them",
            expression=(
                "!has(self.topologySpreadConstraints) || self.topologySpreadConstraints.all(x, "
                "self.topologySpreadConstraints.exists_one(y, y.topologyKey == x.topologyKey && "
                "y.whenUnsatisfiable == x.whenUnsatisfiable))"
            ),
            holds=lambda pod: _are_distinct(map(_kind_of_spread, pod.topology_spread_constraints or ())),
        ),
        Rule(
            field="volumes",
            problem=f"the projected volumes have more than {MAX_PROJECTED_SOURCES} sources altogether",
            remedy="remove sources, or join several ConfigMaps or Secrets into one",
            expression=(
                "!has(self.volumes) || self.volumes.map(v, has(v.projected) && has(v.projected.sources) ? "
                f"v.projected.sources.size() : 0).sum() <= {MAX_PROJECTED_SOURCES}"
            ),
            holds=lambda pod: sum(map(_projected_sources, pod.volumes or ())) <= MAX_PROJECTED_SOURCES,
        ),
    )
