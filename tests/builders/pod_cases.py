"""Fields of pods, good and bad: what Kubernetes takes in a pod template, and what it refuses there."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.builders.specs import SpecBuilder, a_spec

DATA = {"name": "data", "mountPath": "/data", "emptyDir": {}}


def env(**variable: object) -> SpecBuilder:
    """A spec whose pods have one environment variable."""
    return a_spec().set("pod.env", [{"name": "A", **variable}])


POD_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.labels['example.com/team']",
    "metadata.labels['Tier']",
    "metadata.annotations['Example.com/Note_1']",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
NO_POD_FIELDS = (
    "metadata.labels",
    "metadata.annotations",
    "metadata.generation",
    "metadata.labels['']",
    "metadata.labels['Example.com/team']",
    "metadata.labels[team]",
    "metadata.labels['a/b/c']",
    "metadata.annotations['-a']",
    "metadata.name['a']",
    "spec.schedulerName",
    "spec.nodename",
    "status.phase",
    "status.podIPss",
    "podIP",
)
RESOURCES = (
    ("limits.cpu", None),
    ("requests.cpu", "1m"),
    ("limits.memory", "1"),
    ("requests.memory", "1Mi"),
    ("limits.ephemeral-storage", "1E"),
    ("requests.ephemeral-storage", "1k"),
    ("limits.hugepages-2Mi", "1Ei"),
    ("requests.hugepages-1Gi", "1Gi"),
)
NO_RESOURCES = ("limits.gpu", "limits.nvidia.com/gpu", "limits.hugepages", "memory", "limits.", "requests.cpus")
ADDRESSES = ("10.0.0.7", "::", "fd00::7", "FE80:0:0:0:0:0:0:0ABC", "64:ff9b::10.0.0.7")
NO_ADDRESSES = (
    "abc",
    "10.0.0",
    "10.0.0.256",
    "010.0.0.7",
    "10.0.0.7/32",
    "fe80::1%eth0",
    "::ffff:10.0.0.7",
    "::ffff:a00:7",
    "[::1]",
    "fd00::1::2",
    "hub.internal",
    "10.0.0.7 ",
)
LONGEST_KEY = f"{'a' * 253}/{'b' * 63}"


def _resource(resource: str, divisor: str | None) -> SpecBuilder:
    unit = {} if divisor is None else {"divisor": divisor}
    return env(valueFrom={"resourceFieldRef": {"resource": resource, **unit}})


def _host_alias(ip: str) -> SpecBuilder:
    return a_spec().set("pod.hostAliases", [{"ip": ip, "hostnames": ["hub.internal"]}])


def _downward(source: Mapping[str, object]) -> SpecBuilder:
    return volume(emptyDir=None, downwardAPI={"items": [{"path": "file", **source}]})


def volume(**fields: object) -> SpecBuilder:
    """A spec whose pods have one volume; a field that is None is left out."""
    merged = {**DATA, **fields}
    return a_spec().set("pod.volumes", [{key: value for key, value in merged.items() if value is not None}])


@dataclass(frozen=True, slots=True)
class Bad:
    """An object that must be refused: where its fault is, and a part of what is said about it."""

    spec: SpecBuilder
    path: str
    says: str


GOOD_POD: Mapping[str, SpecBuilder] = {
    **{f"variable of the field {path}": env(valueFrom={"fieldRef": {"fieldPath": path}}) for path in POD_FIELDS},
    **{
        f"variable of the resource {resource} in {divisor}": _resource(resource, divisor)
        for resource, divisor in RESOURCES
    },
    **{f"host alias {ip}": _host_alias(ip) for ip in ADDRESSES},
    "files of fields": _downward({"fieldRef": {"fieldPath": "metadata.labels"}}),
    "file of one label": _downward({"fieldRef": {"fieldPath": "metadata.labels['example.com/team']"}}),
    "file of a resource": _downward(
        {"resourceFieldRef": {"containerName": "engine", "resource": "limits.cpu", "divisor": "1m"}}
    ),
    "longest keys": a_spec().set("pod.labels", {LONGEST_KEY: ""}).set("pod.annotations", {LONGEST_KEY: ""}),
    "annotation in capitals": a_spec().set("pod.annotations", {"Example.COM/Note": ""}),
}

BAD_POD: Mapping[str, Bad] = {
    **{
        f"variable of no field {path}": Bad(
            env(valueFrom={"fieldRef": {"fieldPath": path}}),
            "spec.pod.env[0].valueFrom.fieldRef.fieldPath",
            "write metadata.name",
        )
        for path in NO_POD_FIELDS
    },
    **{
        f"variable of no resource {resource}": Bad(
            _resource(resource, None), "spec.pod.env[0].valueFrom.resourceFieldRef.resource", "such as limits.memory"
        )
        for resource in NO_RESOURCES
    },
    **{
        f"cores in {divisor}": Bad(
            _resource("limits.cpu", divisor), "spec.pod.env[0].valueFrom.resourceFieldRef.divisor", 'write "1" or 1m'
        )
        for divisor in ("1k", "1Mi")
    },
    **{
        f"{resource} in thousandths": Bad(
            _resource(resource, "1m"), "spec.pod.env[0].valueFrom.resourceFieldRef.divisor", "such as 1Mi"
        )
        for resource in ("requests.memory", "limits.ephemeral-storage", "limits.hugepages-2Mi")
    },
    **{
        f"unit {divisor}": Bad(
            _resource("limits.memory", divisor), "spec.pod.env[0].valueFrom.resourceFieldRef.divisor", "write a unit"
        )
        for divisor in ("2", "1K", "10", "1.5", "-1", "")
    },
    **{
        f"host alias {ip}": Bad(_host_alias(ip), "spec.pod.hostAliases[0].ip", "such as 10.0.0.7 or fd00::7")
        for ip in NO_ADDRESSES
    },
    "host alias without an address": Bad(_host_alias(""), "spec.pod.hostAliases[0].ip", "at least 1"),
    "file of no field": Bad(
        _downward({"fieldRef": {"fieldPath": "status.podIP"}}),
        "spec.pod.volumes[0].downwardAPI.items[0].fieldRef.fieldPath",
        "write metadata.name",
    ),
    "file of no resource": Bad(
        _downward({"resourceFieldRef": {"containerName": "engine", "resource": "limits.gpu"}}),
        "spec.pod.volumes[0].downwardAPI.items[0].resourceFieldRef.resource",
        "such as limits.memory",
    ),
    "file of the resource of no container": Bad(
        _downward({"resourceFieldRef": {"resource": "limits.cpu"}}),
        "spec.pod.volumes[0].downwardAPI.items[0].resourceFieldRef.containerName",
        "missing",
    ),
    "file in no unit": Bad(
        _downward({"resourceFieldRef": {"containerName": "engine", "resource": "limits.memory", "divisor": "2"}}),
        "spec.pod.volumes[0].downwardAPI.items[0].resourceFieldRef.divisor",
        "write a unit",
    ),
    **{
        f"longer prefix of {field}": Bad(
            a_spec().set(f"pod.{field}", {f"a{LONGEST_KEY}": ""}), f"spec.pod.{field}", "the prefix at most 253"
        )
        for field in ("labels", "annotations", "nodeSelector")
    },
    "label in capitals": Bad(a_spec().set("pod.labels", {"Example.COM/note": ""}), "spec.pod.labels", "no valid label"),
}
