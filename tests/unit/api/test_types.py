"""Quantities and sources, read."""

import re
from decimal import Decimal, localcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.api import types
from stoker.api.quantities import POSITIVE_PATTERN, QUANTITY_PATTERN, normal_quantity, quantity_value
from stoker.api.types import (
    EXAMPLES,
    ClaimSource,
    HubSource,
    cpu_millicores,
    fraction,
    memory_bytes,
    model_source,
)
from tools.kubernetes_types import embedded_types
from tools.kubernetes_words import FIELDS


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("80Gi", 85_899_345_920), ("80G", 80 * 10**9), ("1.5Ki", 1536), ("512Mi", 2**29), ("2T", 2 * 10**12),
     ("1.001k", 1001), ("3Ti", 3 * 2**40), ("7M", 7_000_000), ("1e9", 10**9), ("1E3", 1000), (".5Ki", 512),
     ("1500m", 1), ("0.001P", 10**12), ("+1", 1)],
)  # fmt: skip
def test_memory_is_read_in_bytes(text: str, size: int) -> None:
    assert memory_bytes(text) == size


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "1e", "1 Gi", "1gi", "1GB", "Gi", "1..Gi", ".Gi", "1Gi\n", "٣Gi", "1000Ti"]
)
def test_what_is_no_memory_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="such as 80Gi"):
        memory_bytes(text)


@pytest.mark.parametrize(
    ("text", "cores"),
    [("8", 8000), ("0.5", 500), ("500m", 500), ("1.25", 1250), ("0.05", 50), ("1.5m", 2), ("1.0001", 1001),
     ("2k", 2_000_000), ("1e1", 10_000)],
)  # fmt: skip
def test_cores_are_read_in_thousandths(text: str, cores: int) -> None:
    assert cpu_millicores(text) == cores


@pytest.mark.parametrize("text", ["0", "0m", "0.0", "0.5m", "1e9", "-1", "", "8 ", "10001"])
def test_what_is_no_number_of_cores_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="number of cores"):
        cpu_millicores(text)


@pytest.mark.parametrize(
    ("text", "normal"),
    [("1Ki", "1Ki"), ("1024", "1Ki"), ("81920Mi", "80Gi"), ("85899345920", "80Gi"), ("1.5Gi", "1536Mi"), ("1e3", "1k"),
     ("0.5", "500m"), (".5", "500m"), ("+2.", "2"), ("2000m", "2"), ("1.0001", "1000100u"), ("1n", "1n"),
     ("0.1n", "1n"), ("0Gi", "0"), ("1e9", "1G"), ("3E", "2929687500000000Ki")],
)  # fmt: skip
def test_a_quantity_has_one_normal_spelling(text: str, normal: str) -> None:
    assert normal_quantity(text) == normal
    assert normal_quantity(normal) == normal


@given(st.integers(0, 10**20), st.sampled_from(["", "n", "u", "m", "k", "M", "Ki", "Gi", "e-9", "E-12", "e2"]))
def test_the_normal_spelling_has_the_same_value_to_the_billionth(number: int, unit: str) -> None:
    text = f"{number}{unit}"
    with localcontext(prec=60):
        assert 0 <= quantity_value(normal_quantity(text)) - quantity_value(text) < Decimal("1e-9")


@settings(deadline=None)
@given(st.integers(1, 999))
def test_a_fraction_is_exact(thousandths: int) -> None:
    text = f"0.{thousandths:03d}"
    assert fraction(text) == Decimal(thousandths) / 1000


@pytest.mark.parametrize("text", ["0", "0.0", "1.1", "2", ".9", "0,9", "90%", ""])
def test_what_is_no_fraction_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="fraction"):
        fraction(text)


def test_sources_are_taken_apart() -> None:
    assert model_source("hf://meta-llama/Llama-3.1-8B") == HubSource("meta-llama", "Llama-3.1-8B", None)
    assert model_source("hf://a/b/q4/model.gguf") == HubSource("a", "b", "q4/model.gguf")
    assert model_source("pvc://models") == ClaimSource("models", "")
    assert model_source("pvc://models/a/b.gguf") == ClaimSource("models", "a/b.gguf")
    assert HubSource("a", "b").repository == "a/b"


@pytest.mark.parametrize(
    "text", ["", "hf://", "hf://a", "hf://a/", "pvc://", "pvc://A", "pvc://a/", "pvc://a/../b", "pvc://a/./b", "hf://a/../b",
             "s3://a/b", "hf://a/b c", "hf://a/b\n", "pvc://a..b"],
)  # fmt: skip
def test_what_is_no_source_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="hf://owner/name"):
        model_source(text)


def test_every_pattern_has_words_for_people_and_is_anchored() -> None:
    patterns = {value for name, value in vars(types).items() if name.endswith("_PATTERN")}
    patterns |= {QUANTITY_PATTERN, POSITIVE_PATTERN}
    patterns -= {types.ANNOTATION_KEY_PATTERN}  # checked by a rule, which has its own words
    assert patterns == set(EXAMPLES)
    for pattern in patterns:
        assert re.fullmatch(r"\^.*\$", pattern)


def test_a_field_without_a_description_is_told_with_the_file_to_write_it_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools.kubernetes_types.FIELDS", {**FIELDS, "V1Toleration": {}})
    with pytest.raises(LookupError, match=r"V1Toleration\.\w+ has no description: .* tools/kubernetes_words\.py"):
        embedded_types()
