"""How bodies are written, and which are not sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.aio.client import Configuration

from stoker.kube.client import Client, canonical_json
from stoker.kube.resources import DEPLOYMENT


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


@pytest.mark.parametrize("uid", [{}, {"uid": ""}, {"uid": None}])
async def test_N22_an_apply_that_could_adopt_a_foreign_object_is_not_sent(
    monkeypatch: pytest.MonkeyPatch, uid: dict[str, Any]
) -> None:
    """Its callers set the uid; the API server would take an apply without one for whatever stands there."""
    sent: list[object] = []

    async def write(_: Client, call: object) -> dict[str, Any]:
        sent.append(call)
        return {}

    monkeypatch.setattr(Client, "_write", write)
    client = Client(Configuration())
    metadata = {"name": "chat", "namespace": "team-a"}
    await client.apply(DEPLOYMENT, "team-a", {"metadata": {**metadata, "uid": "ours"}}, "stoker")
    with pytest.raises(ValueError, match=r"metadata\.uid"):
        await client.apply(DEPLOYMENT, "team-a", {"metadata": {**metadata, **uid}}, "stoker")
    assert len(sent) == 1
    await client.close()
