"""What a person reads who wrote something wrong: the field, what is wrong, what would be right. Never a traceback."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from stoker.api import Fault, InferenceService, parse_inference_service
from stoker.api.base import ApiModel
from stoker.api.cel import Rule
from stoker.api.embedded_rules import RULES as EMBEDDED_RULES
from stoker.api.embedded_rules import by_message
from stoker.api.faults import in_one_line, join
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.api.parse import MAX_FAULTS
from stoker.api.remainder import MAX_FIELDS
from tests.builders.api_cases import BAD, GOOD
from tests.builders.pod_cases import Bad
from tests.builders.specs import SpecBuilder, a_spec


def _faults(raw: object) -> list[Fault]:
    parsed = parse_inference_service(raw)
    return [] if isinstance(parsed, InferenceService) else parsed


def _models(model: type[BaseModel]) -> Iterator[type[ApiModel]]:
    """Yield every model below `model`, itself included."""
    if issubclass(model, ApiModel):
        yield model
    pending = [info.annotation for info in model.model_fields.values()]
    while pending:
        part = pending.pop()
        if isinstance(part, type) and issubclass(part, BaseModel):
            yield from _models(part)
        pending += list(getattr(part, "__args__", ()))


RULES: list[Rule] = [
    *(rule for model in dict.fromkeys(_models(InferenceServiceSpec)) for rule in model.RULES),
    *(rule for rules in EMBEDDED_RULES.values() for rule in rules),
]


def test_two_rules_of_one_message_are_found_at_import() -> None:
    rule, other = RULES[0], replace(RULES[0], expression="true")
    assert by_message([rule, rule]) == {rule.message: rule}
    with pytest.raises(ValueError, match="two rules say"):
        by_message([rule, other])


@pytest.mark.parametrize("spec", GOOD.values(), ids=GOOD.keys())
def test_a_good_object_has_no_fault(spec: SpecBuilder) -> None:
    assert _faults(spec.manifest()) == []


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_a_bad_object_is_told_where_and_what_would_be_right(case: Bad) -> None:
    faults = _faults(case.spec.manifest())
    assert [fault for fault in faults if fault.path == case.path and case.says in str(fault)], faults


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_a_bad_object_gets_no_fault_beside_the_point(case: Bad) -> None:
    assert len(_faults(case.spec.manifest())) == 1


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.field}: {rule.problem}")
def test_every_rule_has_a_bad_object(rule: Rule) -> None:
    assert any(rule.message in str(fault) for case in BAD.values() for fault in _faults(case.spec.manifest()))


def test_N1_what_is_parsed_is_written_back_whole() -> None:
    for spec in GOOD.values():
        manifest = spec.manifest()
        parsed = parse_inference_service(manifest)
        assert isinstance(parsed, InferenceService)
        assert _as_read(parsed.spec.to_json()) == _as_read(_without_nulls({"replicas": 1, **manifest["spec"]}))


@pytest.mark.parametrize("value", [2, 2.0, "2"])
def test_a_whole_number_is_one_quantity_however_yaml_reads_it(value: object) -> None:
    """``2.0`` and ``1e9`` are numbers with a point to YAML; kubectl sends them without."""
    parsed = parse_inference_service(a_spec().set("resources.cpu", value).manifest())
    assert isinstance(parsed, InferenceService)
    assert parsed.spec.resources is not None
    assert parsed.spec.resources.cpu == "2"


def _as_read(value: Any) -> Any:
    """Return a document with its quantities as texts: an integer is read as the text of it."""
    if isinstance(value, dict):
        return {key: str(item) if _is_integer(key, item) else _as_read(item) for key, item in value.items()}
    return [_as_read(item) for item in value] if isinstance(value, list) else value


def _is_integer(key: str, value: object) -> bool:
    return key in {"cpu", "memory", "divisor"} and isinstance(value, int)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("raw", [None, 3, "text", [], [{}], True, {}, {1: 2}, {"spec": 1}, {"metadata": None}])
def test_anything_at_all_gets_faults_and_no_traceback(raw: object) -> None:
    assert _faults(raw)


@pytest.mark.parametrize("key", ["apiVersion", "kind", "metadata", "spec"])
def test_a_missing_part_is_named(key: str) -> None:
    manifest = a_spec().manifest()
    del manifest[key]
    assert [str(fault) for fault in _faults(manifest)] == [f"{key}: is missing; add it"]


def test_another_kind_is_refused() -> None:
    manifest = {**a_spec().manifest(), "apiVersion": "serving.kserve.io/v1beta1"}
    assert [fault.path for fault in _faults(manifest)] == ["apiVersion"]


def test_foreign_metadata_is_passed_over() -> None:
    manifest = a_spec().manifest()
    manifest["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    assert _faults(manifest) == []


def test_every_fault_is_told_at_once_sorted() -> None:
    spec = a_spec().tensor(0).set("context.maxLength", "x").set("pod.tolerations", [{"operator": "x", "effect": "y"}])
    assert [fault.path for fault in _faults(spec.manifest())] == [
        "spec.context.maxLength",
        "spec.parallelism.tensor",
        "spec.pod.tolerations[0].effect",
        "spec.pod.tolerations[0].operator",
    ]


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_a_malformed_field_hides_no_fault_that_does_not_depend_on_it(case: Bad) -> None:
    both = case.spec.set("rollout.strategy", "Slowly")
    alone, beside = _faults(case.spec.manifest()), _faults(both.manifest())
    assert beside == sorted([*alone, *_faults(a_spec().set("rollout.strategy", "Slowly").manifest())])


def test_a_rule_that_looks_at_a_malformed_field_waits_for_the_next_round() -> None:
    spec = a_spec().tensor(2).set("accelerator", "H100").set("engine.version", "0.11.0")
    assert [fault.path for fault in _faults(spec.manifest())] == ["spec.accelerator", "spec.engine.version"]
    spec = a_spec().set("pod.labels", {"-": "b c", "a": "b c"}).set("pod.annotations", {"-": ""})
    assert [fault.path for fault in _faults(spec.manifest())] == [
        "spec.pod.annotations", "spec.pod.labels.-", "spec.pod.labels.a"
    ]  # fmt: skip


def test_what_a_spec_cannot_be_without_hides_no_other_fault() -> None:
    spec = a_spec().on_cpu().tensor(2).model("nonsense").set("model.names", ["a", "a"]).set("pod.labels", {"-": ""})
    paths = ["spec.model.names", "spec.model.source", "spec.parallelism", "spec.pod.labels"]
    assert [fault.path for fault in _faults(spec.manifest())] == paths
    assert [fault.path for fault in _faults(spec.set("model", None).manifest())] == ["spec.model", *paths[2:]]
    without_engine = spec.set("model", None).set("engine", None).manifest()
    assert [fault.path for fault in _faults(without_engine)] == ["spec.engine", "spec.model", *paths[2:]]
    named_otherwise = spec.set("engine", {"name": "sglang", "version": "0.11.0"}).model("hf://a/b").manifest()
    assert [fault.path for fault in _faults(named_otherwise)] == ["spec.engine.name", paths[0], *paths[2:]]


def test_of_a_list_with_a_malformed_item_only_shapes_are_told() -> None:
    spec = a_spec().set("pod.env", [{"name": "A"}, {"name": "1"}]).set("parallelism", {"tensor": 8, "pipeline": 16})
    assert [fault.path for fault in _faults(spec.manifest())] == ["spec.parallelism.pipeline", "spec.pod.env[1].name"]


def test_the_number_of_faults_is_bounded() -> None:
    spec = a_spec().set("pod.env", [{"name": f"1{i}", "value": "x"} for i in range(64)])
    assert len(_faults(spec.manifest())) == 50


def test_few_faults_are_made_however_many_fields_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def counted(name: str, known: Iterable[str], path: str) -> Fault:
        made.append(name)
        return Fault(join(path, name), "is unknown", "remove it")

    monkeypatch.setattr("stoker.api.parse.unknown_field", counted)
    manifest = a_spec().manifest()
    manifest["spec"] |= {f"unknown{number}": 1 for number in range(100_000)}
    assert len(_faults(manifest)) == MAX_FAULTS
    assert MAX_FAULTS <= len(made) <= 2 * MAX_FAULTS


@pytest.mark.parametrize(("number", "is_told"), [(MAX_FIELDS, True), (MAX_FIELDS + 1, False), (10_000, False)])
def test_beside_very_many_malformed_fields_only_shapes_are_told(number: int, is_told: bool) -> None:
    manifest = a_spec().set("model.names", ["a", "a"]).manifest()
    manifest["spec"] |= {f"unknown{index}": 1 for index in range(number)}
    assert ("spec.model.names" in [fault.path for fault in _faults(manifest)]) is is_told


def test_what_lacks_something_once_a_malformed_part_is_gone_hides_no_fault() -> None:
    spec = a_spec().set("speculation", {"method": "ngram", "tokens": 0}).set("model.names", ["a", "a"])
    assert [fault.path for fault in _faults(spec.manifest())] == ["spec.model.names", "spec.speculation.tokens"]


def test_a_document_of_any_depth_gets_a_fault() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    for raw in (deep, {"spec": deep}, {**a_spec().manifest(), "spec": {"context": {"a": deep}}}):
        faults = _faults(raw)
        assert len(faults) == 1
        assert "nested" in str(faults[0]) or "is a list" in str(faults[0])
    wide: dict[str, Any] = {str(number): {} for number in range(100_000)}
    assert _faults({**a_spec().manifest(), "spec": wide})


def test_a_huge_value_is_shown_in_part() -> None:
    faults = _faults(a_spec().model("x" * 100_000).manifest())
    assert len(str(faults[0])) < 300


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
FIELDS = [info.alias or name for name, info in InferenceServiceSpec.model_fields.items()]


@settings(deadline=None)
@given(st.sampled_from(FIELDS), JSON)
def test_no_value_of_any_field_raises(field: str, value: object) -> None:
    manifest = a_spec().manifest()
    manifest["spec"][field] = value
    for fault in _faults(manifest):
        assert fault.path.startswith("spec")
        assert fault.problem
        assert fault.remedy


def test_join_writes_indices_as_people_do() -> None:
    assert join("spec", "pod", "env", 2, "name") == "spec.pod.env[2].name"
    assert join("", "spec") == "spec"


def test_faults_in_one_line_stay_within_bytes_whatever_the_script() -> None:
    faults = [Fault("spec.a", "ü" * 700, "right")] * 3
    line = in_one_line(faults, 1024)
    assert len(line.encode()) <= 1024
    assert line.endswith("...")
    assert in_one_line([Fault("a", "b", "c"), Fault("d", "e", "f")]) == "a: b; c | d: e; f"
