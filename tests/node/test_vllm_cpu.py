"""vLLM on the CPU serves from what the operator rendered, and holds what `status.layout` says."""

import os
import re
import signal
import time

import pytest

from tests.node import vllm_cpu
from tests.node.hub import OPEN
from tests.node.support import Json, condition, container_of, until
from tests.node.vllm_cpu import START_SECONDS, Vllm
from tests.node.watching import watched

# On two idle cores its imports take 10 s and its end 4 s. Without the hold, SIGKILL comes after 449 s.
YOUNG_GONE_SECONDS = 200.0
YOUNG = {"context": {"maxLength": 8192}, "resources": {"cpu": "500m", "memory": "5Gi"}}
NOT_READY_SECONDS = 10.0
# By service: the tokens that its KV cache holds.
TOKENS = {"half": 57_856, "eighth": 64_896}


def test_an_engine_that_is_deleted_while_it_imports_is_gone_before_its_grace_period(vllm_starting: Vllm) -> None:
    """Beside the start of the others, which is waited for in any case."""
    namespace = vllm_starting.namespace
    namespace.apply(vllm_cpu.service("young", **YOUNG))
    until(lambda: runs(namespace.pods_of("young")), "the engine's container runs", START_SECONDS)
    namespace.kubectl("delete", "infsvc", "young", "--wait=false")

    took = until(lambda: not namespace.pods_of("young"), "the pod is gone", START_SECONDS)
    assert took < YOUNG_GONE_SECONDS


def runs(pods: list[Json]) -> bool:
    """Whether the engine of the only pod runs."""
    started = pods[0]["status"].get("containerStatuses") if pods else None
    return bool(started) and "running" in container_of(pods[0], "engine")["state"]


def test_vllm_downloads_from_the_hub_and_the_status_says_what_that_is_worth(vllm: Vllm) -> None:
    verified = condition(vllm.namespace.service("half"), "ModelVerified")

    assert vllm.hub.asked == {OPEN}
    assert (verified["status"], verified["reason"]) == ("Unknown", "NotVerified")


@pytest.mark.parametrize("name", TOKENS)
def test_the_kv_cache_holds_what_the_status_says(vllm: Vllm, name: str) -> None:
    namespace, expected = vllm.namespace, TOKENS[name]
    page = namespace.fetch(f"http://{namespace.the_pod(name)['status']['podIP']}:8000/metrics")
    (line,) = (line for line in page.splitlines() if line.startswith("vllm:cache_config_info{"))
    figures = dict(re.findall(r'(\w+)="([^"]*)"', line))

    assert int(figures["num_gpu_blocks"]) * int(figures["block_size"]) == expected
    assert namespace.service(name)["status"]["layout"]["kvTokens"] == expected


@pytest.mark.parametrize("name", TOKENS)
def test_it_answers_a_chat(vllm: Vllm, name: str) -> None:
    answer = vllm.namespace.chat("What is the capital of France?", name, temperature=0)

    assert answer["model"] == name
    assert answer["choices"][0]["message"]["content"].strip()
    assert container_of(vllm.namespace.the_pod(name), "engine")["restartCount"] == 0


def test_an_engine_whose_core_is_killed_is_not_ready_within_ten_seconds_and_recovers(vllm: Vllm) -> None:
    pod = vllm.namespace.the_pod("eighth")
    with watched(vllm.namespace, pod["metadata"]["name"]) as watch:
        killed = time.monotonic()
        os.kill(vllm.core("eighth"), signal.SIGKILL)
        until(lambda: watch.first(False, after=killed) is not None, "not Ready", 60, watch.seen, 0.1)
        lost = watch.first(False, after=killed)
        assert lost is not None
        assert lost - killed < NOT_READY_SECONDS
        until(lambda: watch.first(True, after=lost) is not None, "Ready again", START_SECONDS, watch.seen)
        assert watch.restarts() == 1
