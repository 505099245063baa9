"""Files that people hand in: whatever they hold, one line says what is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.cli.documents import MAX_VALUES, UnusableError, read_text, yaml_documents
from stoker.cli.output import one_line, to_yaml

LIMIT = 1000


def _bomb() -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(lines)


BROKEN = {
    "an alias bomb": (_bomb(), "too many values"),
    "an alias of itself": ("a: &a [*a]", "*a"),
    "an unknown alias": ("a: *b", "*b"),
    "nesting": ("[" * 80 + "]" * 80, "nested"),
    "deep nesting": ("[" * 100_000, "nest"),
    "a tab": ("a:\n\t- b\n", "indent with spaces"),
    "a NUL byte": ("a: \x00\n", "control characters"),
    "a duplicate key": ("spec:\n  model: 1\n  model: 2\n", "spec.model: stands twice"),
    "a duplicate key in a list": ("a:\n- b: 1\n  b: 2\n", "a[0].b: stands twice"),
    "an object of Python": ("a: !!python/object/apply:os.system [x]", "constructor"),
    "bytes": ("a: !!binary aGVsbG8=", "a: is a YAML bytes"),
    "a set": ("!!set {a, b}", "is a YAML set"),
    "a date by tag": ("a: !!timestamp 2026-01-31", "a: is a YAML date"),
    "a broken date by tag": (
        "a: !!timestamp 2026-99-99",
        "line 1, column 4: broken YAML: '2026-99-99' is no time stamp",
    ),
    "no date at all by tag": ("a: !!timestamp soon", "no time stamp"),
    "a date by tag that is an object": ("a: !!timestamp {!!value =: x}", "expected a scalar"),
    "a number of many digits": (f"a: [0x{'f' * 6000}]", "a[0]: is a number of more than 100 digits"),
    "infinity": ("a: {b: .inf}", "a.b: is no number that JSON can hold"),
    "a number as key": ("1: x", 'write it in quotes: "1"'),
    "a list as key": ("? [a, b]\n: 1", "unhashable"),
    "a huge number": (f"a: {'9' * 10_000}", "is no integer that can be read"),
    "no integer by tag": ("a: !!int abc", "'abc' is no integer that can be read"),
    "minutes by tag": ("a: !!float 1:30", "line 1, column 4: broken YAML: '1:30' is no number"),
    "no number by tag": ("a: !!float ''", "'' is no number"),
    "no boolean by tag": ("a: !!bool abc", "line 1, column 4: broken YAML: 'abc' is no true or false"),
    "no null by tag": ("a: !!null abc", "'abc' is no null"),
    "an open quote": ("a: 'x", "line 1"),
    "a colon too many": ("a: b: c", "line 1, column 5"),
    "JSON that nests": ('{"a":' + "[" * 80 + "]" * 80 + "}", "nested"),
    "JSON that nests deeply": ('{"a":' * 100_000 + "1" + "}" * 100_000, "nest"),
    "JSON with a key twice": ('{"a": {"b": 1, "b": 2}}', "a.b: stands twice"),
    "JSON that is cut off": ('{"a": {"b": 1', "did not find expected ',' or '}'"),
    "JSON with half a character": (r'{"a": ["\ud83d"]}', "a[0]: holds half of a character"),
    "JSON with half a character in a key": (r'{"a": {"\udE00": 1}}', "a: holds half of a character"),
    "JSON without a number": ('{"a": NaN}', "a: is no number that JSON can hold"),
    "JSON of many digits": (f'{{"a": {"9" * 200}}}', "a: is a number of more than 100 digits"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_yaml_gets_one_fault_with_a_remedy(name: str) -> None:
    text, expected = BROKEN[name]
    with pytest.raises(UnusableError) as caught:
        yaml_documents(text)
    (fault,) = caught.value.faults
    assert expected in str(fault)
    assert fault.remedy
    assert len(str(fault)) < 400


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("latin-1")))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        yaml_documents(text)
    except UnusableError as error:
        assert error.faults


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 2026-01-31T12:00:00Z", [{"a": "2026-01-31T12:00:00Z"}]),
        ("a: 2026-01-31", [{"a": "2026-01-31"}]),
        ("---\n---\n# nothing\n", []),
        ("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("a: &a {x: 1}\nb:\n  <<: *a\n  y: 2\n", [{"a": {"x": 1}, "b": {"x": 1, "y": 2}}]),
        ('{"a": [true, null, "x"]}', [{"a": [True, None, "x"]}]),
        ("a: [12:30, 1:02:03.5, -1:30]", [{"a": ["12:30", "1:02:03.5", "-1:30"]}]),
        ("a: [!!float 1, !!float 0x1F, !!float 1_0.5, !!float '1e3']", [{"a": [1.0, 31.0, 10.5, 1000.0]}]),
        ("a: =\n=: b", [{"a": "=", "=": "b"}]),
        ("a: [1e3, 1.5e3, .5, 5., 1_000, 0x1F, 0b11, 0o17, 017, -0, +1, 0]",
         [{"a": [1000.0, 1500.0, 0.5, 5.0, 1000, 31, 3, 15, 15, 0, 1, 0]}]),
        ("a: [1e, e3, ., _1, 0x, 1.2.3, 80Gi, 500m]",
         [{"a": ["1e", "e3", ".", "_1", "0x", "1.2.3", "80Gi", "500m"]}]),
    ],
)  # fmt: skip
def test_good_yaml_is_read_as_kubernetes_reads_it(text: str, expected: list[Any]) -> None:
    assert yaml_documents(text) == expected


def test_a_missing_file_a_folder_and_a_bad_name_are_told_apart(tmp_path: Path) -> None:
    found = []
    for name in (tmp_path / "none.yaml", tmp_path, "a\0b"):
        with pytest.raises(UnusableError) as caught:
            read_text(str(name), LIMIT)
        found.append(str(caught.value))
    assert "no such file" in found[0]
    assert "is a directory" in found[1]
    assert "no name of a file" in found[2]


def test_a_huge_file_is_not_read_whole(tmp_path: Path) -> None:
    (tmp_path / "big").write_text("x" * (LIMIT + 1))
    with pytest.raises(UnusableError, match="too large"):
        read_text(str(tmp_path / "big"), LIMIT)
    with pytest.raises(UnusableError, match="too large"):
        read_text("/dev/zero", LIMIT)


def test_text_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes("ü".encode("latin-1"))
    with pytest.raises(UnusableError, match="not UTF-8"):
        read_text(str(tmp_path / "latin"), LIMIT)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "bom").write_bytes(b"\xef\xbb\xbfa: 1")
    assert read_text(str(tmp_path / "bom"), LIMIT) == "a: 1"


def test_yaml_comes_out_without_aliases_and_without_wrapping() -> None:
    shared = {"x": "word " * 100}
    text = to_yaml([{"a": shared, "b": shared}, {"c": 1}])
    assert "&" not in text
    assert yaml_documents(text) == [{"a": shared, "b": shared}, {"c": 1}]
    assert len(text.splitlines()) == 7


@given(st.text())
def test_N20_a_line_stays_one_line(text: str) -> None:
    assert one_line(text).isprintable()
    assert len(one_line(text).splitlines()) <= 1


@pytest.mark.parametrize("indent", [None, "\t"])
def test_json_is_read_as_json(indent: str | None) -> None:
    """A character beyond 16 bits is two escapes, which YAML refuses, as it refuses tabs."""
    value = {"a": [{"b": "\U0001f600 \n", "c": 1.5, "d": None}], "e": {"f": True}}
    assert yaml_documents(json.dumps(value, indent=indent)) == [value]


def test_a_long_list_of_nodes_is_no_bomb() -> None:
    """What JSON holds is bounded by its file."""
    values = list(range(MAX_VALUES + 1))
    assert yaml_documents(json.dumps({"a": values})) == [{"a": values}]


def test_a_mapping_in_braces_may_be_yaml() -> None:
    assert yaml_documents("{a: b, c: [1, &x y, *x]}") == [{"a": "b", "c": [1, "y", "y"]}]
    assert yaml_documents('{"a": 1}\n---\n{"a": 2}') == [{"a": 1}, {"a": 2}]


@pytest.mark.parametrize("text", ["size: 8e9", "size: 8000000000.0", '{"size": 8e9}'])
def test_whole_numbers_are_integers_as_kubectl_sends_them(text: str) -> None:
    (document,) = yaml_documents(text)
    assert document == {"size": 8_000_000_000}
    assert isinstance(document["size"], int)
