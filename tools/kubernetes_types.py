"""Derives structural schemas of the embedded Kubernetes types from the models of the Kubernetes client.

The client's models know names, types and required fields; choices, ranges and patterns that Kubernetes checks are added
from the tables below, rules from ``stoker.api.embedded_rules``; and every string, list and map gets a bound, without
which the API server cannot estimate a CEL rule.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from kubernetes.client import models

from stoker.api.embedded_rules import RULES
from stoker.api.quantities import quantity_schema, unit_schema
from stoker.api.types import (
    DIVISOR_PATTERN,
    DRIVER_PATTERN,
    FILE_FIELD_PATTERN,
    FILE_PATH_PATTERN,
    HOST_PATH_PATTERN,
    LABEL_KEY_PATTERN,
    LABEL_PATTERN,
    LABEL_VALUE_PATTERN,
    MAX_KEY_PREFIX,
    NFS_PATH_PATTERN,
    OPTIONAL_KEY_PATTERN,
    OPTIONAL_NAME_PATTERN,
    PROFILE_PATH_PATTERN,
    RESOURCE_FIELD_PATTERN,
    SUBDOMAIN_PATTERN,
    SYSCTL_PATTERN,
    UNPADDED_PATTERN,
)
from tools.kubernetes_words import FIELDS

EMBEDDED = (
    "V1Affinity", "V1CSIVolumeSource", "V1ConfigMapVolumeSource", "V1DownwardAPIVolumeSource", "V1EmptyDirVolumeSource",
    "V1EphemeralVolumeSource", "V1HostPathVolumeSource", "V1ImageVolumeSource", "V1NFSVolumeSource",
    "V1PersistentVolumeClaimVolumeSource", "V1PodSecurityContext", "V1ProjectedVolumeSource", "V1SecretVolumeSource",
    "V1Toleration", "V1TopologySpreadConstraint",
)  # fmt: skip
"""The types that the InferenceService holds."""

LEFT_OUT = {
    ("V1PodSecurityContext", "windowsOptions"),  # the pods run Linux
    ("V1PersistentVolumeClaimTemplate", "metadata"),  # the claim is the pod's own and is named after it
    ("V1PersistentVolumeClaimSpec", "dataSource"),  # dataSourceRef says the same and more
    ("V1VolumeProjection", "clusterTrustBundle"),
    ("V1VolumeProjection", "podCertificate"),
    # newer than the oldest Kubernetes that Stoker runs on
    ("V1ConfigMapVolumeSource", "defaultUser"),
    ("V1DownwardAPIVolumeFile", "user"),
    ("V1DownwardAPIVolumeSource", "defaultUser"),
    ("V1EmptyDirVolumeSource", "mode"),
    ("V1KeyToPath", "user"),
    ("V1ProjectedVolumeSource", "defaultUser"),
    ("V1SecretVolumeSource", "defaultUser"),
    ("V1ServiceAccountTokenProjection", "user"),
}
"""Fields that Kubernetes has and the InferenceService has not."""

_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_CHOICES = {
    ("V1Toleration", "operator"): ("Exists", "Equal", ""),
    ("V1Toleration", "effect"): ("", "NoSchedule", "PreferNoSchedule", "NoExecute"),
    ("V1NodeSelectorRequirement", "operator"): (*_LABEL_OPERATORS, "Gt", "Lt"),
    ("V1LabelSelectorRequirement", "operator"): _LABEL_OPERATORS,
    ("V1TopologySpreadConstraint", "whenUnsatisfiable"): ("DoNotSchedule", "ScheduleAnyway"),
    ("V1TopologySpreadConstraint", "nodeAffinityPolicy"): ("Honor", "Ignore"),
    ("V1TopologySpreadConstraint", "nodeTaintsPolicy"): ("Honor", "Ignore"),
    ("V1PodSecurityContext", "fsGroupChangePolicy"): ("OnRootMismatch", "Always"),
    ("V1PodSecurityContext", "seLinuxChangePolicy"): ("Recursive",),  # MountOption is the absence
    ("V1PodSecurityContext", "supplementalGroupsPolicy"): ("Merge", "Strict"),
    ("V1SeccompProfile", "type"): ("RuntimeDefault", "Localhost", "Unconfined"),
    ("V1AppArmorProfile", "type"): ("RuntimeDefault", "Localhost", "Unconfined"),
    ("V1PersistentVolumeClaimSpec", "volumeMode"): ("Filesystem", "Block"),
    ("V1ImageVolumeSource", "pullPolicy"): ("Always", "Never", "IfNotPresent"),
    ("V1ObjectFieldSelector", "apiVersion"): ("v1",),
    ("V1PersistentVolumeClaimSpec", "accessModes"): (
        "ReadWriteOnce",
        "ReadOnlyMany",
        "ReadWriteMany",
        "ReadWriteOncePod",
    ),
    ("V1HostPathVolumeSource", "type"): (
        "",
        "DirectoryOrCreate",
        "Directory",
        "FileOrCreate",
        "File",
        "Socket",
        "CharDevice",
        "BlockDevice",
    ),
}
MAX_INTEGER = 2**53  # the API server reads a bound as a float, and refuses one that it would round
_RANGES = {
    ("V1PreferredSchedulingTerm", "weight"): (1, 100),
    ("V1WeightedPodAffinityTerm", "weight"): (1, 100),
    ("V1TopologySpreadConstraint", "maxSkew"): (1, 2**31 - 1),
    ("V1TopologySpreadConstraint", "minDomains"): (1, 2**31 - 1),
    ("V1ServiceAccountTokenProjection", "expirationSeconds"): (600, 2**32),
    ("V1Toleration", "tolerationSeconds"): (-MAX_INTEGER, MAX_INTEGER),  # below 0 is 0
    **{
        ("V1PodSecurityContext", field): (0, 2**31 - 1)
        for field in ("runAsUser", "runAsGroup", "fsGroup", "supplementalGroups")
    },
}
_PATTERNS = {
    ("V1ObjectFieldSelector", "fieldPath"): FILE_FIELD_PATTERN,
    ("V1ResourceFieldSelector", "resource"): RESOURCE_FIELD_PATTERN,
    ("V1Toleration", "key"): OPTIONAL_KEY_PATTERN,
    ("V1Toleration", "value"): LABEL_VALUE_PATTERN,
    ("V1NodeSelectorRequirement", "key"): LABEL_KEY_PATTERN,
    ("V1LabelSelectorRequirement", "key"): LABEL_KEY_PATTERN,
    ("V1LabelSelectorRequirement", "values"): LABEL_VALUE_PATTERN,
    ("V1LabelSelector", "matchLabels"): LABEL_VALUE_PATTERN,
    ("V1PodAffinityTerm", "topologyKey"): LABEL_KEY_PATTERN,
    ("V1PodAffinityTerm", "matchLabelKeys"): LABEL_KEY_PATTERN,
    ("V1PodAffinityTerm", "mismatchLabelKeys"): LABEL_KEY_PATTERN,
    ("V1PodAffinityTerm", "namespaces"): LABEL_PATTERN,
    ("V1TopologySpreadConstraint", "matchLabelKeys"): LABEL_KEY_PATTERN,
    ("V1Sysctl", "name"): SYSCTL_PATTERN,
    ("V1CSIVolumeSource", "driver"): DRIVER_PATTERN,
    ("V1LocalObjectReference", "name"): SUBDOMAIN_PATTERN,
    ("V1HostPathVolumeSource", "path"): HOST_PATH_PATTERN,
    ("V1SeccompProfile", "localhostProfile"): PROFILE_PATH_PATTERN,
    ("V1AppArmorProfile", "localhostProfile"): UNPADDED_PATTERN,
    ("V1NFSVolumeSource", "path"): NFS_PATH_PATTERN,
    ("V1KeyToPath", "path"): FILE_PATH_PATTERN,
    ("V1DownwardAPIVolumeFile", "path"): FILE_PATH_PATTERN,
    ("V1ServiceAccountTokenProjection", "path"): FILE_PATH_PATTERN,
    ("V1PersistentVolumeClaimSpec", "storageClassName"): OPTIONAL_NAME_PATTERN,
    ("V1PersistentVolumeClaimSpec", "volumeAttributesClassName"): OPTIONAL_NAME_PATTERN,
}
_LONGEST_KEY = MAX_KEY_PREFIX + 1 + 63
_LENGTHS = {
    LABEL_KEY_PATTERN: _LONGEST_KEY,
    OPTIONAL_KEY_PATTERN: _LONGEST_KEY,
    LABEL_VALUE_PATTERN: 63,
    LABEL_PATTERN: 63,
    SYSCTL_PATTERN: 253,
    DRIVER_PATTERN: 63,
    SUBDOMAIN_PATTERN: 253,
}
_NOT_EMPTY = {
    ("V1ConfigMapProjection", "name"),
    ("V1ConfigMapVolumeSource", "name"),
    ("V1HostPathVolumeSource", "path"),
    ("V1ImageVolumeSource", "reference"),
    ("V1KeyToPath", "key"),
    ("V1NFSVolumeSource", "server"),
    ("V1PersistentVolumeClaimVolumeSource", "claimName"),
    ("V1ResourceFieldSelector", "containerName"),
    ("V1SecretProjection", "name"),
    ("V1SecretVolumeSource", "secretName"),
    ("V1TopologySpreadConstraint", "topologyKey"),
}
_AT_LEAST_ONE = {("V1NodeSelector", "nodeSelectorTerms"), ("V1PersistentVolumeClaimSpec", "accessModes")}
_REQUIRED = {
    ("V1ConfigMapProjection", "name"),
    ("V1ConfigMapVolumeSource", "name"),
    ("V1EphemeralVolumeSource", "volumeClaimTemplate"),
    ("V1ImageVolumeSource", "reference"),  # a Deployment goes without, its pods do not
    ("V1LocalObjectReference", "name"),
    ("V1PersistentVolumeClaimSpec", "accessModes"),
    ("V1PersistentVolumeClaimSpec", "resources"),
    ("V1ResourceFieldSelector", "containerName"),  # of a file, not of a variable
    ("V1SecretProjection", "name"),
    ("V1SecretVolumeSource", "secretName"),
    ("V1VolumeResourceRequirements", "requests"),
}
_INT32 = ("defaultMode", "mode")
_QUANTITIES = {
    ("V1EmptyDirVolumeSource", "sizeLimit"): quantity_schema(0),
    ("V1ResourceFieldSelector", "divisor"): unit_schema(DIVISOR_PATTERN),
    ("V1VolumeResourceRequirements", "limits"): quantity_schema(0),
    ("V1VolumeResourceRequirements", "requests"): quantity_schema(1),
}
MAX_ITEMS, MAX_ENTRIES, MAX_LENGTH = 32, 32, 512


def embedded_types() -> str:
    """Return ``operator/stoker/api/kubernetes_types.json``."""
    schemas = {name: _object(name) for name in EMBEDDED}
    return json.dumps(schemas, indent=1, sort_keys=True) + "\n"


def _object(name: str) -> dict[str, Any]:
    model = getattr(models, name)
    fields: Mapping[str, str] = model.openapi_types
    properties, required = {}, []
    for attribute, kind in fields.items():
        field = model.attribute_map[attribute]
        if (name, field) in LEFT_OUT:
            continue
        properties[field] = {"description": _words(name, field), **_of(kind, name, field)}
        if model.model_fields[attribute].is_required() or (name, field) in _REQUIRED:
            required.append(field)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if name in RULES:
        schema["x-kubernetes-validations"] = [rule.to_schema() for rule in RULES[name]]
    return {**schema, "required": sorted(required)} if required else schema


def _words(owner: str, field: str) -> str:
    """Return the description of a field. Raises ``LookupError`` for one that a new release of the client brought."""
    words = FIELDS.get(owner, {}).get(field)
    if words is None:
        raise LookupError(
            f"{owner}.{field} has no description: write one into FIELDS of tools/kubernetes_words.py, "
            "or add it to LEFT_OUT of tools/kubernetes_types.py"
        )
    return words


def _of(kind: str, owner: str, field: str) -> dict[str, Any]:
    if match := re.fullmatch(r"List\[(.+)\]", kind):
        least = {"minItems": 1} if (owner, field) in _AT_LEAST_ONE else {}
        return {"type": "array", "items": _of(match[1], owner, field), "maxItems": MAX_ITEMS, **least}
    if match := re.fullmatch(r"Dict\[str, (.+)\]", kind):
        values = _of(match[1], owner, field)
        return {"type": "object", "additionalProperties": values, "maxProperties": MAX_ENTRIES}
    if kind == "str":
        return _string(owner, field)
    if kind == "int":
        return _integer(owner, field)
    return {"type": "boolean"} if kind == "bool" else _object(kind)


def _string(owner: str, field: str) -> dict[str, Any]:
    if quantity := _QUANTITIES.get((owner, field)):
        return dict(quantity)
    schema: dict[str, Any] = {"type": "string", "maxLength": MAX_LENGTH}
    if pattern := _PATTERNS.get((owner, field)):
        schema |= {"maxLength": _LENGTHS.get(pattern, MAX_LENGTH), "pattern": pattern}
    if (owner, field) in _NOT_EMPTY:
        schema["minLength"] = 1
    if choices := _CHOICES.get((owner, field)):
        schema["enum"] = list(choices)
    return schema


def _integer(owner: str, field: str) -> dict[str, Any]:
    if field in _INT32:
        return {"type": "integer", "format": "int32", "minimum": 0, "maximum": 0o777}
    low, high = _RANGES.get((owner, field), (0, MAX_INTEGER))
    return {"type": "integer", "format": "int64", "minimum": low, "maximum": high}
