"""One text for each JSON value, whatever made it."""

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.render.canonical import canonical, digest, short_digest

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def _reversed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in reversed(list(value))}
    return [_reversed(item) for item in value] if isinstance(value, list) else value


@given(json_values)
def test_the_order_of_keys_does_not_count(value: Any) -> None:
    assert digest(value) == digest(_reversed(value))


@given(json_values)
def test_the_text_is_json_for_the_same_value(value: Any) -> None:
    assert json.loads(canonical(value)) == value


@given(json_values, json_values)
def test_values_that_differ_have_digests_that_differ(one: Any, other: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (digest(one) == digest(other)) == same


@pytest.mark.parametrize(
    "value",
    [0.5, -1e30, [1.0], [1, -2.5], {"a": 1e-7}, {"a": float("nan")}, float("inf"), [float("-inf")], object(), b"x"],
)
def test_floats_and_what_is_no_json_are_refused(value: object) -> None:
    with pytest.raises(TypeError):
        canonical(value)


def test_text_that_looks_like_a_float_is_text() -> None:
    for text in ('{"a":1.5}', ",0.5", "[NaN", "1.5", ":-Infinity"):
        assert json.loads(canonical({"a": text, text: [text]})) == {"a": text, text: [text]}


@given(json_values, st.floats())
def test_no_float_goes_unseen(value: Any, number: float) -> None:
    for hidden in (number, [value, number], {"a": value, "b": {"c": [number]}}):
        with pytest.raises(TypeError):
            canonical(hidden)


def test_a_tuple_counts_as_a_list() -> None:
    assert digest({"a": (1, 2)}) == digest({"a": [1, 2]})


def test_the_digest_is_the_same_in_every_process() -> None:
    program = "from stoker.render.canonical import digest; print(digest({'b': {'x', }.pop(), 'a': [1, None, 'ü']}))"
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONPATH": "operator", "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout.strip()
        for seed in ("0", "1", "2")
    }
    assert found == {digest({"a": [1, None, "ü"], "b": "x"})}


def test_a_short_digest_is_the_beginning_of_the_digest() -> None:
    assert digest([1]).startswith(short_digest([1]))
    assert len(short_digest([1])) == 10
