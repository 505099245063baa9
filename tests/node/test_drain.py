"""N10: no request dies of a scale-down; without the drain some do."""

import copy
from collections.abc import Iterator

import pytest

from tests.node.support import Json, Namespace, quickstart, until
from tests.node.watching import load

STREAMS = 100
TOKENS = 12
DRAINED_SECONDS = 300.0
UNDRAINED = "undrained"

pytestmark = pytest.mark.usefixtures("ready")


@pytest.fixture(scope="module")
def ready(namespace: Namespace) -> Namespace:
    """Two engines, each with a slot for every stream."""
    namespace.apply(small())
    namespace.await_ready()
    return namespace


def small(**changes: object) -> Json:
    """The quickstart for many short answers at once."""
    wide = {"context": {"maxLength": 256}, "batching": {"maxSequences": 128}}
    return quickstart(replicas=2, resources={"cpu": "100m", "memory": "2Gi"}, **{**wide, **changes})


def names(namespace: Namespace) -> set[str]:
    """Return the names of the service's pods, those that are going too."""
    pods = namespace.get("pods", "-l", "serving.stoker.dev/service=smollm2")["items"]
    return {pod["metadata"]["name"] for pod in pods}


def test_N10_a_scale_down_loses_no_stream(namespace: Namespace) -> None:
    with load(namespace, namespace.url(), STREAMS, TOKENS) as clients:
        clients.await_open(STREAMS)
        namespace.kubectl("scale", "infsvc", "smollm2", "--replicas=1")
        until(lambda: len(names(namespace)) == 1, "one pod is left", DRAINED_SECONDS, clients.now)
        outcome = clients.finish()

    assert outcome["lost"] == {}
    assert outcome["mostOpen"] >= STREAMS
    assert outcome["completed"] >= STREAMS


@pytest.fixture
def undrained(namespace: Namespace) -> Iterator[str]:
    """The same engines without the hook that drains them, in a Deployment that no InferenceService owns."""
    namespace.kubectl("scale", "infsvc", "smollm2", "--replicas=0")
    deployment, service = (without_owner(namespace.get(kind, "smollm2")) for kind in ("deployment", "service"))
    template = deployment["spec"]["template"]
    del template["spec"]["containers"][0]["lifecycle"]
    deployment["spec"]["replicas"] = 2
    for labels in (template["metadata"]["labels"], deployment["spec"]["selector"]["matchLabels"]):
        labels["serving.stoker.dev/service"] = UNDRAINED
    service["spec"]["selector"]["serving.stoker.dev/service"] = UNDRAINED
    for address in ("clusterIP", "clusterIPs"):
        del service["spec"][address]
    namespace.stage.kubectl.apply(deployment, service)
    namespace.kubectl("rollout", "status", f"deployment/{UNDRAINED}", "--timeout=180s", timeout_seconds=200)
    yield UNDRAINED
    namespace.kubectl("delete", "deployment", UNDRAINED, "--wait=false")


def without_owner(rendered: Json) -> Json:
    """A copy of an object under another name, with nothing of what the operator and the API server added."""
    found = copy.deepcopy(rendered)
    labels = {**found["metadata"]["labels"], "serving.stoker.dev/service": UNDRAINED}
    found["metadata"] = {"name": UNDRAINED, "namespace": found["metadata"]["namespace"], "labels": labels}
    found.pop("status")
    return found


def test_without_the_drain_a_scale_down_loses_streams(namespace: Namespace, undrained: str) -> None:
    with load(namespace, namespace.url(undrained), STREAMS, TOKENS) as clients:
        clients.await_open(STREAMS)
        namespace.kubectl("scale", "deployment", undrained, "--replicas=1")
        until(lambda: bool(clients.now()["lost"]), "streams are lost", 60, clients.now)
        outcome = clients.finish()

    assert sum(outcome["lost"].values()) > 0
