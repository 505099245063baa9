"""Fixtures for tests that need a real cluster. Load it with `pytest_plugins = ["clusters.pytest_plugin"]`."""

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from clusters import lifetime
from clusters.controlplane import ControlPlane, Options
from clusters.local import LocalCluster

TEST_CLUSTER = "stoker-test"
_NUMBERS = itertools.count(1)


def pytest_configure() -> None:
    """Let SIGTERM end a run as Ctrl-C does: with its clusters taken down."""
    lifetime.end_with_parent()


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """One control plane for the whole session, with kwok for nodes that carry its annotation.

    Namespaces enforce Pod Security `restricted`. A test keeps to namespaces and nodes of its own.
    """
    with ControlPlane() as plane:
        yield plane


@pytest.fixture(scope="session")
def local_cluster() -> Iterator[LocalCluster]:
    """One cluster with a real node for the whole session.

    `$STOKER_TEST_CLUSTER` names a cluster to use instead, which is brought up where it is not and stays afterwards: so
    a single test can be run again and again without waiting for its cluster.
    """
    kept = os.environ.get("STOKER_TEST_CLUSTER")
    cluster = LocalCluster(kept or TEST_CLUSTER, Options(tied=not kept))
    cluster.up()
    yield cluster
    if not kept:
        cluster.down()


@pytest.fixture
def new_namespace(control_plane: ControlPlane) -> Iterator[Callable[..., str]]:
    """A function that makes a fresh namespace, with labels where given; all of them are deleted after the test."""
    made: list[str] = []

    def make(**labels: str) -> str:
        name = f"test-{next(_NUMBERS)}"
        metadata = {"name": name, "labels": labels}
        control_plane.call("POST", "/api/v1/namespaces", {"metadata": metadata})
        made.append(name)
        return name

    yield make
    for name in made:
        control_plane.call("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def namespace(new_namespace: Callable[..., str]) -> str:
    """The name of a fresh namespace."""
    return new_namespace()


@pytest.fixture
def new_nodes(control_plane: ControlPlane) -> Iterator[Callable[..., None]]:
    """A function that creates nodes, see `tests/builders/nodes.py`; they are deleted after the test.

    Nodes belong to the whole cluster: one that stays would offer its GPUs to every later test.
    """
    made: list[str] = []

    def make(*nodes: Mapping[str, Any]) -> None:
        made.extend(node["metadata"]["name"] for node in nodes)
        control_plane.apply(*nodes)

    yield make
    if made:
        control_plane.kubectl("delete", "node", *made, "--ignore-not-found")
