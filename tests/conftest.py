"""Clusters for the tests that need one, and the tier of each test from the folder that it lies in."""

from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["clusters.pytest_plugin"]

# How long an example takes says more about the machine's other work than about the code.
settings.register_profile("stoker", deadline=None)
settings.load_profile("stoker")

TIERS = {Path(__file__).parent / "cluster": pytest.mark.cluster, Path(__file__).parent / "node": pytest.mark.node}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test with its tier."""
    for item in items:
        for folder, mark in TIERS.items():
            if folder in item.path.parents:
                item.add_marker(mark)
