"""Every example is one that a user can apply: understood, and fitting the GPUs that it names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from stoker import __version__
from stoker.cli.plan import plan_files
from stoker.cli.render import render_files

FOLDER = Path(__file__).resolve().parents[3] / "examples"
SERVICES = sorted(path for path in FOLDER.glob("*.yaml") if path.name != "claim.yaml")


def test_there_are_examples() -> None:
    assert len(SERVICES) >= 5


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_an_example_fits_what_it_asks_for(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan_files([str(path)], None, None, as_json=True) == 0
    printed = capsys.readouterr()
    layout = json.loads(printed.out)["layout"]
    assert (layout["verdict"], printed.err) == ("Fits", ""), layout["reasons"]


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_an_example_renders_and_speaks_for_itself(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert path.read_text(encoding="utf-8").startswith("# ")
    assert render_files([str(path)], None, None) == 0
    kinds = {document["kind"] for document in yaml.safe_load_all(capsys.readouterr().out) if document}
    assert {"Deployment", "Service", "ServiceAccount", "NetworkPolicy"} <= kinds


def test_the_quickstart_runs_this_releases_image() -> None:
    spec = yaml.safe_load((FOLDER / "quickstart.yaml").read_text(encoding="utf-8"))["spec"]
    assert spec["engine"]["image"] == f"ghcr.io/stoker-dev/llama-cpp:{__version__}"
