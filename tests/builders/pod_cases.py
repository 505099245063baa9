"""Fields of pods, good and bad: what Kubernetes takes in a pod template, and what it refuses there."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.builders.pod_texts import (
    ADDRESSES,
    BAD_ANNOTATIONS,
    GOOD_ANNOTATIONS,
    LONGEST_KEY,
    LONGEST_NAME,
    NO_ADDRESSES,
    NO_POD_FIELDS,
    NO_RESOURCES,
    POD_FIELDS,
    RESOURCES,
)
from tests.builders.specs import SpecBuilder, a_spec

DATA = {"name": "data", "mountPath": "/data", "emptyDir": {}}


def env(**variable: object) -> SpecBuilder:
    """A spec whose pods have one environment variable."""
    return a_spec().set("pod.env", [{"name": "A", **variable}])


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODE = f"spec.pod.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms"
NEAR = f"spec.pod.affinity.podAffinity.{REQUIRED}[0]"


def _resource(resource: str, divisor: str | int | None) -> SpecBuilder:
    unit = {} if divisor is None else {"divisor": divisor}
    return env(valueFrom={"resourceFieldRef": {"resource": resource, **unit}})


def _host_alias(ip: str) -> SpecBuilder:
    return a_spec().set("pod.hostAliases", [{"ip": ip, "hostnames": ["hub.internal"]}])


def _downward(source: Mapping[str, object]) -> SpecBuilder:
    return volume(emptyDir=None, downwardAPI={"items": [{"path": "file", **source}]})


def _file_of(resource: str, divisor: str | int) -> SpecBuilder:
    selector = {"containerName": "engine", "resource": resource, "divisor": divisor}
    return _downward({"resourceFieldRef": selector})


def volume(**fields: object) -> SpecBuilder:
    """A spec whose pods have one volume; a field that is None is left out."""
    merged = {**DATA, **fields}
    return a_spec().set("pod.volumes", [{key: value for key, value in merged.items() if value is not None}])


SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


def tolerations(*tolerations: Mapping[str, object]) -> SpecBuilder:
    """A spec whose pods have tolerations."""
    return a_spec().set("pod.tolerations", list(tolerations))


def _spread(*constraints: Mapping[str, object]) -> SpecBuilder:
    return a_spec().set("pod.topologySpreadConstraints", [{**SPREAD, **constraint} for constraint in constraints])


def _security(**fields: object) -> SpecBuilder:
    return a_spec().set("pod.securityContext", fields)


def _node_term(**term: object) -> SpecBuilder:
    return a_spec().set(f"pod.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms", [term])


def _node_needs(operator: str, *values: str, key: str = "zone") -> SpecBuilder:
    return _node_term(matchExpressions=[{"key": key, "operator": operator, "values": list(values)}])


def _near(**term: object) -> SpecBuilder:
    return a_spec().set(f"pod.affinity.podAffinity.{REQUIRED}", [{"topologyKey": "zone", **term}])


def _near_needs(operator: str, *values: str, key: str = "app") -> SpecBuilder:
    return _near(labelSelector={"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]})


def _annotation(key: str, value: str) -> SpecBuilder:
    return a_spec().set("pod.annotations", {key: value})


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
    **{
        f"file of {resource} in {divisor}": _file_of(resource, divisor)
        for resource, divisor in (
            *(("limits.cpu", divisor) for divisor in ("0", "1", "1m", "1.0", "1000m", 1)),
            *(("requests.memory", divisor) for divisor in ("0", "1", "1.0", "1Mi", "1.0Gi", "1000m", "1024Mi", 0)),
        )
    },
    "longest keys": a_spec().set("pod.labels", {LONGEST_KEY: ""}).set("pod.annotations", {LONGEST_KEY: ""}),
    "annotation in capitals": a_spec().set("pod.annotations", {"Example.COM/Note": ""}),
    "every taint": tolerations({"operator": "Exists"}, {"key": "", "operator": "Exists", "effect": "NoSchedule"}),
    "taints of a key": tolerations({"key": "example.com/gpu", "value": ""}, {"key": "gpu", "value": LONGEST_NAME}),
    "a taint for a while": tolerations({"key": "a", "effect": "NoExecute", "tolerationSeconds": 0}),
    "a taint that exists": tolerations({"key": LONGEST_KEY, "operator": "Exists", "value": ""}),
    "tolerations that leave it open": tolerations(
        {"key": "a", "operator": "", "effect": ""}, {"operator": "Exists", "effect": ""}
    ),
    "names of one address": a_spec().set(
        "pod.hostAliases", [{"ip": "10.0.0.7", "hostnames": [name]} for name in ("a", "b", "a")]
    ),
    "spread over domains": _spread(
        {"topologyKey": "any text at all"},
        {"whenUnsatisfiable": "DoNotSchedule", "minDomains": 2, "labelSelector": {}, "matchLabelKeys": ["a/b"]},
        {},
    ),
    **{
        f"nodes by {operator}": _node_needs(operator, *values)
        for operator, *values in (
            ("In", "a", "b"),
            ("NotIn", ""),
            ("Exists",),
            ("DoesNotExist",),
            ("Gt", "1"),
            ("Lt", "x"),
        )
    },
    "a node by name": _node_term(matchFields=[{"key": "metadata.name", "operator": "NotIn", "values": ["node-1"]}]),
    "a term without anything": _node_term(),
    **{
        f"pods by {operator}": _near_needs(operator, *values)
        for operator, *values in (("In", "a", LONGEST_NAME), ("NotIn", ""), ("Exists",), ("DoesNotExist",))
    },
    "pods by no keys": _near(matchLabelKeys=[], mismatchLabelKeys=[]),
    "pods of namespaces": _near(namespaces=["team-a"], labelSelector={"matchLabels": {"a": ""}}, matchLabelKeys=["b"]),
    "profiles of the runtime": _security(
        seccompProfile={"type": "RuntimeDefault"}, appArmorProfile={"type": "Unconfined"}
    ),
    "profiles of the node": _security(
        seccompProfile={"type": "Localhost", "localhostProfile": "p/a.json"},
        appArmorProfile={"type": "Localhost", "localhostProfile": "a"},
    ),
    "variable of a field of a version": env(valueFrom={"fieldRef": {"fieldPath": "status.podIP", "apiVersion": "v1"}}),
    "a taint for less than nothing": tolerations({"key": "a", "effect": "NoExecute", "tolerationSeconds": -1}),
    "pods by labels": _near(labelSelector={"matchLabels": {LONGEST_KEY: "", "a": "b"}}, mismatchLabelKeys=["a"]),
    **{
        f"profile {path}": _security(seccompProfile={"type": "Localhost", "localhostProfile": path})
        for path in ("", "..a", "a/..b", "a//b", "./a")
    },
    "mounts labelled one by one": _security(seLinuxChangePolicy="Recursive"),
    **{f"annotation {key}={value}": _annotation(key, value) for key, value in GOOD_ANNOTATIONS},
    "identities": _security(
        runAsUser=2**31 - 1,
        runAsGroup=0,
        fsGroup=1,
        supplementalGroups=[2**31 - 1],
        sysctls=[{"name": "net.ipv4.ip_local_port_range", "value": "1024 65535"}, {"name": "a/b_c", "value": ""}],
    ),
}

BAD_POD: Mapping[str, Bad] = {
    "taint without a key": Bad(tolerations({}), "spec.pod.tolerations[0].operator", "operator: Exists"),
    "taint of nothing": Bad(tolerations({"operator": ""}), "spec.pod.tolerations[0].operator", "operator: Exists"),
    "no effect": Bad(
        tolerations({"key": "a", "effect": "None"}), "spec.pod.tolerations[0].effect", "one of NoSchedule, Prefer"
    ),
    "taint of a value only": Bad(
        tolerations({"operator": "Equal", "value": "a"}), "spec.pod.tolerations[0].operator", "name a key"
    ),
    "value that exists": Bad(
        tolerations({"key": "a", "operator": "Exists", "value": "b"}), "spec.pod.tolerations[0].value", "takes no value"
    ),
    **{
        f"time of {effect}": Bad(
            tolerations({"key": "a", "tolerationSeconds": 5, **({"effect": effect} if effect else {})}),
            "spec.pod.tolerations[0].tolerationSeconds",
            "NoExecute",
        )
        for effect in ("", "NoSchedule")
    },
    **{
        f"taint {key}": Bad(tolerations({"key": key}), "spec.pod.tolerations[0].key", "[prefix/]name")
        for key in ("a b", "/a", "A/b", "a/", "x" * 64)
    },
    "value of a taint": Bad(tolerations({"key": "a", "value": "b c"}), "spec.pod.tolerations[0].value", "63 letters"),
    "long value of a taint": Bad(
        tolerations({"key": "a", "value": "x" * 64}), "spec.pod.tolerations[0].value", "63 characters"
    ),
    "spread twice": Bad(_spread({}, {}), "spec.pod.topologySpreadConstraints", "keep one of them"),
    "spread over nothing": Bad(
        _spread({"topologyKey": ""}), "spec.pod.topologySpreadConstraints[0].topologyKey", "at least 1"
    ),
    "domains of any spread": Bad(
        _spread({"minDomains": 1}), "spec.pod.topologySpreadConstraints[0].minDomains", "DoNotSchedule"
    ),
    "spread by no key": Bad(
        _spread({"labelSelector": {}, "matchLabelKeys": [""]}),
        "spec.pod.topologySpreadConstraints[0].matchLabelKeys[0]",
        "[prefix/]name",
    ),
    **{
        f"nodes by {operator} of {len(values)}": Bad(
            _node_needs(operator, *values), f"{NODE}[0].matchExpressions[0].values", "Gt and Lt one"
        )
        for operator, *values in (
            ("In",),
            ("NotIn",),
            ("Exists", "a"),
            ("DoesNotExist", "a"),
            ("Gt",),
            ("Lt", "1", "2"),
        )
    },
    "no node": Bad(a_spec().set(NODE.removeprefix("spec."), []), NODE, "at least 1"),
    "nodes by no key": Bad(_node_needs("Exists", key=""), f"{NODE}[0].matchExpressions[0].key", "[prefix/]name"),
    **{
        f"nodes by the field {key} {operator} {values}": Bad(
            _node_term(matchFields=[{"key": key, "operator": operator, "values": values}]),
            f"{NODE}[0].matchFields",
            "metadata.name",
        )
        for key, operator, values in (
            ("metadata.uid", "In", ["a"]),
            ("metadata.name", "In", ["a", "b"]),
            ("metadata.name", "Exists", []),
        )
    },
    **{
        f"pods by {operator} of {len(values)}": Bad(
            _near_needs(operator, *values), f"{NEAR}.labelSelector.matchExpressions[0].values", "one or more"
        )
        for operator, *values in (("In",), ("NotIn",), ("Exists", "a"), ("DoesNotExist", ""))
    },
    "pods by no key": Bad(
        _near_needs("Exists", key="-a"), f"{NEAR}.labelSelector.matchExpressions[0].key", "[prefix/]name"
    ),
    "pods by no value": Bad(
        _near_needs("In", "a b"), f"{NEAR}.labelSelector.matchExpressions[0].values[0]", "63 letters"
    ),
    "pods by no label": Bad(
        _near(labelSelector={"matchLabels": {"a": "-"}}), f"{NEAR}.labelSelector.matchLabels.a", "63 letters"
    ),
    "pods near nothing": Bad(_near(topologyKey=""), f"{NEAR}.topologyKey", "[prefix/]name"),
    **{
        f"pods by {keys} alone": Bad(_near(**{keys: ["a"]}), f"{NEAR}.labelSelector", "{} for every pod")
        for keys in ("matchLabelKeys", "mismatchLabelKeys")
    },
    "pods of no namespace": Bad(_near(namespaces=["a.b"]), f"{NEAR}.namespaces[0]", "short Kubernetes name"),
    "pods by no own key": Bad(
        _near(labelSelector={}, mismatchLabelKeys=["a b"]), f"{NEAR}.mismatchLabelKeys[0]", "[prefix/]name"
    ),
    **{
        f"{kind} {profile}": Bad(
            _security(**{kind: profile}), f"spec.pod.securityContext.{kind}.localhostProfile", remedy
        )
        for kind in ("seccompProfile", "appArmorProfile")
        for profile, remedy in (
            ({"type": "Localhost"}, "add localhostProfile, or write another type"),
            ({"type": "RuntimeDefault", "localhostProfile": "a"}, "write type: Localhost, or remove localhostProfile"),
        )
    },
    **{
        f"{kind} {profile!r}": Bad(
            _security(**{kind: {"type": "Localhost", "localhostProfile": profile}}),
            f"spec.pod.securityContext.{kind}.localhostProfile",
            remedy,
        )
        for kind, remedy in (("seccompProfile", "no .. as a step"), ("appArmorProfile", "without spaces"))
        for profile in ({"seccompProfile": ("/a", "..", "a/../b"), "appArmorProfile": (" a", "a\n")}[kind])
    },
    "mounts labelled as by default": Bad(
        _security(seLinuxChangePolicy="MountOption"), "spec.pod.securityContext.seLinuxChangePolicy", "Recursive"
    ),
    **{
        f"annotation {key}={value}": Bad(_annotation(key, value), "spec.pod.annotations", says)
        for key, value, says in BAD_ANNOTATIONS
    },
    **{
        f"pods by the label {key}": Bad(
            _near(labelSelector={"matchLabels": {key: "v"}}), f"{NEAR}.labelSelector.matchLabels", "no valid label key"
        )
        for key in ("", "-a", "A/b", "a/b/c", f"a{LONGEST_KEY}")
    },
    "spread by the label -": Bad(
        _spread({"labelSelector": {"matchLabels": {"-": "v"}}}),
        "spec.pod.topologySpreadConstraints[0].labelSelector.matchLabels",
        "no valid label key",
    ),
    "pods by a key and not by it": Bad(
        _near(labelSelector={}, matchLabelKeys=["a", "b"], mismatchLabelKeys=["b"]),
        f"{NEAR}.matchLabelKeys",
        "both in matchLabelKeys and in mismatchLabelKeys",
    ),
    "AppArmor by no profile": Bad(
        _security(appArmorProfile={"type": "Localhost", "localhostProfile": ""}),
        "spec.pod.securityContext.appArmorProfile.localhostProfile",
        "without spaces",
    ),
    **{
        f"{field} beyond all users": Bad(_security(**{field: 2**31}), f"spec.pod.securityContext.{field}", "2147483647")
        for field in ("runAsUser", "runAsGroup", "fsGroup")
    },
    "no kernel parameter": Bad(
        _security(sysctls=[{"name": "Net.core", "value": ""}]),
        "spec.pod.securityContext.sysctls[0].name",
        "kernel parameter",
    ),
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
        for divisor in ("1k", "1Mi", "1.0Ki", "1000", "1024Ki")
    },
    **{
        f"{resource} in {divisor}": Bad(
            _resource(resource, divisor), "spec.pod.env[0].valueFrom.resourceFieldRef.divisor", "such as 1Mi"
        )
        for divisor in ("1m", "1.0m")
        for resource in ("requests.memory", "limits.ephemeral-storage", "limits.hugepages-2Mi")
    },
    **{
        f"unit {divisor}": Bad(
            _resource("limits.memory", divisor), "spec.pod.env[0].valueFrom.resourceFieldRef.divisor", "write a unit"
        )
        for divisor in ("2", "1K", "10", "1.5", "-1", "", "1000m1000m1000m1000m1000m", "500m", "1024", "1000Ki", "1e3")
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
    **{
        f"file of {resource} in {divisor}": Bad(
            _file_of(resource, divisor), "spec.pod.volumes[0].downwardAPI.items[0].resourceFieldRef.divisor", says
        )
        for resource, divisor, says in (
            ("limits.memory", "2", "write a unit"),
            ("limits.memory", "1m", "such as 1Mi"),
            ("limits.cpu", "1Mi", 'write "1" or 1m'),
        )
    },
    **{
        f"longer prefix of {field}": Bad(
            a_spec().set(f"pod.{field}", {f"a{LONGEST_KEY}": ""}), f"spec.pod.{field}", "the prefix at most 253"
        )
        for field in ("labels", "annotations", "nodeSelector")
    },
    "label in capitals": Bad(a_spec().set("pod.labels", {"Example.COM/note": ""}), "spec.pod.labels", "no valid label"),
}
