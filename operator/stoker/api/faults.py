"""What is wrong with an object, said to the person who wrote it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One thing that is wrong with an object.

    ``path`` is the field as the user wrote it (``spec.parallelism.tensor``), ``problem`` what is wrong with it,
    ``remedy`` what would be right, ``reason`` a CamelCase word for conditions and programs.
    """

    path: str
    problem: str
    remedy: str
    reason: str = "InvalidSpec"

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}; {self.remedy}"


def join(path: str, *steps: str | int) -> str:
    """Return ``path`` extended by fields and list indices: ``join("spec", "env", 2) == "spec.env[2]"``."""
    for step in steps:
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path


def in_one_line(faults: Sequence[Fault], limit: int = 1024) -> str:
    """Return all faults as one message of at most ``limit`` bytes, as a condition holds it."""
    text = " | ".join(str(fault) for fault in faults).encode()
    if len(text) <= limit:
        return text.decode()
    return text[: limit - 3].decode(errors="ignore") + "..."
