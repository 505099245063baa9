"""The CustomResourceDefinition on a real API server: it is taken, it judges as the models do, it changes nothing."""

import copy
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kubernetes import config
from kubernetes.client import ApiException, CustomObjectsApi

from clusters.controlplane import ControlPlane
from stoker.api import InferenceService, parse_inference_service
from stoker.api.crd import schema_gap
from stoker.api.inferenceservice import GROUP, PLURAL, VERSION
from stoker.api.quantities import INT_OR_STRING
from tests.builders.api_cases import BAD, GOOD
from tests.builders.cluster import conditions, install_crd, own_crd, served_crd
from tests.builders.pod_cases import BAD_POD, GOOD_POD, Bad
from tests.builders.specs import SpecBuilder, a_spec
from tests.builders.volume_cases import BAD_VOLUMES, GOOD_VOLUMES

UNPROCESSABLE = {400, 422}

SCHEMA_SECONDS = 30.0
"""How long the API server may take until it judges by a changed schema."""

APPLY = "application/apply-patch+yaml"


class Api:
    """InferenceServices on the API server, with strict field validation."""

    def __init__(self, plane: ControlPlane) -> None:
        client = config.new_client_from_config(str(plane.kubeconfig))  # type: ignore[no-untyped-call]
        self._custom = CustomObjectsApi(client)

    def create(self, manifest: Mapping[str, Any], dry_run: bool = False) -> dict[str, Any]:
        """Create an object; raises ApiException when it is refused."""
        options: dict[str, Any] = {"dry_run": "All"} if dry_run else {}
        created: Any = self._custom.create_namespaced_custom_object(
            GROUP, VERSION, manifest["metadata"]["namespace"], PLURAL, dict(manifest), field_validation="Strict",
            _request_timeout=10, **options,
        )  # fmt: skip
        return dict(created)

    def apply(self, manifest: Mapping[str, Any]) -> None:
        """Apply an object on the server's side, as `kubectl apply --server-side` does."""
        meta = manifest["metadata"]
        self._custom.patch_namespaced_custom_object(
            GROUP, VERSION, meta["namespace"], PLURAL, meta["name"], dict(manifest), field_manager="a-user",
            field_validation="Strict", _content_type=APPLY, _request_timeout=10,
        )  # fmt: skip

    def stored(self, namespace: str, name: str) -> dict[str, Any]:
        """Return an object as it is stored."""
        found: Any = self._custom.get_namespaced_custom_object(
            GROUP, VERSION, namespace, PLURAL, name, _request_timeout=10
        )
        return dict(found)

    def complaint(self, manifest: Mapping[str, Any]) -> str | None:
        """Return what the API server says against an object; None when it would take it."""
        return _refusal(lambda: self.create(manifest, dry_run=True))

    def complaint_of_pods(self, pod: Mapping[str, Any]) -> str | None:
        """Return what the API server says against a Deployment whose pods have the fields of `spec.pod`."""
        options: dict[str, Any] = {"dry_run": "All", "field_validation": "Strict", "_request_timeout": 10}
        deployment: Any = _deployment(pod)
        # The client's own call for Deployments refuses integers where quantities stand; the API server takes them.
        create = self._custom.create_namespaced_custom_object
        return _refusal(lambda: create("apps", "v1", "default", "deployments", deployment, **options))


def _refusal(call: Callable[[], object]) -> str | None:
    try:
        call()
    except ApiException as error:
        assert error.status in UNPROCESSABLE, error
        return str(json.loads(error.body or "{}")["message"])
    return None


def _deployment(pod: Mapping[str, Any]) -> dict[str, Any]:
    volumes = [{k: v for k, v in one.items() if k != "mountPath"} for one in pod.get("volumes", ())]
    template = {
        "metadata": {
            "labels": {"app": "x", **pod.get("labels", {})},
            "annotations": dict(pod.get("annotations", {})),
        },
        "spec": {
            "containers": [{"name": "engine", "image": "engine", "env": pod.get("env", [])}],
            "volumes": volumes,
            **{field: pod[field] for field in pod if field not in ("labels", "annotations", "env", "volumes")},
        },
    }
    spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "spec": spec}


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> Api:
    """The API server, with the CustomResourceDefinition established."""
    install_crd(control_plane)
    return Api(control_plane)


def _in_default(spec: SpecBuilder, name: str = "chat") -> dict[str, Any]:
    return spec.manifest(name, "default")


