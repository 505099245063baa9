"""N6: another spelling of what Kubernetes stores as one value rolls nothing."""

from collections.abc import Iterator
from typing import Any

import pytest

from stoker.api.quantities import INT_OR_STRING
from stoker.render.pod_inputs import MEANS_ABSENT, QUANTITIES, of_pods, pod_inputs
from stoker.render.revision import RevisionInputs
from tests.builders.schema import Schema, Steps, children, spec_schema
from tests.builders.specs import SpecBuilder, a_spec
from tests.unit.reconcile.support import a_life, revision_of

FILE = {"path": "f", "resourceFieldRef": {"containerName": "engine", "resource": "limits.memory"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def _volume(**source: object) -> SpecBuilder:
    return a_spec().set("pod.volumes", [{"name": "v", "mountPath": "/v", **source}])


def _file(divisor: object) -> dict[str, Any]:
    return {"items": [{**FILE, "resourceFieldRef": {**FILE["resourceFieldRef"], "divisor": divisor}}]}  # type: ignore[dict-item]


def _claim(kind: str, size: object) -> SpecBuilder:
    spec = {**CLAIM, "resources": {**CLAIM["resources"], kind: {"storage": size}}}  # type: ignore[dict-item]
    return _volume(ephemeral={"volumeClaimTemplate": {"spec": spec}})


def _variable(**source: object) -> SpecBuilder:
    return a_spec().set("pod.env", [{"name": "A", "valueFrom": source}])


def _tolerates(**more: object) -> SpecBuilder:
    return a_spec().set("pod.tolerations", [{"operator": "Exists", **more}])


def _divisor(value: object) -> SpecBuilder:
    return _variable(resourceFieldRef={"resource": "limits.memory", "divisor": value})


FIELD = {"fieldPath": "metadata.name"}
OF_FIELD = {"path": "f", "fieldRef": FIELD}
OF_V1 = {"path": "f", "fieldRef": {**FIELD, "apiVersion": "v1"}}

SAME = {
    "accelerator.memory": (a_spec().on(memory="80Gi"), a_spec().on(memory="81920Mi")),
    "resources.cpu": (a_spec().set("resources.cpu", 2), a_spec().set("resources.cpu", "2000m")),
    "resources.memory": (a_spec().set("resources.memory", "64Gi"), a_spec().set("resources.memory", 2**36)),
    "pod.env[].valueFrom.resourceFieldRef.divisor": (_divisor(1), _divisor("1")),
    "pod.volumes[].emptyDir.sizeLimit": (_volume(emptyDir={"sizeLimit": "1e9"}), _volume(emptyDir={"sizeLimit": "1G"})),
    "pod.volumes[].ephemeral.volumeClaimTemplate.spec.resources.limits.{}": (
        _claim("limits", "1Gi"), _claim("limits", "1024Mi")
    ),
    "pod.volumes[].ephemeral.volumeClaimTemplate.spec.resources.requests.{}": (
        _claim("requests", 1024), _claim("requests", "1Ki")
    ),
    "pod.volumes[].downwardAPI.items[].resourceFieldRef.divisor": (
        _volume(downwardAPI=_file("1Mi")), _volume(downwardAPI=_file("1024Ki"))
    ),
    "pod.volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef.divisor": (
        _volume(projected={"sources": [{"downwardAPI": _file("1k")}]}),
        _volume(projected={"sources": [{"downwardAPI": _file("1000")}]}),
    ),
}  # fmt: skip
"""Two spellings of one quantity, by its path."""

ABSENT = {
    "pod.env[].valueFrom.resourceFieldRef.divisor": (
        _variable(resourceFieldRef={"resource": "limits.memory"}), _divisor("0Mi")
    ),
    "pod.volumes[].hostPath.type": (_volume(hostPath={"path": "/a"}), _volume(hostPath={"path": "/a", "type": ""})),
    "pod.volumes[].nfs.readOnly": (
        _volume(nfs={"server": "s", "path": "/a"}), _volume(nfs={"server": "s", "path": "/a", "readOnly": False})
    ),
    "pod.volumes[].persistentVolumeClaim.readOnly": (
        _volume(persistentVolumeClaim={"claimName": "c"}),
        _volume(persistentVolumeClaim={"claimName": "c", "readOnly": False}),
    ),
    "pod.volumes[].downwardAPI.items[].resourceFieldRef.divisor": (
        _volume(downwardAPI={"items": [FILE]}), _volume(downwardAPI=_file(0))
    ),
    "pod.volumes[].projected.sources[].downwardAPI.items[].resourceFieldRef.divisor": (
        _volume(projected={"sources": [{"downwardAPI": {"items": [FILE]}}]}),
        _volume(projected={"sources": [{"downwardAPI": _file("0")}]}),
    ),
    "pod.tolerations[].key": (_tolerates(), _tolerates(key="")),
    "pod.tolerations[].value": (_tolerates(), _tolerates(value="")),
    "pod.tolerations[].effect": (_tolerates(), _tolerates(effect="")),
    "pod.tolerations[].operator": (
        a_spec().set("pod.tolerations", [{"key": "a"}]), a_spec().set("pod.tolerations", [{"key": "a", "operator": ""}])
    ),
    "pod.volumes[].emptyDir.medium": (_volume(emptyDir={}), _volume(emptyDir={"medium": ""})),
    "pod.env[].valueFrom.fieldRef.apiVersion": (
        _variable(fieldRef=FIELD), _variable(fieldRef={**FIELD, "apiVersion": "v1"})
    ),
    "pod.volumes[].downwardAPI.items[].fieldRef.apiVersion": (
        _volume(downwardAPI={"items": [OF_FIELD]}), _volume(downwardAPI={"items": [OF_V1]})
    ),
    "pod.volumes[].projected.sources[].downwardAPI.items[].fieldRef.apiVersion": (
        _volume(projected={"sources": [{"downwardAPI": {"items": [OF_FIELD]}}]}),
        _volume(projected={"sources": [{"downwardAPI": {"items": [OF_V1]}}]}),
    ),
}  # fmt: skip
"""A field that is absent and one that says the same, by its path."""

PAIRS = [*SAME.values(), *ABSENT.values()]
PATHS = [*SAME, *(f"{path}, absent" for path in ABSENT)]


def _quantities(schema: Schema, path: Steps = ()) -> Iterator[Steps]:
    if schema.get(INT_OR_STRING):
        yield path
    for step, inner in children(schema):
        yield from _quantities(inner, (*path, step))


def test_every_quantity_has_a_normal_form() -> None:
    assert sorted(QUANTITIES) == sorted(".".join(path).replace(".[]", "[]") for path in _quantities(spec_schema()))
    assert set(SAME) == set(QUANTITIES)
    assert set(ABSENT) == set(MEANS_ABSENT)


@pytest.mark.parametrize("pair", PAIRS, ids=PATHS)
def test_N6_another_spelling_is_the_same_input(pair: tuple[SpecBuilder, SpecBuilder]) -> None:
    one, other = (spec.raw() for spec in pair)
    assert one != other
    assert of_pods(one) == of_pods(other)


@pytest.mark.parametrize("pair", PAIRS, ids=PATHS)
def test_N6_a_revision_keeps_the_spelling_so_that_an_earlier_operator_knows_it(
    pair: tuple[SpecBuilder, SpecBuilder],
) -> None:
    """One from before the normal forms compares what is stored with what is written: a rollback rolls nothing."""
    for spec in pair:
        assert pod_inputs(spec.raw()) == {field: spec.raw()[field] for field in spec.raw() if field != "replicas"}


@pytest.mark.parametrize("pair", PAIRS, ids=PATHS)
def test_N6_a_revision_stored_in_another_spelling_is_read_through_the_normal_form(
    pair: tuple[SpecBuilder, SpecBuilder],
) -> None:
    one, other = (RevisionInputs(spec.raw(), {}, None) for spec in pair)
    assert one.hash == other.hash


@pytest.mark.parametrize("pair", PAIRS, ids=PATHS)
def test_N6_another_spelling_rolls_nothing(pair: tuple[SpecBuilder, SpecBuilder]) -> None:
    one, other = pair
    life = a_life(one)
    life.reconcile()
    before = revision_of(life)
    section = next(field for field, value in other.raw().items() if value != one.raw().get(field))
    assert life.set(section, other.raw()[section]).reconcile().create_revision is None
    assert revision_of(life) == before


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [("resources.cpu", 2, "2k"), ("resources.memory", "1Gi", "1G"), ("context.maxLength", 1, 2)],
)
def test_another_value_is_another_input(path: str, one: object, other: object) -> None:
    assert of_pods(a_spec().set(path, one).raw()) != of_pods(a_spec().set(path, other).raw())


def test_what_is_no_quantity_is_left_as_it_is() -> None:
    for value in ("lots", "", True, None, [1]):
        spec = {"resources": {"memory": value}}
        assert of_pods(spec) == ({"resources": {"memory": value}} if value is not None else {})
