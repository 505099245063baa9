"""What versions, tags and image references say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.engines.spans import Span
from stoker.engines.versions import (
    Build,
    Version,
    image_repository,
    image_tag,
    parse_build,
    parse_version,
)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.32.0", Version(0, 32, 0)),
        ("0.12", Version(0, 12, 0)),
        ("v0.32.0", Version(0, 32, 0)),
        ("v0.14.1-cu129", Version(0, 14, 1)),
        ("0.32.0+cpu", Version(0, 32, 0)),
        ("0.12.0.post2", Version(0, 12, 0)),
        ("v0.33.0rc1", Version(0, 33, 0)),
        ("v0.32.0-x86_64", Version(0, 32, 0)),
        ("latest", None),
        ("nightly-0a1b2c3", None),
        ("sha256", None),
        ("", None),
        ("b11434", None),
        ("0.32.0.1.2", None),
        ("2026.11.3", None),
    ],
)
def test_a_version_is_read_from_a_field_or_a_tag(text: str, version: Version | None) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize(
    ("text", "build"),
    [("b11434", 11434), ("server-b11434", 11434), ("server-cuda-b9093", 9093), ("server", None), ("0.32.0", None)],
)
def test_a_build_of_llama_cpp_is_read_from_a_field_or_a_tag(text: str, build: int | None) -> None:
    assert parse_build(text) == build


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("docker.io/vllm/vllm-openai:v0.32.0", "v0.32.0"),
        ("host:5000/team/vllm", None),
        ("host:5000/team/vllm:1.0", "1.0"),
        ("vllm/vllm-openai@sha256:" + "0" * 64, None),
        ("vllm/vllm-openai:v0.32.0@sha256:" + "0" * 64, "v0.32.0"),
        ("vllm", None),
    ],
)
def test_the_tag_of_an_image_is_neither_its_port_nor_its_digest(image: str, tag: str | None) -> None:
    assert image_tag(image) == tag


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        ("vllm/vllm-openai:v0.32.0", "docker.io/vllm/vllm-openai"),
        ("docker.io/vllm/vllm-openai", "docker.io/vllm/vllm-openai"),
        ("localhost/vllm:1", "localhost/vllm"),
        ("host:5000/vllm/vllm-openai:1@sha256:" + "0" * 64, "host:5000/vllm/vllm-openai"),
    ],
)
def test_the_repository_of_an_image_has_its_registry_written_out(image: str, repository: str) -> None:
    assert image_repository(image) == repository


@given(st.tuples(*[st.integers(0, 99)] * 3), st.tuples(*[st.integers(0, 99)] * 3))
def test_versions_compare_as_numbers(left: tuple[int, int, int], right: tuple[int, int, int]) -> None:
    assert (Version(*left) < Version(*right)) == (left < right)
    assert parse_version(str(Version(*left))) == Version(*left)


def test_an_unknown_version_has_only_what_every_version_has() -> None:
    assert Span().covers(None)
    assert not Span(since=Version(0, 13)).covers(None)
    assert not Span(until=Version(0, 13)).covers(None)


def test_a_span_begins_with_its_first_version_and_ends_before_its_last() -> None:
    span = Span(since=Version(0, 13), until=Version(0, 20))
    covered = [minor for minor in range(12, 22) if span.covers(Version(0, minor, 1))]
    assert covered == list(range(13, 20))
    assert str(span) == "since 0.13 and before 0.20"
    assert str(Span(since=Build(11434, 0))) == "since b11434"
