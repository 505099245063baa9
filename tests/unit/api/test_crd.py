"""The schema that the API server gets: whole, bounded, without defaults, equal to what is committed."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from clusters.documents import load
from stoker import __version__
from stoker.api.crd import VERSION_LABEL, SchemaGap, inference_service_crd, object_schema, schema_gap
from stoker.api.quantities import INT_OR_STRING
from stoker.api.references import EFFECT_KEY, Effect
from stoker.api.types import (
    EXAMPLES,
    FILE_FIELD_PATTERN,
    FILE_PATH_PATTERN,
    FRACTION_PATTERN,
    IMAGE_PATTERN,
    LABEL_KEY_PATTERN,
    LABEL_VALUE_PATTERN,
    OPTIONAL_KEY_PATTERN,
    RESOURCE_FIELD_PATTERN,
    SOURCE_PATTERN,
)
from tools.generate import CHART_CRD, CRD, generators, stale

ROOT = Path(__file__).parents[3]
SIZE_LIMIT = 256 * 1024


def _version() -> Mapping[str, Any]:
    version: Mapping[str, Any] = inference_service_crd()["spec"]["versions"][0]
    return version


def _schema() -> Mapping[str, Any]:
    schema: Mapping[str, Any] = _version()["schema"]["openAPIV3Schema"]
    return schema


def _walk(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from _walk(part, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from _walk(schema[key], f"{path}[]")


NODES = dict(_walk(_schema()))


@pytest.mark.parametrize("path", generators())
def test_what_is_committed_is_what_the_models_give(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == generators()[path](), "run `make generate`"


def test_a_stale_file_is_found(tmp_path: Path) -> None:
    for path, make in generators().items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(make(), encoding="utf-8")
    assert stale(tmp_path) == []
    (tmp_path / "docs/api.md").write_text("old", encoding="utf-8")
    assert stale(tmp_path) == ["docs/api.md"]


def _bounded(node: Mapping[str, Any]) -> bool:
    if node.get(INT_OR_STRING):
        return bool(node["maxLength"] <= 64) and "type" not in node
    match node["type"]:
        case "string":
            return "enum" in node or "maxLength" in node or node.get("format") == "date-time"
        case "array":
            return bool(node["maxItems"] <= 64)
        case "integer":
            return node["format"] in {"int32", "int64"} and node["minimum"] <= node["maximum"]
        case "object":
            return "additionalProperties" not in node or node["maxProperties"] <= 32
    return bool(node["type"] == "boolean")


def test_everything_has_a_bound() -> None:
    assert len(NODES) > 300
    assert [path for path, node in NODES.items() if not _bounded(node)] == []


def test_the_schema_is_structural() -> None:
    allowed = {
        "type", "description", "properties", "required", "items", "additionalProperties", "enum", "pattern", "format",
        "maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minimum", "maximum", "default",
        "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-validations",
        INT_OR_STRING,
    }  # fmt: skip
    for path, node in NODES.items():
        assert set(node) <= allowed, path
        assert node.get("additionalProperties", {}) is not False, path
        assert set(node.get("required", ())) <= set(node.get("properties", {})), path


def test_people_are_told_what_would_be_right_in_place_of_a_pattern() -> None:
    shown = {node["pattern"] for path, node in NODES.items()
             if path.startswith(".spec") and "pattern" in node and INT_OR_STRING not in node}  # fmt: skip
    assert shown == {
        FILE_FIELD_PATTERN,
        FILE_PATH_PATTERN,
        LABEL_KEY_PATTERN,
        LABEL_VALUE_PATTERN,
        RESOURCE_FIELD_PATTERN,
    }
    shown_at = [path for path, node in NODES.items()
                if path.startswith(".spec") and "pattern" in node and INT_OR_STRING not in node]  # fmt: skip
    assert [path for path in shown_at if path.count("[]") + path.count("matchExpressions") < 2] == []
    messages = {path: [rule["message"] for rule in NODES[path]["x-kubernetes-validations"]] for path in WORDED}
    assert messages == {path: [f"is malformed; {EXAMPLES[pattern]}"] for path, pattern in WORDED.items()}


WORDED = {
    ".spec.model.source": SOURCE_PATTERN,
    ".spec.engine.image": IMAGE_PATTERN,
    ".spec.accelerator.memoryFraction": FRACTION_PATTERN,
    ".spec.accelerator.products[]": LABEL_VALUE_PATTERN,
    ".spec.pod.labels[]": LABEL_VALUE_PATTERN,
    ".spec.pod.nodeSelector[]": LABEL_VALUE_PATTERN,
    ".spec.pod.tolerations[].key": OPTIONAL_KEY_PATTERN,
    ".spec.pod.tolerations[].value": LABEL_VALUE_PATTERN,
    ".spec.pod.env[].valueFrom.resourceFieldRef.resource": RESOURCE_FIELD_PATTERN,
}
"""Some of the fields that people often write wrong."""


def test_N3_replicas_is_the_only_default_of_the_spec() -> None:
    defaults = {path: node["default"] for path, node in NODES.items() if "default" in node}
    assert defaults == {".spec.replicas": 1, ".status": {"observedGeneration": -1}}


def test_every_field_is_described() -> None:
    """Those of Kubernetes' own types too: ``kubectl explain`` shows nothing else of them."""
    fields = [path for path in NODES if path and not path.endswith("[]") and path != ".metadata"]
    assert len(fields) > 350
    assert [path for path in fields if not NODES[path].get("description")] == []