def test_the_crd_has_no_condition_against_it(api: Api, control_plane: ControlPlane) -> None:
    found = conditions(control_plane)
    assert found["Established"] == found["NamesAccepted"] == "True"
    assert found.get("NonStructuralSchema") != "True"


def test_the_served_schema_is_whole(api: Api, control_plane: ControlPlane) -> None:
    assert schema_gap(served_crd(control_plane)) is None


@pytest.mark.parametrize("spec", GOOD.values(), ids=GOOD.keys())
def test_a_good_object_is_taken(api: Api, spec: SpecBuilder) -> None:
    assert api.complaint(_in_default(spec)) is None


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_a_bad_object_is_refused_at_the_field_that_the_models_name(api: Api, case: Bad) -> None:
    said = api.complaint(_in_default(case.spec))
    assert said is not None
    assert case.path in said or case.path.rpartition("[")[0] in said or case.path.rpartition(".")[0] in said


GOOD_PODS, BAD_PODS = {**GOOD_POD, **GOOD_VOLUMES}, {**BAD_POD, **BAD_VOLUMES}


@pytest.mark.parametrize("spec", GOOD_PODS.values(), ids=GOOD_PODS.keys())
def test_what_the_models_take_of_a_pod_the_api_server_takes_in_a_deployment(api: Api, spec: SpecBuilder) -> None:
    assert api.complaint_of_pods(spec.manifest()["spec"]["pod"]) is None


@pytest.mark.parametrize("case", BAD_PODS.values(), ids=BAD_PODS.keys())
def test_what_the_models_refuse_of_a_pod_the_api_server_refuses_in_a_deployment(api: Api, case: Bad) -> None:
    assert api.complaint_of_pods(case.spec.manifest()["spec"]["pod"]) is not None


def _rule_faults() -> Iterator[tuple[str, Bad, str]]:
    schemas = (version["schema"]["openAPIV3Schema"] for version in own_crd()["spec"]["versions"])
    rules = [rule for schema in schemas for rule in _rules(schema)]
    for name, case in BAD.items():
        faults = parse_inference_service(_in_default(case.spec))
        assert not isinstance(faults, InferenceService)
        told = (message for where, message in rules if where.fullmatch(case.path) and message in str(faults[0]))
        yield from ((name, case, message) for message in told)


