"""N1: no field is accepted and ignored.

Every leaf of the schema has a row: two values of it, and what differs between the two: a path in a child, or a
decision. The table is read against the schema: a field without a row fails. What a revision repeats of its inputs, its
own name and the status are no effect.
"""

from dataclasses import replace
from typing import Any

import pytest

from tests.builders.schema import ENTRY, ITEM, KEY, Steps, at, dotted, leaves, sample, spec_schema, two_values
from tests.builders.specs import a_spec
from tests.unit.effects.table import EMBEDDED, ENGINE, GPU, ROWS, Row, find, in_child, refused

SPEC = spec_schema()
ALL = {dotted(path): path for path in leaves(SPEC)}


def embedded_prefix(name: str) -> str | None:
    """The prefix of the embedded objects that a field lies in."""
    return max((prefix for prefix in EMBEDDED if name.startswith(prefix)), key=len, default=None)


PASSED_ON = sorted(name for name in ALL if name not in ROWS and embedded_prefix(name))


def test_N1_every_field_of_the_schema_has_a_row() -> None:
    assert len(ALL) > 200
    assert sorted(ALL.keys() - ROWS.keys() - set(PASSED_ON)) == []


def test_N1_every_row_is_a_field_of_the_schema() -> None:
    assert sorted(ROWS.keys() - ALL.keys()) == []
    assert all(any(name.startswith(prefix) for name in ALL) for prefix in EMBEDDED)


@pytest.mark.parametrize("name", ROWS)
def test_N1_a_change_of_the_field_has_its_effect(name: str) -> None:
    row = ROWS[name]
    row.before.build()
    if row.check is not refused:
        row.after.build()
    row.check(row)


@pytest.mark.parametrize("name", PASSED_ON)
def test_N1_a_field_of_kubernetes_arrives_as_it_was_written(name: str) -> None:
    prefix = embedded_prefix(name)
    assert prefix is not None
    values = two_values(at(SPEC, ALL[name]), name)
    found = []
    for value in values:
        decision = Row(GPU, GPU, in_child).decide(GPU.set("pod", _pod(ALL[name], value)))
        assert decision.apply, f"a sample with {name} is refused"
        found.append(find(decision, EMBEDDED[prefix]))
    assert found[0] != found[1] or len(set(values)) == 1
    below = ALL[name][len(prefix.replace("[]", ".[]").split(".")) :]
    for value, arrived in zip(values, found, strict=True):
        if prefix not in ("pod.volumes[].name", "pod.volumes[].mountPath"):
            assert _below(arrived, below) == value


def _below(value: Any, path: Steps) -> Any:
    for step in path:
        value = value[0] if step == ITEM else value[KEY if step == ENTRY else step]
    return value


def _pod(path: Steps, value: object) -> dict[str, Any]:
    pod: dict[str, Any] = sample(at(SPEC, ("pod",)), path[1:], value)
    for volume in pod.get("volumes", ()):
        fixed = {"name": "vol", "mountPath": "/at"}
        volume |= {key: fixed[key] for key in fixed if path[3] != key}
        if path[3] == "mountPath":
            volume["mountPath"] = f"/{value}"
        if path[3] in {"name", "mountPath", "readOnly", "subPath"}:
            volume["emptyDir"] = {}
    return pod


def test_N1_an_accelerator_without_fields_is_an_effect_too() -> None:
    row = Row(a_spec().on_cpu("64Gi").max_length(2048), a_spec().on().max_length(2048), in_child, f"{ENGINE}.resources")
    in_child(replace(row))
