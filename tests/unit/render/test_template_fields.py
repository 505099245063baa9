"""The pod template: what the user's fields make of it."""

import json
from typing import Any

import pytest

from stoker.render.meta import tidy
from tests.builders.layouts import a_layout, an_invocation
from tests.builders.specs import a_spec
from tests.builders.templates import agent, engine, pod, template


# ---- volumes -------------------------------------------------------------------------------------------------------
def test_a_model_on_a_claim_is_mounted_read_only() -> None:
    spec = a_spec().model("pvc://weights/llama")
    invocation = an_invocation(model_path="/models")
    volume = {"name": "stoker-model", "persistentVolumeClaim": {"claimName": "weights"}}
    assert volume in pod(spec, invocation=invocation)["volumes"]
    mount = {"name": "stoker-model", "mountPath": "/models", "readOnly": True}
    assert mount in engine(spec, invocation=invocation)["volumeMounts"]


def test_every_path_that_the_engine_writes_to_is_a_volume() -> None:
    mounted = {mount["mountPath"] for mount in engine()["volumeMounts"]}
    assert {"/cache", "/tmp", "/dev/shm"} <= mounted
    names = {volume["name"] for volume in pod()["volumes"]}
    mounts = [*engine()["volumeMounts"], *agent()["volumeMounts"]]
    assert {mount["name"] for mount in mounts} == names


def test_a_volume_of_the_user_takes_the_place_of_the_cache() -> None:
    claim = {"claimName": "compiled"}
    spec = a_spec().set("pod.volumes", [{"name": "c", "mountPath": "/cache", "persistentVolumeClaim": claim}])
    assert [m for m in engine(spec)["volumeMounts"] if m["mountPath"] == "/cache"] == [
        {"name": "c", "mountPath": "/cache"}
    ]
    volumes = pod(spec)["volumes"]
    assert {"name": "c", "persistentVolumeClaim": claim} in volumes
    assert "stoker-cache" not in {volume["name"] for volume in volumes}


def test_volumes_of_the_user_are_mounted_as_written() -> None:
    volume = {"name": "d", "mountPath": "/data", "subPath": "x", "readOnly": True, "configMap": {"name": "c"}}
    spec = a_spec().set("pod.volumes", [volume])
    assert {"name": "d", "mountPath": "/data", "subPath": "x", "readOnly": True} in engine(spec)["volumeMounts"]
    assert {"name": "d", "configMap": {"name": "c"}} in pod(spec)["volumes"]


# ---- scheduling ----------------------------------------------------------------------------------------------------
PRODUCTS = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-L4", "NVIDIA-L40S"]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _terms(affinity: dict[str, Any]) -> Any:
    return affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


def test_products_become_a_node_affinity() -> None:
    assert _terms(pod(a_spec().on("NVIDIA-L4", "NVIDIA-L40S"))["affinity"]) == [{"matchExpressions": [PRODUCTS]}]
    assert "affinity" not in pod(a_spec())


def test_products_narrow_every_alternative_of_the_users_affinity() -> None:
    zones = [{"key": "zone", "operator": "In", "values": [zone]} for zone in ("a", "b")]
    terms: list[dict[str, Any]] = [{"matchExpressions": [zone]} for zone in zones]
    fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    preferred = [{"weight": 1, "preference": {"matchExpressions": zones[:1]}}]
    node = {REQUIRED: {"nodeSelectorTerms": [*terms, fields]}}
    node["preferredDuringSchedulingIgnoredDuringExecution"] = preferred  # type: ignore[assignment]
    spec = a_spec().on("NVIDIA-L4", "NVIDIA-L40S").set("pod.affinity", {"nodeAffinity": node})
    affinity = pod(spec)["affinity"]
    assert _terms(affinity) == [
        *({"matchExpressions": [zone, PRODUCTS]} for zone in zones),
        {**fields, "matchExpressions": [PRODUCTS]},
    ]
    assert affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == preferred


@pytest.mark.parametrize("term", [{}, {"matchExpressions": []}, {"matchFields": []}], ids=str)
def test_an_alternative_that_selects_no_node_still_selects_none(term: dict[str, Any]) -> None:
    affinity: dict[str, Any] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}
    assert _terms(pod(a_spec().on("NVIDIA-L4").set("pod.affinity", affinity))["affinity"]) == [{}]