def _rules(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[re.Pattern[str], str]]:
    """Yield the message of each rule, and what matches the paths of its faults."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield re.compile((path + re.escape(rule.get("fieldPath", ""))).removeprefix(r"\.")), rule["message"]
    for name, part in schema.get("properties", {}).items():
        yield from _rules(part, rf"{path}\.{name}")
    for key, step in (("items", r"\[\d+\]"), ("additionalProperties", r"\..+")):
        if key in schema:
            yield from _rules(schema[key], path + step)


RULE_FAULTS = list(_rule_faults())


@pytest.mark.parametrize(("case", "message"), [fault[1:] for fault in RULE_FAULTS], ids=[f[0] for f in RULE_FAULTS])
def test_a_broken_rule_is_told_in_the_words_of_the_models_at_the_same_field(api: Api, case: Bad, message: str) -> None:
    said = api.complaint(_in_default(case.spec)) or ""
    steps = re.escape(case.path).split(r"\.")
    # Of a rule over a map's values, the API server writes the key in brackets.
    assert re.search(r"\.".join(steps[:-1]) + rf"(\.{steps[-1]}|\[{steps[-1]}\]): Invalid value", said), said
    assert message in said


def _values(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    """Values near a schema: mostly of its type, within and just beyond its bounds."""
    return _STRATEGIES["enum" if "enum" in schema else schema.get("type", INT_OR_STRING)](schema)


def _lists(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    return st.lists(_values(schema["items"]), max_size=2)


def _integers(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    low, high = schema["minimum"], min(schema["maximum"], 2**53)
    return st.sampled_from([low, low + 1, low - 1, high, high + 1, None, "1", True])


TEXTS = (
    "", "a", "b11434", "0.12.1", "hf://a/b", "pvc://c/m.gguf", "0.9", "1", "500m", "80Gi", "/d", "A_B", "10.0.0.7", "ü",
    "status.podIP", "metadata.labels['a']", "limits.cpu", "requests.memory", "1m", "1Mi", "fd00::7", "::ffff:10.0.0.7",
    "010.0.0.7", "2026-01-31T12:00:00Z", "2026-02-31T12:00:00Z", "a\n", "x" * 64, "x" * 254, "x" * 600,
)  # fmt: skip


QUANTITIES = ("", "0", "-1", "1", "500m", "0.5", "80Gi", "1e9", "1e-3", "10k", "1000Ti", "1Kib", " 1", "x" * 40)


def _strings(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from([*TEXTS, 1, None, [], 0.5])


def _objects(schema: Mapping[str, Any]) -> st.SearchStrategy[Any]:
    if "properties" not in schema:
        return st.dictionaries(
            st.sampled_from(["a", "b/c", "-", ""]), _values(schema["additionalProperties"]), max_size=2
        )
    fields = {name: _values(part) for name, part in schema["properties"].items()}
    required = {name: fields[name] for name in schema.get("required", ())}
    optional = {name: value for name, value in fields.items() if name not in required}
    whole = st.fixed_dictionaries(required).flatmap(lambda base: _with_some(base, optional))
    return whole | st.dictionaries(st.sampled_from(["unknown"]), st.just(1), max_size=1)


def _with_some(
    base: dict[str, Any], optional: Mapping[str, st.SearchStrategy[Any]]
) -> st.SearchStrategy[dict[str, Any]]:
    if not optional:
        return st.just(base)
    some = st.lists(st.sampled_from(sorted(optional)), max_size=3, unique=True)
    chosen = some.flatmap(lambda names: st.fixed_dictionaries({name: optional[name] for name in names}))
    return chosen.map(lambda extra: {**base, **extra})


_STRATEGIES: Mapping[str, Callable[[Mapping[str, Any]], st.SearchStrategy[Any]]] = {
    "enum": lambda schema: st.sampled_from([*schema["enum"], "Other", ""]),
    "object": _objects,
    "array": _lists,
    "string": _strings,
    "integer": _integers,
    INT_OR_STRING: lambda schema: st.sampled_from([*QUANTITIES, 0, 1, -1, 0.5, 10**17, None, [], True]),
    "boolean": lambda schema: st.sampled_from([True, False, "true", None]),
}
SPEC = own_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]


@cache
def _values_of(field: str) -> st.SearchStrategy[Any]:
    return _values(SPEC["properties"][field])


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
@given(st.sampled_from(sorted(SPEC["properties"])), st.data())
def test_models_and_api_server_judge_alike_whatever_is_written(api: Api, field: str, data: st.DataObject) -> None:
    manifest = _in_default(a_spec())
    manifest["spec"][field] = data.draw(_values_of(field))
    parsed = parse_inference_service(copy.deepcopy(manifest))
    said = api.complaint(manifest)
    assert isinstance(parsed, InferenceService) == (said is None), (manifest["spec"], parsed, said)


def test_N3_what_is_stored_is_what_was_applied_replicas_apart(api: Api, namespace: str) -> None:
    for number, spec in enumerate(GOOD.values()):
        manifest = spec.manifest(f"s{number}", namespace)
        manifest["spec"] = _without_nulls(manifest["spec"])  # a server-side apply refuses them
        api.apply(manifest)
        stored = api.stored(namespace, f"s{number}")
        assert stored["spec"] == {"replicas": 1, **manifest["spec"]}
        assert stored["status"] == {"observedGeneration": -1}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("source", ["nonsense", "s3://bucket/model", "hf:/a/b"])
def test_of_a_malformed_source_nothing_is_said_that_depends_on_it(api: Api, source: str) -> None:
    spec = a_spec().llama_cpp(source=source).set("model.credentialsSecret", "s").set("model.revision", "main")
    said = api.complaint(_in_default(spec)) or ""
    assert "spec.model.source" in said
    assert "credentialsSecret" not in said
    assert "spec.model.revision" not in said
    assert ".gguf files" not in said


LABELS = {"fieldRef": {"fieldPath": "metadata.labels"}}


@contextmanager
def _a_laxer_schema(api: Api, plane: ControlPlane, probe: Mapping[str, Any]) -> Iterator[None]:
    """Have the schema of an older release for a while: no rule over the whole spec, no patterns.

    ``probe`` is an object that only this schema takes: it tells by which schema the API server judges.
    """
    lax = own_crd()
    spec = lax["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["x-kubernetes-validations"]
    del spec["properties"]["resources"]["properties"]["memory"]["x-kubernetes-validations"]
    pod = spec["properties"]["pod"]["properties"]
    del pod["hostAliases"]["items"]["x-kubernetes-validations"]
    field = pod["env"]["items"]["properties"]["valueFrom"]["properties"]["fieldRef"]["properties"]["fieldPath"]
    del field["x-kubernetes-validations"]
    plane.apply(lax)
    try:
        _until_judged(api, probe, taken=True)
        yield
    finally:
        install_crd(plane)
        _until_judged(api, probe, taken=False)


def _until_judged(api: Api, probe: Mapping[str, Any], taken: bool) -> None:
    deadline = time.monotonic() + SCHEMA_SECONDS
    while ((said := api.complaint(probe)) is None) != taken:
        assert time.monotonic() < deadline, said
        time.sleep(0.05)


def test_an_object_of_a_laxer_schema_can_be_written_wherever_it_does_not_change_what_is_wrong(
    api: Api, control_plane: ControlPlane, namespace: str
) -> None:
    tensor_without_gpus = a_spec().on_cpu("900000000Ti").set("parallelism", {"tensor": 2})
    tensor_without_gpus = tensor_without_gpus.set("pod.hostAliases", [{"ip": "abc", "hostnames": ["hub"]}])
    tensor_without_gpus = tensor_without_gpus.set("pod.env", [{"name": "A", "valueFrom": LABELS}])
    with _a_laxer_schema(api, control_plane, tensor_without_gpus.manifest("new", namespace)):
        api.create(tensor_without_gpus.manifest("old", namespace))
    assert api.complaint(tensor_without_gpus.manifest("new", namespace)) is not None

    def patch(spec: dict[str, Any]) -> str:
        body = json.dumps({"spec": spec} if spec else {"metadata": {"labels": {"a": "b"}}})
        return control_plane.kubectl("patch", "infsvc/old", "-n", namespace, "--type=merge", "-p", body)

    patch({})
    patch({"paused": True})
    patch({"warmup": {"requests": 2}})
    control_plane.kubectl("scale", "infsvc/old", "--replicas=3", "-n", namespace)
    control_plane.kubectl("patch", "infsvc/old", "-n", namespace, "--subresource=status", "--type=merge", "-p",
                          json.dumps({"status": {"observedGeneration": 4}}))  # fmt: skip
    patch({"pod": {"annotations": {"a": "b"}}})
    with pytest.raises(Exception, match=r"spec\.pod\.hostAliases\[0\]\.ip"):
        patch({"pod": {"hostAliases": [{"ip": "abd", "hostnames": ["hub"]}]}})
    with pytest.raises(Exception, match=r"spec\.resources\.memory"):
        patch({"resources": {"memory": "800000000Ti"}})
    patch({"resources": {"memory": "8Gi"}, "parallelism": None})
    with pytest.raises(Exception, match="there is no accelerator"):
        patch({"parallelism": {"tensor": 2}})
    control_plane.kubectl("delete", "infsvc/old", "-n", namespace, "--timeout=30s")


def test_scale_works_without_replicas_in_the_manifest(api: Api, control_plane: ControlPlane, namespace: str) -> None:
    api.create(a_spec().manifest("chat", namespace))
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{PLURAL}/chat"
    assert json.loads(control_plane.kubectl("get", "--raw", f"{path}/scale"))["spec"]["replicas"] == 1
    control_plane.kubectl("scale", "infsvc/chat", "--replicas=0", "-n", namespace)
    stored = json.loads(control_plane.kubectl("get", "--raw", path))
    assert stored["spec"]["replicas"] == 0
    assert stored["metadata"]["generation"] == 2


def test_names_columns_and_selectable_fields(api: Api, control_plane: ControlPlane, namespace: str) -> None:
    api.create(a_spec().manifest("chat", namespace))
    api.create(a_spec().llama_cpp().manifest("small", namespace))
    table = control_plane.kubectl("get", "inference", "-n", namespace).splitlines()
    assert table[0].split() == ["NAME", "READY", "MODEL", "REPLICAS", "GPUS", "AGE"]
    wide = control_plane.kubectl("get", "infsvc", "-n", namespace, "-o", "wide").splitlines()
    assert wide[0].split() == ["NAME", "READY", "MODEL", "REPLICAS", "GPUS", "AGE", "ENGINE", "URL", "REASON"]
    selected = control_plane.kubectl(
        "get", "infsvc", "-n", namespace, "--field-selector=spec.engine.name=llama.cpp", "-o", "name"
    )
    assert selected.split() == [f"inferenceservice.{GROUP}/small"]
