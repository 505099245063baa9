"""What tests on a real control plane share."""

import json
import time
from pathlib import Path
from typing import Any

import yaml

from clusters.controlplane import ControlPlane
from stoker.api.crd import NAME

CRD = Path(__file__).parents[2] / "crds" / "serving.stoker.dev_inferenceservices.yaml"
ESTABLISHED_SECONDS = 30.0


def install_crd(plane: ControlPlane) -> None:
    """Apply the CustomResourceDefinition and wait until its objects are served."""
    plane.apply(yaml.safe_load(CRD.read_text(encoding="utf-8")))
    deadline = time.monotonic() + ESTABLISHED_SECONDS
    while conditions(plane).get("Established") != "True":
        assert time.monotonic() < deadline, conditions(plane)
        time.sleep(0.1)


def served_crd(plane: ControlPlane) -> dict[str, Any]:
    """Return the CustomResourceDefinition as the API server has it."""
    served: dict[str, Any] = json.loads(plane.kubectl("get", "crd", NAME, "-o", "json"))
    return served


def conditions(plane: ControlPlane) -> dict[str, str]:
    """Return the conditions of the CustomResourceDefinition."""
    found = served_crd(plane).get("status", {}).get("conditions") or ()
    return {condition["type"]: condition["status"] for condition in found}
