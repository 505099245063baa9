"""What a diagnosis looks at, and what it says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.plan.snapshot import ContainerView, NodeView, PodView
from stoker.plan.types import Layout

ENGINE, AGENT = "engine", "agent"
"""Names of the containers of a pod."""

NODES_UNKNOWN = "what the nodes have is not known, since the operator's role does not allow to list and watch them"
"""Said in place of what nodes offer."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a pod does not serve. ``message`` names the field to change and the value that it has or should have.

    ``stalled``: no waiting cures it, somebody has to act.
    """

    reason: str
    message: str
    stalled: bool


@dataclass(frozen=True, slots=True)
class Case:
    """One pod that does not serve, and what bears on it."""

    pod: PodView
    spec: InferenceServiceSpec | None = None
    layout: Layout | None = None
    nodes: tuple[NodeView, ...] = ()
    held: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    held_is_known: bool = True
    nodes_are_known: bool = True
    ending: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """What pods of the same service that are ending still hold, by node and resource; ``held`` counts it too."""
    replaced: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """What pods of older revisions hold, by node and resource; ``held`` counts it too."""
    strategy: str | None = None
    """The way in which pods are replaced now, whoever chose it; None where no revision is known."""

    def container(self, name: str) -> ContainerView | None:
        """Return the state of a container; None before the kubelet has told any."""
        return next((container for container in self.pod.containers if container.name == name), None)

    @property
    def engine(self) -> ContainerView | None:
        """The engine's container."""
        return self.container(ENGINE)

    @property
    def last_words(self) -> str:
        """What the engine said before it ended badly; empty where it did not."""
        engine = self.engine
        ended = engine is not None and engine.exit_code not in (None, 0)
        return (engine.last_words or "") if engine is not None and ended else ""


Policy = Callable[[Case], Diagnosis | None]
"""One step of the chain: a diagnosis, or None where the case is not its own."""
