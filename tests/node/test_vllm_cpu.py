"""vLLM on the CPU serves from what the operator rendered, holds what `status.layout` says, and is healed."""

import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.node import vllm_cpu
from tests.node.hub import OPEN, Hub, serving
from tests.node.support import Json, Namespace, condition, container_of, until
from tests.node.test_agent_dies import command_of
from tests.node.watching import PodWatch, load, watched

START_SECONDS = 600.0
# A minute for imports, the engine's own end, and what a busy machine adds; the grace period is longer by half a minute.
YOUNG_GONE_SECONDS = 60 + 45.0
# A minute without a token, or of silence; nine probes, ten seconds apart; the grace period; what a busy machine adds.
HANG_SECONDS = 60 + 9 * 10 + 20 + 40.0
NOT_READY_SECONDS = 10.0

EIGHTH: Mapping[str, Any] = {
    "quantization": {"kvCache": "fp8"},
    "context": {"maxLength": 1024},
    "resources": {"cpu": "500m", "memory": "4500Mi"},
}
# By service: the tokens that its KV cache holds.
TOKENS = {"half": 57_856, "eighth": 64_896}


@pytest.fixture(scope="module")
def starting(namespace: Namespace) -> Iterator[Hub]:
    """Both services, started together; one downloads its model from the hub."""
    vllm_cpu.provide_libraries(namespace)
    vllm_cpu.provide_model(namespace)
    with serving(namespace.stage.cluster, vllm_cpu.model()) as hub:
        namespace.apply(vllm_cpu.from_hub("half", OPEN, hub))
        namespace.apply(vllm_cpu.service("eighth", **EIGHTH))
        yield hub


@pytest.fixture(scope="module")
def ready(namespace: Namespace, starting: Hub) -> Hub:
    """Both services, Ready."""
    for name in TOKENS:
        namespace.await_ready(name, START_SECONDS)
    return starting


@pytest.mark.usefixtures("starting")
def test_an_engine_that_is_deleted_while_it_imports_is_gone_before_its_grace_period(namespace: Namespace) -> None:
    """Beside the start of the others, which is waited for in any case."""
    namespace.apply(vllm_cpu.service("young"))
    until(lambda: runs(namespace.pods_of("young")), "the engine's container runs", START_SECONDS)
    namespace.kubectl("delete", "infsvc", "young", "--wait=false")

    took = until(lambda: not namespace.pods_of("young"), "the pod is gone", START_SECONDS)
    assert took < YOUNG_GONE_SECONDS


def runs(pods: list[Json]) -> bool:
    """Whether the engine of the only pod runs."""
    return bool(pods) and "running" in container_of(pods[0], "engine")["state"]


def test_vllm_downloads_from_the_hub_and_the_status_says_what_that_is_worth(namespace: Namespace, ready: Hub) -> None:
    verified = condition(namespace.service("half"), "ModelVerified")

    assert ready.asked == {OPEN}
    assert (verified["status"], verified["reason"]) == ("Unknown", "NotVerified")


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize("name", TOKENS)
def test_the_kv_cache_holds_what_the_status_says(namespace: Namespace, name: str) -> None:
    expected = TOKENS[name]
    page = namespace.fetch(f"http://{namespace.the_pod(name)['status']['podIP']}:8000/metrics")
    (line,) = (line for line in page.splitlines() if line.startswith("vllm:cache_config_info{"))
    figures = dict(re.findall(r'(\w+)="([^"]*)"', line))

    assert int(figures["num_gpu_blocks"]) * int(figures["block_size"]) == expected
    assert namespace.service(name)["status"]["layout"]["kvTokens"] == expected


@pytest.mark.usefixtures("ready")
@pytest.mark.parametrize("name", TOKENS)
def test_it_answers_a_chat(namespace: Namespace, name: str) -> None:
    answer = namespace.chat("What is the capital of France?", name, temperature=0)

    assert answer["model"] == name
    assert answer["choices"][0]["message"]["content"].strip()
    assert container_of(namespace.the_pod(name), "engine")["restartCount"] == 0


def process_of(namespace: Namespace, pod: Json, title: bytes) -> int:
    """Return the process of an engine whose title has these words."""
    return next(each for each in namespace.processes(pod, "engine") if title in command_of(each))


@pytest.mark.usefixtures("ready")
def test_stopped_and_killed_processes_are_found_and_the_engines_healed(namespace: Namespace) -> None:
    """Both engines at the same time: what is waited for is mostly silence."""
    half, eighth = namespace.the_pod("half"), namespace.the_pod("eighth")

    with (
        watched(namespace, half["metadata"]["name"]) as stopped,
        watched(namespace, eighth["metadata"]["name"]) as killed,
        load(namespace, namespace.url("half"), 1, 1500, "half") as one,
    ):
        one.await_streaming(1)
        time.sleep(5)  # the agent has read that a request runs
        core_stopped = time.monotonic()
        os.kill(process_of(namespace, half, b"EngineCore"), signal.SIGSTOP)

        a_killed_core_is_not_ready_within_ten_seconds_and_recovers(namespace, eighth, killed)
        server_stopped = time.monotonic()
        os.kill(namespace.processes(namespace.get("pod", eighth["metadata"]["name"]), "engine")[0], signal.SIGSTOP)

        # The load goes on until then: a core that stops while nothing runs is found later, by the agent's own question.
        until(lambda: stopped.restarts() >= 1, "the engine of a stopped core is restarted", HANG_SECONDS, stopped.seen)
        until(lambda: killed.restarts() >= 2, "the stopped server is restarted", HANG_SECONDS, killed.seen)
        assert stopped.restarted_at(1) - core_stopped < HANG_SECONDS
        assert killed.restarted_at(2) - server_stopped < HANG_SECONDS

    assert "no token or step was counted" in namespace.kubectl("logs", half["metadata"]["name"], "-c", "agent")
    for name in TOKENS:
        namespace.await_condition("Warm", "True", name, START_SECONDS)


def a_killed_core_is_not_ready_within_ten_seconds_and_recovers(
    namespace: Namespace, pod: Json, watch: PodWatch
) -> None:
    killed = time.monotonic()
    os.kill(process_of(namespace, pod, b"EngineCore"), signal.SIGKILL)
    until(lambda: watch.first(False, after=killed) is not None, "not Ready", 60, watch.seen, 0.1)
    lost = watch.first(False, after=killed)
    assert lost is not None
    assert lost - killed < NOT_READY_SECONDS
    until(lambda: watch.first(True, after=lost) is not None, "Ready again", START_SECONDS, watch.seen)
    assert watch.restarts() == 1
