"""Everything in this folder runs against a real control plane with nodes that kwok plays."""

from pathlib import Path

import pytest

pytest_plugins = ["clusters.pytest_plugin"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder with its tier."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.cluster)
