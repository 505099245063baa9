"""N15: derived names fit 63 characters for every legal name, are legal themselves, and do not collide."""

import re
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.render import names

DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
KEY = "0123456789"

_part = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
legal_names = st.lists(_part, min_size=1, max_size=6).map(".".join).filter(lambda name: len(name) <= 253)


def _revision_name(name: str) -> str:
    return names.revision_name(name, KEY)


DERIVED: Mapping[str, Callable[[str], str]] = {
    "Service": names.service_name,
    "Deployment": names.deployment_name,
    "PodDisruptionBudget": names.disruption_budget_name,
    "NetworkPolicy": names.network_policy_name,
    "ServiceAccount": names.service_account_name,
    "ControllerRevision": _revision_name,
}

HARD = [
    "a",
    "7b",
    "llama-3.1-8b",
    "a" * 63,
    "a" * 64,
    "x" + "-" * 61 + "y",
    "9" * 253,
    ".".join(["a" * 63] * 3 + ["b" * 61]),
    "default",
    "kubernetes",
    "vllm",
    "chat-h0123456789",
]


@pytest.mark.parametrize("kind", DERIVED)
@pytest.mark.parametrize("name", HARD)
def test_N15_hard_names_give_legal_children(kind: str, name: str) -> None:
    derived = DERIVED[kind](name)
    assert len(derived) <= 63
    assert DNS_1035.fullmatch(derived), derived


@given(legal_names)
def test_N15_every_legal_name_gives_legal_children(name: str) -> None:
    for derive in DERIVED.values():
        derived = derive(name)
        assert len(derived) <= 63
        assert DNS_1035.fullmatch(derived), derived


@given(legal_names, legal_names)
def test_N15_two_services_never_share_a_name(one: str, other: str) -> None:
    if one == other:
        return
    for derive in (*DERIVED.values(), names.label_value):
        assert derive(one) != derive(other)


@given(legal_names)
def test_N15_what_comes_out_is_no_other_services_own_name(name: str) -> None:
    """A service that is called like the marked name of another gets a name of its own."""
    for derive in (names.service_name, names.label_value):
        derived = derive(name)
        if derived != name:
            assert derive(derived) != derived


@pytest.mark.parametrize(
    ("one", "other"),
    [("a.b", "a-b"), ("a" * 64, "a" * 65), ("1a", "x1a"), ("A.b".lower(), "a--b"), ("a" * 62, "a" * 63)],
)
def test_N15_names_that_look_alike_stay_apart(one: str, other: str) -> None:
    for derive in DERIVED.values():
        assert derive(one) != derive(other)


def test_N15_the_service_is_named_like_the_object() -> None:
    for name in ("chat", "vllm", "default", "kubernetes", "a" * 63):
        assert names.service_name(name) == name


def test_the_service_account_keeps_off_existing_ones() -> None:
    assert names.service_account_name("default") == "default-engine"


def test_a_revision_is_named_after_its_service_and_key() -> None:
    assert names.revision_name("chat", KEY) == f"chat-{KEY}"


@given(st.text(max_size=300))
def test_N20_any_text_becomes_a_legal_label_value(text: str) -> None:
    value = names.label_value(text)
    assert len(value) <= 63
    assert LABEL_VALUE.fullmatch(value), value
    assert value


@given(st.text(max_size=80), st.text(max_size=80))
def test_N20_texts_that_differ_get_label_values_that_differ(one: str, other: str) -> None:
    assert (names.label_value(one) == names.label_value(other)) == (one == other)


def test_N20_a_good_label_value_stays_as_it_is() -> None:
    for text in ("llama-3.1-8b", "vllm", "A_b.C-9"):
        assert names.label_value(text) == text
