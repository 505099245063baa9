"""Nodes as a cluster with the GPU operator shows them: device plugin resources, GPU feature discovery labels."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

# As `nvidia-smi` reports it for each product (MiB), with the compute capability and the family of its label.
_PRODUCTS: Mapping[str, tuple[int, str, str]] = {
    "NVIDIA-A100-SXM4-40GB": (40960, "8.0", "ampere"),
    "NVIDIA-A100-SXM4-80GB": (81920, "8.0", "ampere"),
    "NVIDIA-L4": (23034, "8.9", "ada-lovelace"),
    "NVIDIA-L40S": (46068, "8.9", "ada-lovelace"),
    "NVIDIA-H100-80GB-HBM3": (81559, "9.0", "hopper"),
    "NVIDIA-H200": (143771, "9.0", "hopper"),
    "NVIDIA-B200": (183359, "10.0", "blackwell"),
    "Tesla-T4": (15360, "7.5", "turing"),
}
# Usable memory (MiB), streaming multiprocessors, compute slices; less than the profile's name says.
_MIG_PROFILES: Mapping[str, tuple[int, int, int]] = {
    "1g.5gb": (4864, 14, 1),
    "1g.10gb": (9728, 16, 1),
    "1g.18gb": (16384, 16, 1),
    "2g.20gb": (19968, 32, 2),
    "3g.20gb": (19968, 42, 3),
    "3g.40gb": (40192, 48, 3),
    "7g.80gb": (80384, 112, 7),
}


@dataclass(frozen=True, slots=True)
class NodeBuilder:
    """Builds a Node step by step; each step returns a new builder: `node("a").gpus(8).taint("x").build()`."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    unschedulable: bool = False

    def gpus(self, count: int, product: str = "NVIDIA-H100-80GB-HBM3", memory_mib: int | None = None) -> "NodeBuilder":
        """Whole GPUs of one product; `memory_mib` where the label says something else than the product's usual."""
        labels = _gpu_labels(count, product, memory_mib, strategy="none")
        return self._with(labels, {"nvidia.com/gpu": str(count)})

    def shared_gpus(self, count: int, replicas: int, product: str = "NVIDIA-H100-80GB-HBM3") -> "NodeBuilder":
        """Whole GPUs that the device plugin offers `replicas` times each, under the name `nvidia.com/gpu.shared`."""
        labels = _gpu_labels(count, product, None, strategy="none")
        sharing = {"nvidia.com/gpu.replicas": str(replicas), "nvidia.com/gpu.sharing-strategy": "time-slicing"}
        return self._with({**labels, **sharing}, {"nvidia.com/gpu.shared": str(count * replicas)})

    def mig(self, profile: str, count: int, product: str = "NVIDIA-H100-80GB-HBM3") -> "NodeBuilder":
        """`count` slices of a MIG profile, under the plugin's strategy `mixed`; call it once per profile."""
        resource = f"nvidia.com/mig-{profile.replace('+', '.')}"
        labels = {**_gpu_labels(1, product, None, strategy="mixed"), **_mig_labels(resource, profile, count, product)}
        return self._with(labels, {resource: str(count)})

    def mig_single(self, profile: str, count: int, product: str = "NVIDIA-H100-80GB-HBM3") -> "NodeBuilder":
        """`count` slices of one profile, under the strategy `single`: each is a `nvidia.com/gpu`, only labels tell."""
        labels = {
            **_gpu_labels(1, product, None, strategy="single"),
            **_mig_labels("nvidia.com/gpu", profile, count, product),
        }
        return self._with(labels, {"nvidia.com/gpu": str(count)})

    def label(self, key: str, value: str) -> "NodeBuilder":
        """One more label."""
        return self._with({key: value}, {})

    def resource(self, name: str, quantity: str) -> "NodeBuilder":
        """Set one resource, allocatable and capacity alike."""
        return self._with({}, {name: quantity})

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> "NodeBuilder":
        """One more taint."""
        return replace(self, taints=(*self.taints, {"key": key, "value": value, "effect": effect}))

    def cordoned(self) -> "NodeBuilder":
        """Take no new pods."""
        return replace(self, unschedulable=True)

    def build(self) -> dict[str, Any]:
        """The Node object, with kwok's annotation, ready to be created together with its status."""
        spec: dict[str, Any] = {"taints": [dict(taint) for taint in self.taints]} if self.taints else {}
        if self.unschedulable:
            spec["unschedulable"] = True
        basic = {"kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": self.name,
                "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {**basic, "type": "kwok", **self.labels},
            },
            "spec": spec,
            "status": {"allocatable": dict(self.resources), "capacity": dict(self.resources)},
        }

    def _with(self, labels: Mapping[str, str], resources: Mapping[str, str]) -> "NodeBuilder":
        return replace(self, labels={**self.labels, **labels}, resources={**self.resources, **resources})


def node(name: str, cpu: str = "64", memory: str = "512Gi", pods: str = "110") -> NodeBuilder:
    """A node without GPUs."""
    resources = {"cpu": cpu, "memory": memory, "ephemeral-storage": "1Ti", "pods": pods}
    return NodeBuilder(name, resources=resources)


def _gpu_labels(count: int, product: str, memory_mib: int | None, strategy: str) -> dict[str, str]:
    memory, capability, family = _PRODUCTS[product]
    major, minor = capability.split(".")
    return {
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": product,
        "nvidia.com/gpu.count": str(count),
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.memory": str(memory_mib or memory),
        "nvidia.com/gpu.family": family,
        "nvidia.com/gpu.compute.major": major,
        "nvidia.com/gpu.compute.minor": minor,
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": str(major in {"8", "9", "10"} and minor == "0").lower(),
        "nvidia.com/mig.strategy": strategy,
        "nvidia.com/cuda.driver-version.full": "580.65.06",
        "nvidia.com/cuda.driver-version.major": "580",
        "nvidia.com/cuda.runtime-version.full": "13.0",
    }


def _mig_labels(resource: str, profile: str, count: int, product: str) -> dict[str, str]:
    memory, processors, slices = _MIG_PROFILES[profile]
    values = {
        "product": f"{product}-MIG-{profile}",
        "count": str(count),
        "replicas": "1",
        "sharing-strategy": "none",
        "memory": str(memory),
        "multiprocessors": str(processors),
        "slices.gi": str(slices),
        "slices.ci": str(slices),
    }
    return {f"{resource}.{suffix}": value for suffix, value in values.items()}