def test_lists_of_objects_with_a_name_of_their_own_are_maps() -> None:
    maps = {path: node["x-kubernetes-list-map-keys"] for path, node in NODES.items()
            if node.get("x-kubernetes-list-type") == "map"}  # fmt: skip
    assert maps == {
        ".spec.pod.env": ["name"],
        ".spec.pod.imagePullSecrets": ["name"],
        ".spec.pod.volumes": ["name"],
        ".status.conditions": ["type"],
        ".status.layout.origins": ["name"],
    }
    for path, keys in maps.items():
        assert set(keys) <= set(NODES[f"{path}[]"]["required"])


@pytest.mark.parametrize(
    ("path", "rule"),
    [(path, rule) for path, node in NODES.items() for rule in node.get("x-kubernetes-validations", ())],
)
def test_every_rule_names_a_field_that_exists_and_a_way_out(path: str, rule: Mapping[str, str]) -> None:
    assert path + rule.get("fieldPath", "") in NODES
    assert "; " in rule["message"]
    assert len(rule["message"]) <= 2048


def test_a_rule_over_the_whole_spec_spares_an_object_that_broke_it_before() -> None:
    """Any change of the spec, of replicas too, has the API server look at it again."""
    rules = NODES[".spec"]["x-kubernetes-validations"]
    assert [rule["optionalOldSelf"] for rule in rules] == [True] * len(rules)
    for rule in rules:
        now, before = rule["rule"].split(" || (oldSelf.hasValue() && ")
        same = before == "!" + now.replace("self.", "oldSelf.value().") + ")"
        assert same or set(re.findall(r"self[.](\w+)", now)) == set(re.findall(r"== self[.](\w+)", before))


def test_the_crd_is_small_enough_for_kubectl_apply() -> None:
    assert (ROOT / "crds/serving.stoker.dev_inferenceservices.yaml").stat().st_size < SIZE_LIMIT


