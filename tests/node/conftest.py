"""The operator on the real node, once for the whole tier."""

import re
import secrets
from collections.abc import Iterator

import pytest

from clusters.kubectl import Kubectl
from clusters.local import LocalCluster
from tests.node.support import Namespace, Stage


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


@pytest.fixture(scope="module")
def namespace(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """A namespace for the tests of one module, with the demo's model on a claim; its services go with it."""
    subject = re.sub(r"[^a-z0-9]+", "-", request.module.__name__.rsplit("test_", 1)[-1])
    # On a cluster that is kept the namespace of an earlier run may still be going, and its volume stays released.
    found = stage.namespace(f"node-{subject}-{secrets.token_hex(3)}")
    yield found
    found.delete()
