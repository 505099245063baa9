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
from tests.node.watching import load, watched

START_SECONDS = 600.0
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

pytestmark = pytest.mark.usefixtures("ready")


@pytest.fixture(scope="module")
def ready(namespace: Namespace) -> Iterator[Hub]:
    """Both services, started together and Ready; one has downloaded its model from the hub."""
    vllm_cpu.provide_libraries(namespace)
    vllm_cpu.provide_model(namespace)
    with serving(namespace.stage.cluster, vllm_cpu.model()) as hub:
        namespace.apply(vllm_cpu.from_hub("half", OPEN, hub))
        namespace.apply(vllm_cpu.service("eighth", **EIGHTH))
        for name in TOKENS:
            namespace.await_ready(name, START_SECONDS)
        yield hub


def test_vllm_downloads_from_the_hub_and_the_status_says_what_that_is_worth(namespace: Namespace, ready: Hub) -> None:
    verified = condition(namespace.service("half"), "ModelVerified")

    assert ready.asked == {OPEN}
    assert (verified["status"], verified["reason"]) == ("Unknown", "NotVerified")


def pod_of(namespace: Namespace, name: str) -> Json:
    """Return the only pod of a service."""
    (pod,) = (p for p in namespace.engine_pods() if p["metadata"]["labels"]["serving.stoker.dev/service"] == name)
    return pod


@pytest.mark.parametrize("name", TOKENS)
def test_the_kv_cache_holds_what_the_status_says(namespace: Namespace, name: str) -> None:
    expected = TOKENS[name]
    page = namespace.fetch(f"http://{pod_of(namespace, name)['status']['podIP']}:8000/metrics")
    (line,) = (line for line in page.splitlines() if line.startswith("vllm:cache_config_info{"))
    figures = dict(re.findall(r'(\w+)="([^"]*)"', line))

    assert int(figures["num_gpu_blocks"]) * int(figures["block_size"]) == expected
    assert namespace.service(name)["status"]["layout"]["kvTokens"] == expected


@pytest.mark.parametrize("name", TOKENS)
def test_it_answers_a_chat(namespace: Namespace, name: str) -> None:
    answer = namespace.chat("What is the capital of France?", name, temperature=0)

    assert answer["model"] == name
    assert answer["choices"][0]["message"]["content"].strip()
    assert container_of(pod_of(namespace, name), "engine")["restartCount"] == 0


def process_of(namespace: Namespace, pod: Json, title: bytes) -> int:
    """Return the process of an engine whose title has these words."""
    return next(each for each in namespace.processes(pod, "engine") if title in command_of(each))


def test_a_worker_that_stops_under_load_has_the_engine_restarted(namespace: Namespace) -> None:
    pod = pod_of(namespace, "half")
    worker = process_of(namespace, pod, b"EngineCore")

    with (
        watched(namespace, pod["metadata"]["name"]) as watch,
        load(namespace, namespace.url("half"), 1, 1500, "half") as one,
    ):
        one.await_streaming(1)
        time.sleep(5)  # the agent has read that a request runs
        os.kill(worker, signal.SIGSTOP)
        until(lambda: watch.restarts() == 1, "the engine is restarted", HANG_SECONDS, watch.seen)

    assert "no token or step was counted" in namespace.kubectl("logs", pod["metadata"]["name"], "-c", "agent")
    namespace.await_condition("Warm", "True", "half", START_SECONDS)


def test_a_killed_worker_makes_the_pod_not_ready_within_ten_seconds_and_a_stopped_server_is_restarted(
    namespace: Namespace,
) -> None:
    pod = pod_of(namespace, "eighth")

    with watched(namespace, pod["metadata"]["name"]) as watch:
        killed = time.monotonic()
        os.kill(process_of(namespace, pod, b"EngineCore"), signal.SIGKILL)
        until(lambda: watch.first(False, after=killed) is not None, "not Ready", 60, watch.seen, 0.1)
        lost = watch.first(False, after=killed)
        assert lost is not None
        assert lost - killed < NOT_READY_SECONDS
        until(lambda: watch.first(True, after=lost) is not None, "Ready again", START_SECONDS, watch.seen)
        assert watch.restarts() == 1

        os.kill(namespace.processes(namespace.get("pod", pod["metadata"]["name"]), "engine")[0], signal.SIGSTOP)
        until(lambda: watch.restarts() == 2, "the engine is restarted", HANG_SECONDS, watch.seen)
