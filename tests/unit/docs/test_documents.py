"""What the documents point at is there: links, make targets, series, values of the chart."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = sorted([*ROOT.glob("*.md"), ROOT / "clusters/README.md", *(ROOT / "docs").rglob("*.md")])
SOURCES = [path.read_text(encoding="utf-8") for path in (ROOT / "operator/stoker").rglob("*.py")]


def found(pattern: str) -> Iterator[tuple[Path, str]]:
    for document in DOCUMENTS:
        for match in re.findall(pattern, document.read_text(encoding="utf-8")):
            yield document, match


def test_links_lead_somewhere() -> None:
    targets = [(where, link) for where, link in found(r"\]\(([^)#]+)\)") if not link.startswith("http")]
    assert targets
    assert [f"{where.name}: {link}" for where, link in targets if not (where.parent / link).exists()] == []


def test_make_targets_exist() -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {target for _, targets in found(r"(?m)(?:^|[`(])make ([a-z-]+(?: [a-z-]+)*)") for target in targets.split()}
    assert {"demo", "test"} <= named
    assert named - known == set()


def test_places_of_the_contributors_guide_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    places = set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+(?:/|\.py|\.md|\.yaml))`", text))
    packages = {
        name
        for row in re.findall(r"^\| (`(?!make)[a-z`, ]+`) \|", text, re.MULTILINE)
        for name in re.findall(r"\w+", row)
    }
    assert {"api", "cli"} <= packages
    assert "render/pod_inputs.py" in places
    folders = (ROOT, ROOT / "operator/stoker", ROOT / "tests/builders")
    known = {path.name for path in (ROOT / "operator/stoker").iterdir() if (path / "__init__.py").exists()}
    assert packages == known
    assert [place for place in sorted(places) if not any((folder / place).exists() for folder in folders)] == []


@pytest.mark.parametrize("name", sorted({name for _, name in found(r"`(stoker_[a-z_]+?)(?: 1)?`")}))
def test_series_exist(name: str) -> None:
    stems = {name, name.removesuffix("_total")}
    assert any(f'"{stem}"' in source for source in SOURCES for stem in stems)


def test_documents_name_things_themselves() -> None:
    assert list(found(r"\b(?:rules? N\d+|\(N\d+\)|the design\b)")) == []


def test_values_of_the_chart_exist() -> None:
    values = yaml.safe_load((ROOT / "charts/stoker/values.yaml").read_text(encoding="utf-8"))
    names = {name for _, name in found(r"`((?:image|rbac|metrics|networkPolicy)\.[A-Za-z.]+)`")}
    assert names
    for name in names:
        place = values
        for part in name.split("."):
            assert part in place, name
            place = place[part]


REASONS = re.findall(r"^\| `([A-Z][A-Za-z]+)`", (ROOT / "docs/operations.md").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("name", REASONS)
def test_conditions_and_reasons_exist(name: str) -> None:
    assert any(f'"{name}"' in source for source in SOURCES)


def test_the_reference_says_what_the_schema_fills_in() -> None:
    rows = (ROOT / "docs/api.md").read_text(encoding="utf-8").splitlines()
    assert [row.split("|")[1:3] for row in rows if "; default " in row] == [
        [" `spec.replicas` ", " integer, 0 to 10000; default 1 "]
    ]
