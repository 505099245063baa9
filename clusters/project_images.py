"""The images of this project: what each is made from. `python -m clusters.project_images` builds them."""

import sys
from collections.abc import Iterator
from pathlib import Path

from clusters.errors import ClusterError
from clusters.images import Recipe, build
from stoker import __version__

ROOT = Path(__file__).resolve().parents[1]
PUBLISHER = "ghcr.io/stoker-dev"
STOKER = f"{PUBLISHER}/stoker:{__version__}"
LLAMA_CPP = f"{PUBLISHER}/llama-cpp:{__version__}"


def stoker() -> Recipe:
    """The operator, the agent and the command line."""
    folder = ROOT / "images/stoker"
    return Recipe(
        reference=STOKER,
        containerfile=folder / "Containerfile",
        sources={
            "stoker": ROOT / "operator/stoker",
            **{name: folder / name for name in ("stoker-command", "stoker-main")},
        },
        requirements=ROOT / "requirements/operator.txt",
    )


def llama_cpp() -> Recipe:
    """llama.cpp's server for the CPU."""
    folder = ROOT / "images/llama-cpp"
    return Recipe(
        reference=LLAMA_CPP,
        containerfile=folder / "Containerfile",
        sources={name: folder / name for name in ("llama_server", "llama-server")},
        requirements=folder / "requirements.txt",
    )


def recipes() -> Iterator[Recipe]:
    """Every image of the project."""
    yield llama_cpp()
    yield stoker()


def main() -> int:
    """Build the images and print their archives."""
    try:
        for recipe in recipes():
            print(f"{recipe.reference}  {build(recipe)}")
    except ClusterError as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
