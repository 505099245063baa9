"""The agent dies, in part or as a whole: the engine goes on, and so do its requests."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.node.support import Json, Namespace, command_of, container_of, is_ready, quickstart, until
from tests.node.watching import load, watched

STREAMS = 4
# A worker starts and answers within this time, on a machine that has other work too.
WORKER_SECONDS = 40
# A pod that is deleted before it has done anything ends within seconds; its grace period is more than two minutes.
QUICK_END_SECONDS = 60

pytestmark = pytest.mark.usefixtures("ready")


@pytest.fixture(scope="module")
def ready(namespace: Namespace) -> Namespace:
    """The quickstart, Ready."""
    namespace.apply(quickstart())
    namespace.await_ready()
    return namespace


def restarts(namespace: Namespace, pod: Json) -> dict[str, int]:
    """Return how often each container of a pod was restarted."""
    now = namespace.get("pod", pod["metadata"]["name"])
    return {name: container_of(now, name)["restartCount"] for name in ("engine", "agent")}


def worker(namespace: Namespace, pod: Json) -> int:
    """Wait for the agent's worker and return its pid on the host."""

    def found() -> list[int]:
        return [each for each in namespace.processes(pod, "agent") if b"stoker.agent.worker" in command_of(each)]

    until(
        lambda: bool(found()), "the agent has a worker", WORKER_SECONDS, lambda: namespace.processes(pod, "agent"), 0.1
    )
    return found()[0]


def test_a_worker_killed_three_times_under_load_is_not_noticed(namespace: Namespace) -> None:
    pod = namespace.the_pod()
    incarnation = namespace.agent_status(pod)["incarnation"]

    with load(namespace, namespace.url(), STREAMS, 24) as clients, watched(namespace, pod["metadata"]["name"]) as watch:
        clients.await_streaming(STREAMS)
        killed = [kill_worker(namespace, pod) for _ in range(3)]
        outcome = clients.finish()
        time.sleep(6)  # three readiness probes more: what goes wrong would be seen by now

    assert len(set(killed)) == 3
    assert outcome["lost"] == {}
    assert outcome["completed"] >= STREAMS
    assert all(ready for _, ready, _ in watch.seen())
    assert restarts(namespace, pod) == {"engine": 0, "agent": 0}
    status = namespace.agent_status(pod)
    assert (status["warm"], status["incarnation"]) == (True, incarnation)


def kill_worker(namespace: Namespace, pod: Json) -> int:
    """Kill the worker and wait until another one answers; returns the pid of the killed one."""
    process = worker(namespace, pod)
    os.kill(process, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{process}").exists(), "the killed worker is gone", 10, every=0.1)
    assert worker(namespace, pod) != process
    assert namespace.agent_status(pod, WORKER_SECONDS)["phase"] == "Ready"
    return process


def test_an_agent_that_dies_leaves_the_engine_and_its_streams_alone(namespace: Namespace) -> None:
    pod = namespace.the_pod()
    engine = namespace.processes(pod, "engine")[0]

    with load(namespace, namespace.url(), STREAMS, 240) as clients:
        clients.await_streaming(STREAMS)
        clients.stop.touch()
        os.kill(namespace.processes(pod, "agent")[0], signal.SIGKILL)
        until(lambda: restarts(namespace, pod)["agent"] == 1, "the agent is restarted", 60)
        still_open = clients.now()["streaming"]
        outcome = clients.finish()

    assert still_open > 0, "the streams ended before the agent did; they were too short to tell"
    assert (outcome["lost"], outcome["completed"]) == ({}, STREAMS)
    until(lambda: is_ready(namespace.the_pod()), "the pod is Ready again", 60)
    assert restarts(namespace, pod) == {"engine": 0, "agent": 1}
    assert namespace.processes(pod, "engine")[0] == engine
    assert namespace.agent_status(pod)["warm"]


def test_a_pod_deleted_as_its_agent_starts_does_not_wait_out_its_grace_period(namespace: Namespace) -> None:
    """The first process of a container loses a signal that it does not handle yet."""

    def every_agent_is_being_made() -> bool:
        pods = namespace.engine_pods()
        return len(pods) == 2 and all(pod["status"].get("initContainerStatuses") for pod in pods)

    namespace.kubectl("scale", "infsvc", "smollm2", "--replicas=2")
    until(every_agent_is_being_made, "a second pod begins", 60, every=0.05)
    namespace.kubectl("scale", "infsvc", "smollm2", "--replicas=1")
    until(lambda: len(namespace.get("pods")["items"]) == 1, "the second pod is gone", QUICK_END_SECONDS)
    assert is_ready(namespace.the_pod())


def test_N10_a_drain_outlives_the_agents_worker(namespace: Namespace) -> None:
    """The kubelet calls the hook once: it must wait on, over the death of the process that answers it."""
    pod = namespace.the_pod()

    with load(namespace, namespace.url(), STREAMS, 240) as clients:
        clients.await_streaming(STREAMS)
        clients.stop.touch()
        namespace.kubectl("delete", "pod", pod["metadata"]["name"], "--wait=false")
        await_draining(namespace, pod)
        for _ in range(2):
            process = worker(namespace, pod)
            os.kill(process, signal.SIGKILL)
            until(lambda: not Path(f"/proc/{process}").exists(), "the killed worker is gone", 10, every=0.1)  # noqa: B023 (called within the round)
            await_draining(namespace, pod)
        still_open = clients.now()["streaming"]
        outcome = clients.finish()

    assert still_open == STREAMS, "the streams ended before the worker did; they were too short to tell"
    assert (outcome["lost"], outcome["completed"]) == ({}, STREAMS)


def await_draining(namespace: Namespace, pod: Json) -> None:
    """Wait until the agent's worker says that it holds its engine."""

    def drains() -> bool:
        return bool(namespace.agent_status(pod, WORKER_SECONDS)["phase"] == "Draining")

    until(drains, "the agent drains", WORKER_SECONDS, every=0.1)
