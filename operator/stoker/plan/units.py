"""Bytes for people and for Kubernetes."""

from __future__ import annotations

from typing import Final

MIB: Final = 2**20
GIB: Final = 2**30


def shown(count: int) -> str:
    """Return bytes for people: ``1.5 GiB``."""
    for unit, size in (("TiB", 2**40), ("GiB", GIB), ("MiB", MIB), ("KiB", 1024)):
        if abs(count) >= size:
            return f"{count / size:.2f}".rstrip("0").rstrip(".") + f" {unit}"
    return f"{count} B"


def quantity(count: int) -> str:
    """Return bytes as a Kubernetes quantity that is not smaller: ``1536Mi``, ``2Gi``."""
    mib = -(-count // MIB)
    return f"{mib // 1024}Gi" if mib % 1024 == 0 else f"{mib}Mi"
