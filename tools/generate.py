"""``make generate``: writes every file that follows from the API's models. ``--check`` writes nothing, and fails when a
file is stale."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from tools.kubernetes_types import embedded_types
from tools.manifests import chart_manifest, crd_manifest
from tools.reference import api_reference

ROOT = Path(__file__).resolve().parent.parent

KUBERNETES_TYPES = "operator/stoker/api/kubernetes_types.json"
CRD = "crds/serving.stoker.dev_inferenceservices.yaml"
CHART_CRD = "charts/stoker/templates/crds.yaml"
REFERENCE = "docs/api.md"


def generators() -> Mapping[str, Callable[[], str]]:
    """Return what makes each generated file, by its path in the repository, in the order of their making."""
    return {
        KUBERNETES_TYPES: embedded_types,
        CRD: crd_manifest,
        CHART_CRD: chart_manifest,
        REFERENCE: api_reference,
    }


def stale(root: Path = ROOT) -> list[str]:
    """Return the generated files whose text is not what the models give."""
    return [path for path, make in generators().items() if _text(root / path) != make()]


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def main(arguments: list[str]) -> int:
    """Write the files, or check them; return the exit code."""
    if arguments == ["--check"]:
        for path in (paths := stale()):
            sys.stderr.write(f"{path} is stale: run `make generate`\n")
        return 1 if paths else 0
    for path, make in generators().items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
