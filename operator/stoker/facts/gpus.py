"""GPUs by the product label that GPU feature discovery puts on nodes (``nvidia.com/gpu.product``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from stoker.facts.quantization import Capability


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU model. ``memory_mib`` is what its driver reports (``nvidia-smi``), which is less than its name says."""

    product: str
    memory_mib: int
    capability: Capability


_TABLE: Final[Mapping[Capability, Mapping[str, int]]] = {
    (7, 0): {"Tesla-V100-SXM2-16GB": 16384, "Tesla-V100-SXM2-32GB": 32768, "Tesla-V100-PCIE-32GB": 32768},
    (7, 5): {"Tesla-T4": 15360},
    (8, 0): {
        "NVIDIA-A100-SXM4-40GB": 40960,
        "NVIDIA-A100-PCIE-40GB": 40960,
        "NVIDIA-A100-SXM4-80GB": 81920,
        "NVIDIA-A100-80GB-PCIe": 81920,
        "NVIDIA-A800-SXM4-80GB": 81920,
        "NVIDIA-A30": 24576,
    },
    (8, 6): {
        "NVIDIA-A2": 15356,
        "NVIDIA-A10": 23028,
        "NVIDIA-A10G": 23028,
        "NVIDIA-A16": 15356,
        "NVIDIA-A40": 46068,
        "NVIDIA-RTX-A5000": 24564,
        "NVIDIA-RTX-A6000": 49140,
        "NVIDIA-GeForce-RTX-3090": 24576,
    },
    (8, 9): {
        "NVIDIA-L4": 23034,
        "NVIDIA-L20": 46068,
        "NVIDIA-L40": 46068,
        "NVIDIA-L40S": 46068,
        "NVIDIA-RTX-6000-Ada-Generation": 49140,
        "NVIDIA-GeForce-RTX-4090": 24564,
    },
    (9, 0): {
        "NVIDIA-H100-80GB-HBM3": 81559,
        "NVIDIA-H100-PCIe": 81559,
        "NVIDIA-H100-NVL": 95830,
        "NVIDIA-H800": 81559,
        "NVIDIA-H20": 97871,
        "NVIDIA-H200": 143771,
        "NVIDIA-H200-NVL": 143771,
        "NVIDIA-GH200-480GB": 97871,
    },
    (10, 0): {"NVIDIA-B200": 183359, "NVIDIA-GB200": 189471},
    (10, 3): {"NVIDIA-B300-SXM6-AC": 275040},
    (12, 0): {
        "NVIDIA-GeForce-RTX-5090": 32607,
        "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition": 97887,
        "NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition": 97887,
    },
}
GPUS: Final[Mapping[str, Gpu]] = {
    product: Gpu(product, memory_mib, capability)
    for capability, products in _TABLE.items()
    for product, memory_mib in products.items()
}
"""All GPUs of the table by product. A node's own labels are better wherever there is a node."""


def known_gpu(product: str) -> Gpu | None:
    """Return a GPU by its product label; the suffix of a shared GPU does not change what it is."""
    return GPUS.get(product.removesuffix("-SHARED"))
