"""Fixtures of the tests that need the operator to run."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from clusters.controlplane import ControlPlane
from stoker.kube.client import Client
from stoker.kube.config import load_configuration
from tests.builders.cluster import install_crd
from tests.cluster.support import Stage, create_node, gpu_nodes, rights

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def stage_plane() -> Iterator[ControlPlane]:
    """A control plane of its own, so that the operator does not act on the objects of other tests."""
    with ControlPlane() as plane:
        install_crd(plane)
        plane.apply(*rights())
        for builder in gpu_nodes():
            create_node(plane, builder)
        yield plane


@pytest.fixture(scope="session")
async def stage(stage_plane: ControlPlane) -> AsyncIterator[Stage]:
    """The control plane with two replicas of the operator."""
    client = Client(await load_configuration(str(stage_plane.kubeconfig)))
    found = Stage(stage_plane, client)
    found.start_operator()
    await found.leader()
    yield found
    found.stop_operator()
    await client.close()


@pytest.fixture
def new_team(stage_plane: ControlPlane) -> Iterator[Callable[[], str]]:
    """A function that makes a namespace; all of them are deleted after the test."""
    made: list[str] = []

    def make() -> str:
        name = f"team-{next(_NUMBERS)}"
        stage_plane.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        made.append(name)
        return name

    yield make
    for name in made:
        stage_plane.call("DELETE", f"/api/v1/namespaces/{name}")


@pytest.fixture
def team(new_team: Callable[[], str]) -> str:
    """The name of a fresh namespace."""
    return new_team()
