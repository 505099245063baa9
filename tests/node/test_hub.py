"""What the status says when the Hub refuses: vLLM's own client asks a local hub, which answers as the Hub does."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.node import vllm_cpu
from tests.node.hub import Hub, serving
from tests.node.support import Json, Namespace, condition, until

SAID_SECONDS = 420.0

# By repository: the reason, and what the message must name.
SAID = {
    "private": ("ModelGated", "spec.model.credentialsSecret"),
    "gated": ("ModelGated", "spec.model.credentialsSecret"),
    "absent": ("ModelNotFound", "spec.model.source"),
}


@pytest.fixture(scope="module")
def hub(namespace: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """The hub, and a service for each repository that it refuses, started together."""
    empty: Path = tmp_path_factory.mktemp("hub")
    vllm_cpu.provide_libraries(namespace)
    with serving(namespace.stage.cluster, empty) as found:
        for name in SAID:
            namespace.apply(refused(name, found))
        yield found


def refused(name: str, hub: Hub) -> Json:
    """A service of a repository of the hub."""
    manifest = vllm_cpu.from_hub(name, f"acme/{name}", hub)
    manifest["spec"]["resources"] = {"cpu": "300m", "memory": "4500Mi"}
    return manifest


@pytest.mark.parametrize("name", SAID)
def test_a_refusal_is_told_with_the_field_to_change(namespace: Namespace, hub: Hub, name: str) -> None:
    reason, field = SAID[name]

    def told() -> bool:
        return condition(namespace.service(name), "Stalled").get("reason") == reason

    until(told, f"Stalled/{reason}", SAID_SECONDS, lambda: namespace.service(name).get("status"), every=2)
    assert f"acme/{name}" in hub.asked
    assert field in condition(namespace.service(name), "Stalled")["message"]
    assert condition(namespace.service(name), "Ready")["status"] == "False"
