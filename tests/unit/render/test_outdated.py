"""The difference between a stored template and today's, in words."""

from copy import deepcopy
from typing import Any

import pytest

from stoker.render.outdated import MAX_LINES, outdated
from tests.builders.layouts import a_layout, an_invocation
from tests.builders.templates import template


def test_N6_equal_templates_differ_in_nothing() -> None:
    assert outdated(template(), template()) == ()


def test_N6_the_revisions_own_label_is_no_difference() -> None:
    today = template()
    today["metadata"]["labels"]["serving.stoker.dev/revision"] = "another"
    assert outdated(template(), today) == ()


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("m", "--a", "1", "--b", "2"), ()),
        (("m", "--a", "1", "--b", "2", "--new", "3"), ("--new added",)),
        (("m", "--a", "1"), ("--b removed",)),
        (("m", "--a", "7", "--b", "2"), ("--a changed",)),
        (("other", "--a", "1", "--b", "2"), ("the model changed",)),
        (("m", "--b", "2", "--a", "1"), ("order changed",)),
        (("m", "--a", "1", "--b=3", "--c"), ("--c added", "--b changed")),
    ],
)
def test_a_changed_argument_is_named(args: tuple[str, ...], expected: tuple[str, ...]) -> None:
    stored = template(invocation=an_invocation("m", "--a", "1", "--b", "2"))
    found = outdated(stored, template(invocation=an_invocation(*args)))
    assert found == tuple(f"containers[engine].args: {change}" for change in expected)


def test_images_and_resources_are_shown() -> None:
    today = template(invocation=an_invocation(image="example.com/engine:2"), layout=a_layout(2))
    found = outdated(template(), today)
    assert "containers[engine].image: example.com/engine:1 -> example.com/engine:2" in found
    assert "containers[engine].resources.limits.nvidia.com/gpu: 1 -> 2" in found


def test_values_of_variables_are_not_shown() -> None:
    today = deepcopy(template())
    today["spec"]["containers"][0]["env"][0]["value"] = "hunter2"
    assert outdated(template(), today) == ("containers[engine].env[HOME].value: changed",)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda spec: spec["containers"][0]["env"].append({"name": "X", "value": "1"}),
            "containers[engine].env[X]: added",
        ),
        (lambda spec: spec["volumes"].pop(), "volumes[stoker-shm]: removed"),
        (lambda spec: spec["containers"][0]["volumeMounts"].pop(0), "containers[engine].volumeMounts[/cache]: removed"),
        (lambda spec: spec.pop("enableServiceLinks"), "enableServiceLinks: removed"),
        (lambda spec: spec["tolerations"].append({}), "tolerations: changed"),
    ],
)
def test_every_other_difference_is_named_by_its_path(change: Any, expected: str) -> None:
    today = deepcopy(template())
    change(today["spec"])
    assert outdated(template(), today) == (expected,)


def test_the_list_is_bounded() -> None:
    many = [word for number in range(100) for word in (f"--flag-{number}", "1")]
    found = outdated(template(), template(invocation=an_invocation("a/model", *many)))
    assert len(found) == MAX_LINES
    assert found[-1] == f"and {101 - (MAX_LINES - 1)} more"
