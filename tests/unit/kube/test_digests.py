"""Digests of what variables take from Secrets and ConfigMaps (N19)."""

from __future__ import annotations

import base64
from typing import Any

from stoker.kube.references import salted_digest


def a_secret(**data: str) -> dict[str, Any]:
    return {"kind": "Secret", "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}}


def test_N19_the_digest_follows_the_content_of_the_named_keys_and_of_no_other() -> None:
    before = salted_digest(a_secret(a="1", b="2"), ("a",), "salt")
    assert salted_digest(a_secret(a="1", b="changed"), ("a",), "salt") == before
    assert salted_digest(a_secret(a="changed", b="2"), ("a",), "salt") != before


def test_N19_a_missing_key_differs_from_an_empty_one() -> None:
    assert salted_digest(a_secret(), ("a",), "s") != salted_digest(a_secret(a=""), ("a",), "s")


def test_content_cannot_move_from_one_key_to_the_next() -> None:
    assert salted_digest(a_secret(a="xb=1:y", b="z"), ("a", "b"), "s") != salted_digest(
        a_secret(a="x", b="yz"), ("a", "b"), "s"
    )


def test_N19_the_same_secret_of_two_services_has_two_digests() -> None:
    assert salted_digest(a_secret(a="1"), ("a",), "uid-1") != salted_digest(a_secret(a="1"), ("a",), "uid-2")


def test_a_digest_holds_nothing_of_the_secret() -> None:
    assert "hunter2" not in salted_digest(a_secret(a="hunter2"), ("a",), "s")


def test_a_config_map_is_read_as_text() -> None:
    plain = {"kind": "ConfigMap", "data": {"a": "MQ=="}}
    assert salted_digest(plain, ("a",), "s") != salted_digest(a_secret(a="1"), ("a",), "s")
