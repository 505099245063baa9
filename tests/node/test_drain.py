"""N10: no request dies of a rollout or of a scale-down; without the drain some do."""

import copy
from collections.abc import Iterator

import pytest

from tests.node.support import Json, Namespace, quickstart, until
from tests.node.watching import load

STREAMS = 100
# Some of them pause, or wait for their first token.
CLIENTS = 150
TOKENS = 16
PAUSE_SECONDS = 2.0
ROLLED_SECONDS = 300.0
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
    return {pod["metadata"]["name"] for pod in namespace.pods_of("smollm2")}


def test_N10_a_rollout_loses_no_stream(namespace: Namespace) -> None:
    old = names(namespace)

    with load(namespace, namespace.url(), CLIENTS, TOKENS, pause_seconds=PAUSE_SECONDS) as clients:
        clients.await_streaming(STREAMS)
        namespace.apply(small(pod={"annotations": {"example.com/rolled": "once"}}))
        until(lambda: names(namespace).isdisjoint(old), "no old pod is left", ROLLED_SECONDS, clients.now)
        namespace.await_ready()
        outcome = clients.finish()

    assert outcome["lost"] == {}
    assert outcome["completed"] > STREAMS


def test_N10_a_scale_down_loses_no_stream(namespace: Namespace) -> None:
    with load(namespace, namespace.url(), CLIENTS, TOKENS, pause_seconds=PAUSE_SECONDS) as clients:
        clients.await_streaming(STREAMS)
        namespace.kubectl("scale", "infsvc", "smollm2", "--replicas=1")
        until(lambda: len(names(namespace)) == 1, "one pod is left", ROLLED_SECONDS, clients.now)
        outcome = clients.finish()

    assert outcome["lost"] == {}
    assert outcome["completed"] > STREAMS


@pytest.fixture(scope="module")
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
    yield UNDRAINED
    namespace.kubectl("delete", "deployment", UNDRAINED, "--wait=false")


def without_owner(rendered: Json) -> Json:
    """A copy of an object under another name, with nothing of what the operator and the API server added."""
    found = copy.deepcopy(rendered)
    labels = {**found["metadata"]["labels"], "serving.stoker.dev/service": UNDRAINED}
    found["metadata"] = {"name": UNDRAINED, "namespace": found["metadata"]["namespace"], "labels": labels}
    found.pop("status")
    return found


@pytest.mark.parametrize("change", [("rollout", "restart"), ("scale", "--replicas=1")], ids=["rollout", "scale_down"])
def test_without_the_drain_streams_are_lost(namespace: Namespace, undrained: str, change: tuple[str, str]) -> None:
    namespace.kubectl("rollout", "status", f"deployment/{undrained}", "--timeout=180s", timeout_seconds=200)
    with load(namespace, namespace.url(undrained), CLIENTS, TOKENS, pause_seconds=PAUSE_SECONDS) as clients:
        clients.await_streaming(STREAMS)
        assert clients.now()["lost"] == {}
        namespace.kubectl(*change, f"deployment/{undrained}")
        until(lambda: any(map(is_stream, clients.now()["lost"])), "streams are lost", 120, clients.now)


def is_stream(lost: str) -> bool:
    """Whether a lost request was a stream, and none of those that keep their connection."""
    return lost.startswith("stream ")