def test_nodes_that_are_kept_for_gpus_are_tolerated() -> None:
    ours = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
    theirs = {"key": "team", "operator": "Equal", "value": "a", "effect": "NoExecute"}
    assert pod()["tolerations"] == [ours]
    assert pod(a_spec().set("pod.tolerations", [theirs]))["tolerations"] == [theirs, ours]
    assert pod(a_spec().set("pod.tolerations", [ours]))["tolerations"] == [ours]
    assert "tolerations" not in pod(a_spec().on_cpu(), a_layout(0))


def test_a_spread_without_selector_counts_the_services_own_pods() -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    own = {"matchLabels": {"serving.stoker.dev/service": "chat", "serving.stoker.dev/component": "engine"}}
    theirs, other = {"matchLabels": {"a": "b"}}, {**constraint, "topologyKey": "rack"}
    spec = a_spec().set("pod.topologySpreadConstraints", [constraint, {**other, "labelSelector": theirs}])
    assert pod(spec)["topologySpreadConstraints"] == [
        {**constraint, "labelSelector": own},
        {**other, "labelSelector": theirs},
    ]


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("nodeSelector", {"disk": "ssd"}, {"disk": "ssd"}),
        ("priorityClassName", "high", "high"),
        ("runtimeClassName", "nvidia", "nvidia"),
        ("schedulerName", "kai-scheduler", "kai-scheduler"),
        ("serviceAccountName", "mine", "mine"),
        ("imagePullSecrets", [{"name": "registry"}], [{"name": "registry"}]),
        ("hostAliases", [{"ip": "10.0.0.7", "hostnames": ["hub"]}], [{"ip": "10.0.0.7", "hostnames": ["hub"]}]),
    ],
)
def test_fields_of_the_pod_are_passed_on(field: str, value: object, expected: object) -> None:
    assert pod(a_spec().set(f"pod.{field}", value))[field] == expected


def test_N1_names_of_one_address_are_one_entry_as_a_server_side_apply_needs_it() -> None:
    aliases = [("10.0.0.7", "a"), ("fd00::7", "b"), ("10.0.0.7", "c")]
    spec = a_spec().set("pod.hostAliases", [{"ip": ip, "hostnames": [name]} for ip, name in aliases])
    assert pod(spec)["hostAliases"] == [
        {"ip": "10.0.0.7", "hostnames": ["a", "c"]},
        {"ip": "fd00::7", "hostnames": ["b"]},
    ]


# ---- labels and annotations ----------------------------------------------------------------------------------------
def test_labels_and_annotations_of_the_pod_are_the_users_and_ours() -> None:
    spec = a_spec().set("pod.labels", {"team": "a"}).set("pod.annotations", {"note": "x"})
    metadata = template(spec)["metadata"]
    assert metadata["labels"] == {
        "app.kubernetes.io/managed-by": "stoker",
        "app.kubernetes.io/name": "vllm",
        "serving.stoker.dev/component": "engine",
        "serving.stoker.dev/revision": "0123456789",
        "serving.stoker.dev/service": "chat",
        "team": "a",
    }
    assert metadata["annotations"] == {"kubectl.kubernetes.io/default-container": "engine", "note": "x"}


def test_what_a_user_wrote_is_rendered_in_one_order_and_without_nulls() -> None:
    written = {"b": None, "a": [{"d": 1, "c": None}, None], "0": {"x": {"y": None}}}
    assert json.dumps(tidy(written)) == json.dumps({"0": {"x": {}}, "a": [{"d": 1}, None]})


def test_nothing_in_a_template_is_null() -> None:
    """A null in an apply would own the field."""
    toleration = {"key": "a", "operator": "Exists", "value": None}
    spec = a_spec().set("pod.tolerations", [toleration]).set("pod.affinity", {"nodeAffinity": None})
    assert not _nulls(template(spec), "")


def _nulls(value: Any, path: str) -> list[str]:
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in _nulls(item, f"{path}.{key}")]
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in _nulls(item, f"{path}[{index}]")]
    return [path] if value is None else []
