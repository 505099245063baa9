"""The tables of options are whole and consistent."""

import json
from importlib import resources

import pytest

from stoker.engines.llama_table import llama_options
from stoker.engines.options import OptionTable
from stoker.engines.spans import Span
from stoker.engines.versions import Version
from stoker.engines.vllm_table import (
    NEWEST,
    OLDEST,
    knows_every_option,
    kv_cache_dtypes,
    quantization_methods,
    vllm_options,
)


@pytest.mark.parametrize("table", [vllm_options(), llama_options()], ids=["vllm", "llama.cpp"])
def test_every_spelling_leads_to_its_option(table: OptionTable) -> None:
    assert len(table.options) > 200
    for name, option in table.options.items():
        assert option.name == name
        assert name in option.spellings
        assert option.takes in {"0", "1", "2", "+", "?"}
        assert all(option in table.by_spelling[spelling] for spelling in option.spellings)


@pytest.mark.parametrize("table", [vllm_options(), llama_options()], ids=["vllm", "llama.cpp"])
def test_a_span_ends_after_it_begins(table: OptionTable) -> None:
    spans = [option.span for option in table.options.values()]
    spans += [span for option in table.options.values() for span in option.spellings.values()]
    for span in spans:
        assert span.since is None or span.until is None or span.since < span.until


def test_the_bounds_of_the_table_are_those_of_the_code() -> None:
    document = json.loads(resources.files("stoker.facts").joinpath("vllm.json").read_text())
    assert (document["oldest"], document["newest"]) == (OLDEST.short(), NEWEST.short())
    known = [version for version in range(10, 36) if knows_every_option(Version(0, version, 3))]
    assert known == list(range(12, 34))
    assert not knows_every_option(None)


@pytest.mark.parametrize(
    ("option", "span"),
    [
        ("--max-num-queued-reqs", Span(since=Version(0, 29))),
        ("--shutdown-timeout", Span(since=Version(0, 18))),
        ("--disable-access-log-for-endpoints", Span(since=Version(0, 16))),
        ("--attention-backend", Span(since=Version(0, 13))),
        ("--swap-space", Span(until=Version(0, 18))),
        ("--task", Span(until=Version(0, 13))),
        ("--served-model-name", Span()),
    ],
)
def test_spans_of_known_options(option: str, span: Span) -> None:
    assert vllm_options().options[option].span == span


def test_spans_of_known_values() -> None:
    assert quantization_methods()["gguf"] == Span(until=Version(0, 24))
    assert quantization_methods()["bitsandbytes"] == Span(until=Version(0, 28))
    assert kv_cache_dtypes()["fp8"] == Span()
