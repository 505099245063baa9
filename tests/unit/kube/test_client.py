"""How bodies are written."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from stoker.kube.client import canonical_json


def test_bodies_are_written_as_the_api_server_writes_them() -> None:
    body = {"b": [1, "x"], "a": "<&>", "é": "\u2028", "c": {"z": None, "y": True}}
    assert canonical_json(body) == (
        b'{"a":"\\u003c\\u0026\\u003e","b":[1,"x"],"c":{"y":true,"z":null},"\xc3\xa9":"\\u2028"}'
    )


TEXT = st.text(st.characters(exclude_categories=["Cs"]))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_N11_what_is_written_reads_as_it_was(value: object) -> None:
    assert json.loads(canonical_json(value)) == value
