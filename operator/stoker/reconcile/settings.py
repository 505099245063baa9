"""What the operator itself brings into a decision."""

from dataclasses import dataclass

from stoker import __version__


@dataclass(frozen=True, slots=True)
class Settings:
    """``agent_image`` is the operator's own image, from which the agent runs; ``renderer_version`` the operator's."""

    agent_image: str = f"ghcr.io/stoker-dev/stoker:{__version__}"
    renderer_version: str = __version__
