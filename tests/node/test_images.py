"""The project's images, run by a real container runtime as Pod Security `restricted` wants them."""

import time
from collections.abc import Mapping
from typing import Any

import pytest

from clusters import project_images
from tests.node.support import Namespace, until

NOBODY = 65532


def pod(name: str, image: str, command: list[str]) -> dict[str, Any]:
    """A pod with a read-only root that runs one command, with the model at /models."""
    container = {
        "name": "main",
        "image": image,
        "command": command,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "models", "mountPath": "/models", "readOnly": True}],
    }
    security = {"runAsNonRoot": True, "runAsUser": NOBODY, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 60,
        "securityContext": security,
        "containers": [container],
        "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": "smollm2"}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def end_of(namespace: Namespace, name: str) -> dict[str, Any]:
    """Wait for the end of a pod's container and return how it ended."""

    def terminated() -> dict[str, Any]:
        statuses = namespace.get("pod", name).get("status", {}).get("containerStatuses") or [{}]
        return dict(statuses[0].get("state", {}).get("terminated") or {})

    until(lambda: bool(terminated()), f"{name} has ended", 90, lambda: namespace.get("pod", name).get("status"))
    return terminated()


LLAMA, STOKER = project_images.LLAMA_CPP, project_images.STOKER
COMMANDS: Mapping[str, tuple[str, list[str], int, str]] = {
    "unknown-option": (LLAMA, ["/app/llama-server", "-m", "x", "--frobnicate"], 2, "--frobnicate: refused"),
    "missing-model": (LLAMA, ["/app/llama-server", "-m", "/models/no"], 1, "No such file"),
    "llama-version": (LLAMA, ["llama-server", "--version"], 0, ""),
    "stoker-version": (STOKER, ["stoker", "version"], 0, ""),
    "agent-without-configuration": (STOKER, ["stoker", "agent"], 1, "STOKER_AGENT_CONFIG"),
}
SERVE = ["/app/llama-server", "-m", "/models/SmolLM2-135M-Instruct.Q4_1.gguf", "-c", "512", "-t", "1"]


@pytest.fixture(scope="module")
def started(namespace: Namespace) -> Namespace:
    """The namespace with all pods of this module, started together."""
    for name, (image, command, _, _) in COMMANDS.items():
        namespace.apply(pod(name, image, command))
    namespace.apply(pod("serving", LLAMA, SERVE))
    return namespace


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_says_and_how_it_ends(started: Namespace, name: str) -> None:
    _, _, code, words = COMMANDS[name]
    end = end_of(started, name)
    assert end["exitCode"] == code
    assert words in end.get("message", "")


def test_a_serving_llama_server_ends_at_once_when_it_is_told_to(started: Namespace) -> None:
    def serves() -> bool:
        running = started.get("pod", "serving")["status"]["phase"] == "Running"
        return running and "listening on" in started.kubectl("logs", "serving", "--tail=5")

    until(serves, "the model is loaded", 90, lambda: started.get("pod", "serving")["status"])
    started.kubectl("delete", "pod", "serving", "--wait=false")
    asked = time.monotonic()
    until(lambda: not started.get("pod", "serving"), "the pod is gone", 90)
    assert time.monotonic() - asked < 30  # half the grace period, at the end of which it would be killed
