"""What tests on a real control plane share."""

import time
from pathlib import Path
from typing import Any

from clusters.controlplane import ControlPlane
from clusters.documents import load
from clusters.optional_apis import DEFINITIONS
from stoker.api.crd import NAME

CRD = Path(__file__).parents[2] / "crds" / "serving.stoker.dev_inferenceservices.yaml"
ESTABLISHED_SECONDS = 30.0


def own_crd() -> dict[str, Any]:
    """Return the CustomResourceDefinition of this tree."""
    found: dict[str, Any] = load(CRD.read_text(encoding="utf-8"))
    return found


def install_crd(plane: ControlPlane) -> None:
    """Apply the CustomResourceDefinition and wait until its objects are served."""
    plane.apply(own_crd())
    deadline = time.monotonic() + ESTABLISHED_SECONDS
    while conditions(plane).get("Established") != "True":
        assert time.monotonic() < deadline, conditions(plane)
        time.sleep(0.1)


def served_crd(plane: ControlPlane) -> dict[str, Any]:
    """Return the CustomResourceDefinition as the API server has it."""
    return plane.call("GET", f"{DEFINITIONS}/{NAME}")


def conditions(plane: ControlPlane) -> dict[str, str]:
    """Return the conditions of the CustomResourceDefinition."""
    found = served_crd(plane).get("status", {}).get("conditions") or ()
    return {condition["type"]: condition["status"] for condition in found}
