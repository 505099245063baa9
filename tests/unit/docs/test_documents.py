"""What the documents point at is there: links, make targets, series, values of the chart."""

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from stoker.api.crd import object_schema

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


FIRST_CELLS = re.findall(
    r"^\| (`[A-Z][^|]*) \|", (ROOT / "docs/operations.md").read_text(encoding="utf-8"), re.MULTILINE
)
NAMED = [name for cell in FIRST_CELLS for name in re.findall(r"`([A-Za-z]+)`", cell)]


@pytest.mark.parametrize("name", NAMED)
def test_conditions_and_reasons_exist(name: str) -> None:
    kind = re.sub("(Key)?NotFound$", "", name)
    assert any(f'"{name}"' in source or (kind != name and f'"{kind}"' in source) for source in SOURCES)


def test_every_reason_of_the_code_stands_in_the_table() -> None:
    reasons = {reason for path in CODE for reason in _reasons(ast.parse(path.read_text(encoding="utf-8")))}
    assert {"LongerThanModel", "CrashLoop", "Starting", "WarmupTooLong", "RefusedByNode", "ImagePull"} <= reasons
    assert reasons >= ENDINGS
    assert [ending for ending in ENDINGS if not any(name.endswith(ending) for name in NAMED)] == []
    assert sorted(reasons - ENDINGS - set(NAMED)) == []


CODE = [
    path
    for folder in ("api", "engines", "plan", "reconcile", "render", "status")
    for path in sorted((ROOT / "operator/stoker" / folder).rglob("*.py"))
]
REASON_AT = {
    "Diagnosis": 0, "Finding": 0, "_Refusal": 0, "_signature": 0, "_diagnose": 2, "Verdicted": 2,
    "Fault": 3, "_fault": 1, "word": 1,
}  # fmt: skip
"""Where a reason stands among the arguments of a call."""
ENDINGS = {"NotFound", "KeyNotFound"}
"""What follows the kind of an object in a reason."""
FALLBACK = "Other"
"""Said only of a reason of Kubernetes' that is no word."""


def _reasons(module: ast.Module) -> Iterator[str]:
    """Yield what a module gives as a reason: in calls, by the name of a constant, or in a tuple that is returned."""
    constants = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name) and node.value is not None
    }
    for node in ast.walk(module):
        for expression in _reason_of(node):
            found = constants.get(expression.id) if isinstance(expression, ast.Name) else expression
            for part in ast.walk(found) if found is not None else ():
                text = part.value if isinstance(part, ast.Constant) else None
                if (
                    isinstance(text, str)
                    and re.fullmatch(r"([A-Z][A-Za-z]*){2,}|[A-Z][a-z]{3,}", text)
                    and text != FALLBACK
                ):
                    yield text


def _reason_of(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        place = REASON_AT.get(node.func.id)
        if place is not None and len(node.args) > place:
            yield node.args[place]
        yield from (word.value for word in node.keywords if word.arg == "reason")
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
        yield from (part for part in node.value.elts[:2] if isinstance(part, ast.Constant))
    elif isinstance(node, ast.ClassDef) and node.name == "Fault":
        yield from (line.value for line in node.body if isinstance(line, ast.AnnAssign) and line.value)


def test_every_rule_of_the_schema_stands_in_the_reference() -> None:
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    rows = {tuple(re.split(r" (?<!\\)\| ", row)[:2]) for row in text.split("## Rules")[1].splitlines()}
    schema = object_schema()["properties"]["spec"]
    assert {
        ("| `spec.pod.volumes[].projected.sources[].downwardAPI.items[]`", message) for message in (ONE_OF,)
    } <= rows
    said = {message for _, message in (row for row in rows if len(row) == 2)}
    assert [message for message in _messages(schema) if not any(_cell(message) in cell for cell in said)] == []


ONE_OF = "exactly one of fieldRef and resourceFieldRef must be set; set one of them |"


def _messages(schema: Mapping[str, Any]) -> Iterator[str]:
    yield from (rule["message"] for rule in schema.get("x-kubernetes-validations", ()))
    for part in (*schema.get("properties", {}).values(), *(schema[key] for key in ("items",) if key in schema)):
        yield from _messages(part)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def test_the_reference_says_of_each_text_of_ours_how_it_is_written() -> None:
    text = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    for field in ("model.source", "model.names[]", "rollout.restartedAt", "pod.labels.*", "pod.volumes[].mountPath"):
        assert f"| `spec.{field}` | is malformed; write " in text


def test_the_reference_says_what_the_schema_fills_in() -> None:
    rows = (ROOT / "docs/api.md").read_text(encoding="utf-8").splitlines()
    assert [row.split("|")[1:3] for row in rows if "; default " in row] == [
        [" `spec.replicas` ", " integer, 0 to 10000; default 1 "]
    ]
