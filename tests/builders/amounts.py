"""Amounts of a node as people write them in YAML: what Kubernetes takes for a quantity, and what it refuses."""

from collections.abc import Mapping

from stoker.plan.landing import GPU_RESOURCE

Amount = tuple[str, str]
"""Name of the resource, and the value as YAML has it."""

GOOD_AMOUNTS: Mapping[Amount, str] = {
    ("memory", "8"): "8",
    ("memory", "4.5"): "4.5",
    ("memory", "+5"): "5",
    ("memory", '"+5"'): "5",
    ("memory", ".5"): "0.5",
    ("memory", '"5."'): "5",
    ("memory", '"-0"'): "0",
    ("memory", "0x10"): "16",
    ("memory", "1e3"): "1000",
    ("memory", "1E21"): "1e21",
    ("memory", '"1e-3"'): "0.001",
    ("memory", '"1E+3"'): "1000",
    ("memory", "1E"): "1e18",
    ("memory", "1k"): "1000",
    ("memory", "1.5Ki"): "1536",
    ("memory", '" 8Gi "'): "8589934592",
    ("memory", "3Ei"): "3458764513820540928",
    ("memory", '"000000000000000000000000000008"'): "8",
    ("cpu", "1500m"): "1.5",
    ("cpu", "2500000u"): "2.5",
    ("cpu", "3000000000n"): "3",
    (GPU_RESOURCE, "8000m"): "8",
    (GPU_RESOURCE, "8.0"): "8",
}
"""Amount -> the number that it stands for."""

BAD_AMOUNTS: Mapping[Amount, str] = {
    **{
        ("memory", text): "is no quantity; write one such as 8, 3920m, 64Gi or 1e9"
        for text in (
            "1K", "1ki", "1Kib", "1mi", "1 Gi", "64GB", '"1,5"', "1.5.2", '"0x10"', '"1_000"', "1e", '"1e1.5"',
            "1:30", "lots", '""', '"Infinity"', '"NaN"', '"++5"', "true", "[1]", "{a: 1}", "1e3m",
        )
    },
    ("memory", "-1"): "is less than nothing; write 0 or more",
    ("cpu", "-500m"): "is less than nothing; write 0 or more",
    (GPU_RESOURCE, "1.5"): "is no whole number; write how many there are, such as 8",
    (GPU_RESOURCE, "1n"): "is no whole number; write how many there are, such as 8",
}  # fmt: skip
"""Amount -> what is said of it."""


def node_with(resource: str, text: str) -> str:
    """A node that offers one thing, as YAML."""
    return f"apiVersion: v1\nkind: Node\nmetadata: {{name: a}}\nstatus:\n  allocatable: {{{resource}: {text}}}\n"
