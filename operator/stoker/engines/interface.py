"""What an engine is to the rest of Stoker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from stoker.agent.config import EngineMetrics
from stoker.api.faults import Fault
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.plan.types import EngineTraits, Layout

MODEL_MOUNT: Final = "/models"
"""Where the claim of a ``pvc://`` model is mounted."""


@dataclass(frozen=True, slots=True)
class EnvVar:
    """A variable of the engine container: a literal value, or a key of a Secret."""

    name: str
    value: str | None = None
    secret_name: str | None = None
    secret_key: str | None = None


@dataclass(frozen=True, slots=True)
class WritablePath:
    """A path that the engine writes to; the root file system is read-only. ``memory`` means a memory-backed volume."""

    name: str
    mount_path: str
    size_bytes: int | None = None
    memory: bool = False


@dataclass(frozen=True, slots=True)
class Invocation:
    """How an engine is started: everything of its container that the engine decides.

    ``command`` and ``args`` are an argv from here to ``execve``: never a string for a shell (N11).
    """

    image: str
    command: tuple[str, ...]
    args: tuple[str, ...]
    env: tuple[EnvVar, ...]
    port: int
    health_path: str
    metrics: EngineMetrics
    writable_paths: tuple[WritablePath, ...]
    user_id: int
    group_id: int
    model_path: str | None
    """Where the root of the model's claim is mounted, read-only; None when the engine downloads the model.

    The whole claim, not the model's folder alone: a snapshot of the Hub's cache links to files beside it.
    """
    longest_prefill_seconds: int
    """How long a healthy engine may show no progress while requests run."""
    deaf_seconds: int = 0
    """For how long after its start the engine may have no handler for SIGTERM, which the kernel then drops.

    It has one at the latest a moment after it has bound its port.
    """


class Engine(Protocol):
    """One engine. Methods are pure."""

    name: str

    def default_image(self, spec: InferenceServiceSpec) -> str:
        """Return the image for ``spec.engine.version``, ``spec.engine.image`` aside."""

    def version(self, spec: InferenceServiceSpec) -> str | None:
        """Return the engine's version: the field, else the image's tag; None when neither says it."""

    def traits(self, spec: InferenceServiceSpec) -> EngineTraits:
        """Return what planning must know of this engine at this version."""

    def faults(self, spec: InferenceServiceSpec) -> Sequence[Fault]:
        """Return what this engine at this version cannot do, owned arguments in ``engine.args`` included."""

    def invocation(self, spec: InferenceServiceSpec, layout: Layout, service_name: str) -> Invocation:
        """Return how the engine is started for a layout. ``service_name`` is served where ``model.names`` is absent.

        Only for a spec without ``faults``: what the engine cannot do is not rendered.
        """
