"""What is known of the nodes does not depend on the order in which they were seen."""

import itertools

from stoker.plan.landing import PRODUCT_LABEL, landing_of
from tests.builders.specs import a_spec
from tests.builders.views import a_node


def test_N2_the_order_of_nodes_moves_nothing() -> None:
    """Another replica, or the same one after a restart, has seen them in another order, and writes no status for it."""
    nodes = (
        a_node("b", gpus=8, labels={PRODUCT_LABEL: "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb"}),
        a_node("a", gpus=4, labels={PRODUCT_LABEL: "NVIDIA-L4-SHARED"}),
        a_node("c", gpus=2),
    )
    spec = a_spec().set("accelerator", {}).build()
    found = {landing_of(spec, order) for order in itertools.permutations(nodes)}
    assert [landing.parts[0] for landing in found] == ["a (NVIDIA-L4-SHARED)"]
