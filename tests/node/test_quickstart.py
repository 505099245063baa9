"""The quickstart, as a user meets it: applied, ready, asked, scaled, stopped, deleted."""

import time

import pytest

from clusters.errors import ClusterError
from tests.node.support import Namespace, condition, container_of, quickstart, until

pytestmark = pytest.mark.usefixtures("ready")


@pytest.fixture(scope="module")
def ready(namespace: Namespace) -> Namespace:
    """The quickstart, applied and Ready."""
    namespace.apply(quickstart())
    namespace.await_ready()
    return namespace


def test_it_answers_a_chat_through_its_cluster_ip(namespace: Namespace) -> None:
    answer = namespace.chat("What is the capital of France?", temperature=0)

    assert answer["model"] == "smollm2-135m"
    assert answer["choices"][0]["message"]["content"].strip()
    assert answer["usage"]["completion_tokens"] > 0


def test_its_conditions_tell_the_truth(namespace: Namespace) -> None:
    service = namespace.service()
    states = {each["type"]: each["status"] for each in service["status"]["conditions"]}

    assert states == {
        "Ready": "True",
        "Available": "True",
        "UpToDate": "True",
        "Fits": "True",
        "Warm": "True",
        "ModelVerified": "Unknown",
    }
    assert service["status"]["observedGeneration"] == service["metadata"]["generation"]
    assert service["status"]["layout"]["kvTokens"] == 2048 * 4


def test_N3_the_stored_spec_is_the_applied_one(namespace: Namespace) -> None:
    stored = namespace.service()

    assert stored["spec"] == {**quickstart()["spec"], "replicas": 1}
    assert "finalizers" not in stored["metadata"]
    assert set(stored["metadata"].get("annotations", {})) == {"kubectl.kubernetes.io/last-applied-configuration"}


def test_no_container_was_restarted_and_none_has_a_token(namespace: Namespace) -> None:
    pod = namespace.the_pod()

    assert [container_of(pod, name)["restartCount"] for name in ("engine", "agent")] == [0, 0]
    assert pod["spec"]["automountServiceAccountToken"] is False


def test_scaling_by_kubectl_brings_a_second_engine(namespace: Namespace) -> None:
    namespace.kubectl("scale", "infsvc", "smollm2", "--replicas=2")
    until(lambda: namespace.service()["status"].get("readyReplicas") == 2, "two ready replicas", 120, namespace.service)

    assert condition(namespace.service(), "Ready")["status"] == "True"
    assert namespace.get("poddisruptionbudget", "smollm2")["spec"]["maxUnavailable"] == 1


def test_zero_replicas_are_ready_and_stopped(namespace: Namespace) -> None:
    namespace.kubectl("scale", "infsvc", "smollm2", "--replicas=0")
    until(lambda: condition(namespace.service(), "Ready").get("reason") == "Stopped", "Stopped", 60, namespace.service)
    # Until the last pod is gone it still answers: kube-proxy turns to draining pods where there are no others.
    until(lambda: not namespace.get("pods").get("items"), "no pod stays", 120)

    with pytest.raises(AssertionError, match=r"clusters\.ask"):
        namespace.chat("Is anybody there?")
    namespace.kubectl("scale", "infsvc", "smollm2", "--replicas=1")
    namespace.await_ready()


def test_N5_deleted_it_is_gone_within_thirty_seconds(namespace: Namespace) -> None:
    namespace.kubectl("delete", "infsvc", "smollm2", "--wait=false")
    started = time.monotonic()
    until(lambda: not namespace.service(), "the InferenceService is gone", 30)
    until(lambda: not namespace.get("deployment", "smollm2"), "its Deployment is gone", 30)

    assert time.monotonic() - started < 30
    until(lambda: not namespace.get("pods").get("items"), "its pods are gone within their grace period", 150)
    with pytest.raises(ClusterError):
        namespace.kubectl("get", "service", "smollm2")
