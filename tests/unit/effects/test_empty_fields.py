"""N6: a field that is written and empty rolls nothing where it asks for nothing, and is heard where it does."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from stoker.render.pod_inputs import NOT_OF_PODS, pod_inputs
from tests.builders.schema import ENTRY, ITEM, KEY, Schema, Steps, at, children, dotted, sample, spec_schema
from tests.builders.specs import H100, SpecBuilder, a_spec
from tests.unit.reconcile.support import a_life, revision_of

SPEC = spec_schema()
BASES = (a_spec().on(H100), a_spec().llama_cpp().on_cpu())
REFUSED = {
    "model.facts",
    "pod.env[].valueFrom",
    "pod.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[].preference",
    "pod.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[].preference.matchFields[].values",
    "pod.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[].matchFields[].values",
    "pod.volumes[].configMap",
    "pod.volumes[].downwardAPI",
    "pod.volumes[].emptyDir",
    "pod.volumes[].ephemeral",
    "pod.volumes[].ephemeral.volumeClaimTemplate.spec",
    "pod.volumes[].ephemeral.volumeClaimTemplate.spec.resources.requests",
    "pod.volumes[].image",
    "pod.volumes[].projected",
    "pod.volumes[].secret",
}
"""Fields that are refused empty or refused absent: there are no two pods to compare."""


def fields(schema: Schema, path: Steps = ()) -> Iterator[Steps]:
    """Every list and every object of the schema that may be empty, and that concerns pods."""
    for step, inner in children(schema):
        if not path and step in NOT_OF_PODS:
            continue
        below = (*path, step)
        may_be_empty = not (inner.get("minItems") or inner.get("minProperties") or inner.get("required"))
        if inner.get("type") in {"array", "object"} and may_be_empty and step not in {ITEM, ENTRY}:
            yield below
        yield from fields(inner, below)


def with_and_without(base: SpecBuilder, path: Steps) -> tuple[SpecBuilder, SpecBuilder]:
    """Return a spec in which a field is empty, and the same spec without that field."""
    empty: object = [] if at(SPEC, path)["type"] == "array" else {}
    written = merged(base.raw(), sample(SPEC, path, empty))
    for volume in written.get("pod", {}).get("volumes", ()):
        volume |= {"name": "vol", "mountPath": "/at"}
    return SpecBuilder(written), SpecBuilder(without(written, path))


def merged(base: Any, sampled: Any) -> Any:
    """Return the sample in the base; what the base says wins, since the sample's other values are any."""
    if not isinstance(base, dict) or not isinstance(sampled, dict):
        return base
    more = {key: value for key, value in sampled.items() if key not in base}
    return {key: merged(value, sampled.get(key, value)) for key, value in base.items()} | more


def without(value: Any, path: Steps) -> Any:
    step, rest = path[0], path[1:]
    if step == ITEM:
        return [without(item, rest) for item in value]
    key = KEY if step == ENTRY else step
    if not rest:
        return {other: item for other, item in value.items() if other != key}
    return {**value, key: without(value[key], rest)}


def pods(spec: SpecBuilder) -> Any:
    """Return the pods that a spec asks for as Kubernetes stores them, without their revision's name."""
    life = a_life(spec)
    life.reconcile()
    if ("Deployment", "chat") not in life.bodies:
        return None
    template = life.template()
    labels = {**template["metadata"]["labels"], "serving.stoker.dev/revision": ""}
    return stored({**template, "metadata": {**template["metadata"], "labels": labels}})


def stored(value: Any) -> Any:
    """Return a value as Kubernetes keeps it: an empty list is none."""
    if isinstance(value, Mapping):
        return {key: stored(below) for key, below in value.items() if below != []}
    return [stored(below) for below in value] if isinstance(value, list) else value


def bases(path: Steps) -> list[tuple[SpecBuilder, SpecBuilder]]:
    """Return the specs to compare: one of each base that says nothing about the field."""
    found = [(base, *with_and_without(base, path)) for base in BASES]
    return [(written, absent) for base, written, absent in found if written.raw() != base.raw()]


@pytest.mark.parametrize("path", [path for path in fields(SPEC) if dotted(path) not in REFUSED], ids=dotted)
def test_N6_an_empty_field_is_another_input_where_it_makes_other_pods(path: Steps) -> None:
    made = [(pods(written), pods(absent)) for written, absent in bases(path)]
    assert made and None not in [pod for pair in made for pod in pair]
    for written, absent in bases(path):
        is_heard = pod_inputs(written.raw()) != pod_inputs(absent.raw())
        assert is_heard is any(one != other for one, other in made)


@pytest.mark.parametrize("path", [path for path in fields(SPEC) if dotted(path) in REFUSED], ids=dotted)
def test_a_field_that_is_not_compared_is_refused(path: Steps) -> None:
    assert all(pods(written) is None or pods(absent) is None for written, absent in bases(path))


@pytest.mark.parametrize(
    ("path", "empty"), [("engine.args", []), ("pod", {}), ("pod.env", []), ("pod.nodeSelector", {}), ("warmup", {})]
)
def test_N6_an_empty_field_rolls_nothing(path: str, empty: object) -> None:
    life = a_life()
    life.reconcile()
    before = revision_of(life)
    assert life.set(path, empty).reconcile().create_revision is None
    assert revision_of(life) == before
