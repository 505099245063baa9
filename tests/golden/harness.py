"""Golden files: for each case the objects that `stoker render` prints.

A case is a folder with `infsvc.yaml`, where wanted `config.json` and `nodes.yaml`, and `expected.yaml`. The stored
revision is left out of the last: it repeats the pod template. `make golden` writes all `expected.yaml` anew; read the
difference before committing it, since a changed template of an unchanged case is what an upgrade shows as outdated.
"""

import contextlib
import io
from pathlib import Path
from typing import Any

from clusters.documents import load_all
from stoker.cli.output import to_yaml
from stoker.cli.render import render_files

ROOT = Path(__file__).parent


def cases() -> list[str]:
    """The names of all cases."""
    return sorted(path.parent.name for path in ROOT.glob("*/infsvc.yaml"))


def expected_file(case: str) -> Path:
    """The file that holds what is expected of a case."""
    return ROOT / case / "expected.yaml"


def render(case: str, service: Path | None = None) -> str:
    """What the command prints for a case, or for another file in its place."""
    folder, out = ROOT / case, io.StringIO()
    config, nodes = folder / "config.json", folder / "nodes.yaml"
    with contextlib.redirect_stdout(out):
        code = render_files(
            [str(service or folder / "infsvc.yaml")],
            str(config) if config.exists() else None,
            str(nodes) if nodes.exists() else None,
        )
    assert code == 0, f"{case} is refused"
    return out.getvalue()


def objects(case: str) -> dict[str, dict[str, Any]]:
    """The objects of a case by kind."""
    return {found["kind"]: found for found in load_all(render(case))}


def golden(case: str) -> str:
    """The text that `expected.yaml` holds for a case."""
    return to_yaml(found for kind, found in objects(case).items() if kind != "ControllerRevision")
