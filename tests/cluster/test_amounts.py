"""What a node offers, as people write it: the command line and the API server take and refuse the same."""

import json
from pathlib import Path

import pytest

from clusters.controlplane import ControlPlane
from clusters.errors import ClusterError
from stoker.cli.inputs import read_nodes
from stoker.kube.quantities import quantity
from tests.builders.amounts import BAD_AMOUNTS, GOOD_AMOUNTS, Amount, node_with


def _stored(plane: ControlPlane, amount: Amount) -> str:
    words = ("create", "--dry-run=server", "-o", "json", "-f", "-")
    created = json.loads(plane.kubectl(*words, stdin=node_with(*amount)))
    return str(created["status"]["allocatable"][amount[0]])


@pytest.mark.parametrize("amount", GOOD_AMOUNTS, ids=": ".join)
def test_an_amount_that_the_command_line_takes_is_the_same_to_the_api_server(
    control_plane: ControlPlane, tmp_path: Path, amount: Amount
) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text(node_with(*amount))
    (view,) = read_nodes(str(file))
    thousand = 1000 if amount[0] == "cpu" else 1
    assert view.allocatable[amount[0]] == int(quantity(_stored(control_plane, amount)) * thousand)
    assert quantity(_stored(control_plane, amount)) == quantity(GOOD_AMOUNTS[amount])


@pytest.mark.parametrize("amount", [*BAD_AMOUNTS, ("memory", "!!float 1:30")], ids=": ".join)
def test_an_amount_that_the_command_line_refuses_is_refused_by_the_api_server(
    control_plane: ControlPlane, amount: Amount
) -> None:
    with pytest.raises(ClusterError):
        _stored(control_plane, amount)
