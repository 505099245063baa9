"""The operator on the real node, once for the whole tier."""

import re
import secrets
from collections.abc import Iterator

import pytest

from clusters.kubectl import Kubectl
from clusters.local import LocalCluster
from tests.node.support import Namespace, Stage


@pytest.fixture(scope="session")
def stage(local_cluster: LocalCluster) -> Stage:
    """The cluster with the operator installed by its chart."""
    found = Stage(local_cluster, Kubectl(local_cluster.kubeconfig))
    found.install()
    return found


@pytest.fixture(scope="module")
def namespace(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """A namespace for the tests of one module, with the demo's model on a claim; its services go with it."""
    subject = re.sub(r"[^a-z0-9]+", "-", request.module.__name__.rsplit("test_", 1)[-1])
    # On a cluster that is kept the namespace of an earlier run may still be going, and its volume stays released.
    found = stage.namespace(f"node-{subject}-{secrets.token_hex(3)}")
    yield found
    found.delete()