def test_the_charts_copy_differs_by_one_annotation() -> None:
    copy = load((ROOT / "charts/stoker/templates/crds.yaml").read_text(encoding="utf-8"))
    assert copy["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert copy == load((ROOT / "crds/serving.stoker.dev_inferenceservices.yaml").read_text(encoding="utf-8"))


def test_N19_every_reference_declares_its_effect() -> None:
    effects = {path: node[EFFECT_KEY] for path, node in _walk(object_schema()) if EFFECT_KEY in node}
    volume = ".spec.pod.volumes[]."
    assert effects == {
        ".spec.model.credentialsSecret": Effect.NEXT_START,
        ".spec.model.facts.configMapName": Effect.OUTDATED,
        ".spec.pod.env[].valueFrom.secretKeyRef.name": Effect.NEW_REVISION,
        ".spec.pod.env[].valueFrom.configMapKeyRef.name": Effect.NEW_REVISION,
        ".spec.pod.imagePullSecrets[].name": Effect.NEXT_START,
        volume + "configMap": Effect.IN_PLACE,
        volume + "secret": Effect.IN_PLACE,
        volume + "projected": Effect.IN_PLACE,
        volume + "persistentVolumeClaim": Effect.IN_PLACE,
    }
    reference = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    for path, effect in effects.items():
        assert f"| `{path[1:]}` |" in reference
        assert effect in reference
        assert effect in NODES[path]["description"]


def test_columns_are_those_that_people_look_for() -> None:
    columns = _version()["additionalPrinterColumns"]
    assert [c["name"].upper() for c in columns if not c.get("priority")] == [
        "READY",
        "MODEL",
        "REPLICAS",
        "GPUS",
        "AGE",
    ]
    assert [c["name"].upper() for c in columns if c.get("priority") == 1] == ["ENGINE", "URL", "REASON"]


def _served() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the committed CRD, and its spec's fields."""
    crd = load((ROOT / "crds/serving.stoker.dev_inferenceservices.yaml").read_text(encoding="utf-8"))
    spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    return crd, spec


@pytest.mark.parametrize("path", [CRD, CHART_CRD])
def test_the_crd_names_the_version_that_it_was_made_by(path: str) -> None:
    crd = load((ROOT / path).read_text(encoding="utf-8"))
    assert crd["metadata"]["labels"][VERSION_LABEL] == __version__


def test_a_served_schema_that_lacks_a_field_is_outdated() -> None:
    crd, spec = _served()
    assert schema_gap(crd) is None
    del spec["pod"]["properties"]["env"]["items"]["properties"]["value"]
    assert schema_gap(crd) == SchemaGap(field="spec.pod.env[].value")
    crd["spec"]["versions"][0]["name"] = "v1"
    assert schema_gap(crd) == SchemaGap(field="version v1alpha1")


def test_a_served_schema_that_lacks_a_rule_is_outdated() -> None:
    crd, spec = _served()
    rules = spec["engine"]["x-kubernetes-validations"]
    rules[0]["message"] = "in other words; do the same"
    assert schema_gap(crd) is None
    rules[0]["rule"] = "true"
    assert schema_gap(crd) == SchemaGap(check="a rule of spec.engine.version")
    del spec["engine"]["x-kubernetes-validations"]
    assert schema_gap(crd) == SchemaGap(check="a rule of spec.engine.version")


def _engine_name(spec: dict[str, Any]) -> Any:
    return spec["engine"]["properties"]["name"]


def _model_name(spec: dict[str, Any]) -> Any:
    return spec["model"]["properties"]["names"]["items"]


def _map_value(spec: dict[str, Any]) -> Any:
    return spec["pod"]["properties"]["annotations"]["additionalProperties"]


OLDER: Mapping[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "a choice fewer": ("a rule of spec.engine.name", lambda spec: _engine_name(spec)["enum"].pop()),
    "no choices": ("a rule of spec.engine.name", lambda spec: _engine_name(spec).pop("enum")),
    "no bound": ("a rule of spec.model.names[]", lambda spec: _model_name(spec).pop("maxLength")),
    "a lower bound": ("a rule of spec.model.names[]", lambda spec: _model_name(spec).update(maxLength=1)),
    "a lower maximum": ("a rule of spec.replicas", lambda spec: spec["replicas"].update(maximum=1)),
    "a bound that ours has not": ("a rule of spec.engine", lambda spec: spec["engine"].update(maxProperties=1)),
    "a field not required": ("a rule of spec.engine", lambda spec: spec["engine"].pop("required")),
    "another type": ("a rule of spec.replicas", lambda spec: spec["replicas"].update(type="string")),
    "no default": ("the default of spec.replicas", lambda spec: spec["replicas"].pop("default")),
    "another default": ("the default of spec.replicas", lambda spec: spec["replicas"].update(default=2)),
    "a bound of a map's values": ("a rule of spec.pod.annotations.*", lambda spec: _map_value(spec).pop("maxLength")),
}
"""What an older schema may have, with the check that it lacks."""


@pytest.mark.parametrize(("lacks", "make_older"), OLDER.values(), ids=OLDER.keys())
def test_a_served_schema_with_other_bounds_or_defaults_is_outdated(
    lacks: str, make_older: Callable[[dict[str, Any]], object]
) -> None:
    """They are compared by their values: a choice that a later version knows is refused by an older schema."""
    crd, spec = _served()
    make_older(spec)
    assert schema_gap(crd) == SchemaGap(check=lacks)


def test_a_served_schema_with_its_choices_in_another_order_is_the_same() -> None:
    crd, spec = _served()
    _engine_name(spec)["enum"].reverse()
    assert schema_gap(crd) is None


def test_of_a_served_schema_that_lacks_rules_and_fields_a_field_is_told() -> None:
    """Without a field, what is written is lost; without a rule, it is only judged later."""
    crd, spec = _served()
    del spec["engine"]["x-kubernetes-validations"]
    del spec["warmup"]
    found = schema_gap(crd)
    assert found == SchemaGap("spec.warmup", "a rule of spec.engine.version")
    assert str(found) == "spec.warmup"
    assert str(SchemaGap(check="a rule of spec.engine")) == "a rule of spec.engine"


@pytest.mark.parametrize("version", ["99.0.0", "v99.0.0", "99.0.0-rc.1"])
def test_N7_checks_of_a_newer_crd_are_not_called_outdated_and_missing_fields_are(version: str) -> None:
    """At an upgrade the CRD is the newer one for a while; the remedy, to upgrade it, would be wrong."""
    crd, spec = _served()
    crd["metadata"]["labels"][VERSION_LABEL] = version
    spec["engine"]["x-kubernetes-validations"][0]["rule"] = "true"
    spec["replicas"]["maximum"] = 1
    assert schema_gap(crd) is None
    del spec["warmup"]
    assert schema_gap(crd) == SchemaGap(field="spec.warmup")


@pytest.mark.parametrize("labels", [None, {}, *({VERSION_LABEL: it} for it in (__version__, "0.0.9", "main", "99"))])
def test_N7_checks_of_a_crd_that_is_not_known_to_be_newer_are_compared(labels: Mapping[str, str] | None) -> None:
    crd, spec = _served()
    crd["metadata"]["labels"] = labels
    spec["replicas"]["maximum"] = 1
    assert schema_gap(crd) == SchemaGap(check="a rule of spec.replicas")


def test_N7_versions_are_compared_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.api.crd.__version__", "0.9.0")
    crd, spec = _served()
    crd["metadata"]["labels"][VERSION_LABEL] = "0.10.0"
    spec["replicas"]["maximum"] = 1
    assert schema_gap(crd) is None
