"""What is rendered is taken by a real API server, in namespaces that enforce Pod Security `restricted`."""

import json
from collections.abc import Mapping
from typing import Any

from clusters.controlplane import ControlPlane
from clusters.documents import stream
from stoker.render.deployment import deployment
from stoker.render.identity import ServiceIdentity
from tests.golden.harness import cases, objects

APPLY = ("apply", "--server-side", "--field-manager=stoker", "--validate=strict", "-o", "json", "-f", "-")
IDENTITY = ServiceIdentity("default", "quickstart", None)
CLUSTER_WIDE = (
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "production"},
        "value": 1000,
        "description": "for pods of golden files that name it",
    },
    {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "nvidia"}, "handler": "nvidia"},
)


def send(plane: ControlPlane, namespace: str, *found: Mapping[str, Any], dry_run: bool = False) -> str:
    """Apply objects as the operator's field manager, in another namespace than their own; return them as stored."""
    moved = [{**it, "metadata": {**it["metadata"], "namespace": namespace}} for it in found]
    return plane.kubectl(*APPLY, *(["--dry-run=server"] if dry_run else []), stdin=stream(moved))


def test_all_that_is_rendered_is_admitted(control_plane: ControlPlane, namespace: str) -> None:
    """In one namespace at once: the names of the cases differ."""
    control_plane.apply(*CLUSTER_WIDE)
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "inference"}}
    found = [objects(case) for case in cases()]
    send(control_plane, namespace, account, *(each for kinds in found for each in kinds.values()))
    templates = [(kinds["Deployment"]["metadata"]["name"], kinds["Deployment"]["spec"]["template"]) for kinds in found]
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {**pod["metadata"], "name": name}, "spec": pod["spec"]}
        for name, pod in templates
    ]
    send(control_plane, namespace, *pods, dry_run=True)


def test_N18_the_way_to_replace_can_be_changed(control_plane: ControlPlane, namespace: str) -> None:
    """Kubernetes defaults rollingUpdate and refuses it beside Recreate: no rest of one way may stay for the next."""
    template = objects("llama-cpp-cpu")["Deployment"]["spec"]["template"]
    for strategy in ("Surge", "Recreate", "Replace", "Surge", "Replace", "Recreate", "Surge"):
        changed = deployment(IDENTITY, "llama.cpp", template, 0, strategy)
        stored = json.loads(send(control_plane, namespace, changed))
        assert stored["spec"]["strategy"] == changed["spec"]["strategy"]
