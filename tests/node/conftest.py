"""The operator on the real node, once for the whole tier."""

import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clusters.kubectl import Kubectl
from clusters.local import LocalCluster
from tests.node import vllm_cpu
from tests.node.stopped import StoppedEngines, stopped
from tests.node.support import Namespace, Stage, quickstart
from tests.node.vllm_cpu import Vllm
from tests.node.watching import load

HERE = Path(__file__).parent
# Engines are stopped early, so that what became of them can be judged at the end, but after the tests that need the
# whole machine, its cores or its memory.
ORDER = {"test_hub": "test_drain.1", "test_vllm_cpu": "test_drain.2", "test_stopping": "test_drain.3"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort this tier's modules by name, but for those that have a place of their own."""
    places = [place for place, item in enumerate(items) if item.path.parent == HERE]
    ordered = sorted((items[place] for place in places), key=lambda item: ORDER.get(item.path.stem, item.path.stem))
    for place, item in zip(places, ordered, strict=True):
        items[place] = item


@pytest.fixture(scope="session")
def bare_stage(local_cluster: LocalCluster) -> Stage:
    """The cluster as it came up."""
    return Stage(local_cluster, Kubectl(local_cluster.kubeconfig))


@pytest.fixture(scope="session")
def demo(bare_stage: Stage) -> str:
    """What `make demo` printed; its operator stays for the other tests, its model does not."""
    said = bare_stage.demo()
    bare_stage.end_demo()
    return said


@pytest.fixture(scope="session")
def stage(bare_stage: Stage, demo: str) -> Stage:
    """The cluster with the operator on it, as the demo has left it."""
    return bare_stage


@pytest.fixture(scope="session")
def vllm_starting(stage: Stage) -> Iterator[Vllm]:
    """Two services of vLLM that were applied a moment ago."""
    with new_namespace(stage, "vllm") as namespace, vllm_cpu.serving_two(namespace) as services:
        yield services


@pytest.fixture(scope="session")
def vllm(vllm_starting: Vllm) -> Vllm:
    """Two services of vLLM, Ready."""
    for name in ("half", "eighth"):
        vllm_starting.namespace.await_ready(name, vllm_cpu.START_SECONDS)
    return vllm_starting


@pytest.fixture(scope="session")
def llama_cpp(stage: Stage) -> Iterator[Namespace]:
    """A namespace with an idle llama.cpp, Ready, that asks for little CPU."""
    with new_namespace(stage, "stopped") as namespace:
        namespace.apply(quickstart(resources={"cpu": "100m", "memory": "2Gi"}))
        namespace.await_ready()
        yield namespace


@pytest.fixture(scope="session")
def stopped_engines(vllm: Vllm, llama_cpp: Namespace) -> Iterator[StoppedEngines]:
    """Engines that are stopped within seconds of each other: no other test waits for their silence."""
    namespace = vllm.namespace
    with load(namespace, namespace.url("half"), clients=1, max_tokens=1500, model="half") as clients:
        clients.await_streaming(1)
        clients.stop.touch()
        time.sleep(5)  # the agent has read that a request runs; while none does, a core is found later, by asking
        pod = llama_cpp.the_pod()
        with (
            stopped(namespace, namespace.the_pod("half"), vllm.core("half")) as core,
            stopped(namespace, namespace.the_pod("eighth"), vllm.server("eighth")) as server,
            stopped(llama_cpp, pod, llama_cpp.processes(pod, "engine")[0]) as idle,
        ):
            yield StoppedEngines(idle, core, server)


@pytest.fixture(scope="module")
def namespace(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """A namespace for the tests of one module, with the demo's model on a claim; its services go with it."""
    subject = re.sub(r"[^a-z0-9]+", "-", request.module.__name__.rsplit("test_", 1)[-1])
    with new_namespace(stage, subject) as found:
        yield found


@contextmanager
def new_namespace(stage: Stage, subject: str) -> Iterator[Namespace]:
    """Have a namespace with the demo's model on a claim while the body runs."""
    # On a cluster that is kept the namespace of an earlier run may still be going, and its volume stays released.
    found = stage.namespace(f"node-{subject}-{secrets.token_hex(3)}")
    try:
        yield found
    finally:
        found.delete()
