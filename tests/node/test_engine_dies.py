"""An engine that is killed, or only slow: what becomes of its pod. Stopped ones are judged in `test_stopped.py`."""

import json
import os
import signal
import time
from typing import Any

import pytest

from tests.node.cpu import cpu_seconds, throttled
from tests.node.support import Json, Namespace, container_of, is_ready, quickstart, throughout, until
from tests.node.watching import PodWatch, watched

NOT_READY_SECONDS = 10.0

pytestmark = pytest.mark.usefixtures("ready")


@pytest.fixture(scope="module")
def ready(namespace: Namespace) -> Namespace:
    """The quickstart with small batches, whose longest step is short too."""
    namespace.apply(quickstart(batching={"maxSequences": 4, "maxBatchedTokens": 512}))
    namespace.await_ready()
    return namespace


def main_process(namespace: Namespace, pod: Json) -> int:
    """Return the engine's main process, on the host."""
    return namespace.processes(pod, "engine")[0]


def engine_metric(namespace: Namespace, pod: Json, name: str) -> float:
    """Read a series of the engine's own metrics page."""
    page = namespace.fetch(f"http://{pod['status']['podIP']}:8000/metrics")
    return next(float(line.split()[1]) for line in page.splitlines() if line.startswith(f"{name} "))


def recovered(namespace: Namespace, pod: Json, watch: PodWatch, lost_at: float, seconds: float = 90.0) -> Json:
    """Wait until the pod is Ready again after a time, and return what its agent says at that moment."""
    name = pod["metadata"]["name"]
    until(lambda: watch.first(True, after=lost_at) is not None, f"{name} is Ready again", seconds, watch.seen, 0.1)
    return namespace.agent_status(pod)


def test_an_engine_busy_with_one_step_for_half_its_bound_is_left_alone(namespace: Namespace) -> None:
    pod = namespace.the_pod()
    bound = agent_config(pod)["longestPrefillSeconds"]
    before = cpu_seconds(namespace.processes(pod, "engine")[0])
    namespace.chat(long_prompt("Once"), max_tokens=1)
    needed = cpu_seconds(main_process(namespace, pod)) - before

    with (
        throttled(main_process(namespace, pod), needed / (0.6 * bound)),
        throughout(lambda: namespace.agent_status(pod)["reasons"]["liveness"] == NO_HANG, NO_HANG, every=2),
    ):
        started = time.monotonic()
        namespace.chat(long_prompt("Twice"), max_tokens=1)
        took = time.monotonic() - started

    assert took > bound / 2, f"{took:.0f} s are less than half of {bound} s; the step needed {needed:.1f} s of CPU"
    assert container_of(namespace.get("pod", pod["metadata"]["name"]), "engine")["restartCount"] == 0
    assert namespace.agent_status(pod)["incarnation"] == 1


NO_HANG = "no evidence of a hang"


def long_prompt(first: str) -> str:
    """A prompt of almost a whole batch, that shares no beginning with another one."""
    return f"{first} " + "upon a time there was a small engine that could. " * 37


def agent_config(pod: Json) -> dict[str, Any]:
    """The configuration of a pod's agent."""
    (agent,) = pod["spec"]["initContainers"]
    return dict(json.loads(next(each["value"] for each in agent["env"] if each["name"] == "STOKER_AGENT_CONFIG")))


def test_a_killed_engine_is_not_ready_within_ten_seconds_and_ready_only_when_warm(namespace: Namespace) -> None:
    pod = namespace.the_pod()
    assert is_ready(pod)
    before = namespace.agent_status(pod)["incarnation"]

    with watched(namespace, pod["metadata"]["name"]) as watch:
        killed = time.monotonic()
        os.kill(main_process(namespace, pod), signal.SIGKILL)
        until(lambda: watch.first(False, after=killed) is not None, "not Ready", 60, watch.seen, 0.1)
        lost = watch.first(False, after=killed)
        assert lost is not None
        status = recovered(namespace, pod, watch, lost)

    assert lost - killed < NOT_READY_SECONDS
    assert status["warm"]
    assert status["incarnation"] == before + 1
    # Nobody else has asked the new process for anything: what it has generated is the warm-up.
    assert engine_metric(namespace, pod, "llamacpp:tokens_predicted_total") > 0
    assert watch.restarts() == 1
