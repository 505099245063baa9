"""Where the local cluster keeps what it builds and what it runs."""

import os
from pathlib import Path

MODULES = Path(__file__).parent / "go"


def cache_root() -> Path:
    """The folder outside the work tree that survives it: `$STOKER_CACHE`, by default `~/.cache/stoker`."""
    return Path(os.environ.get("STOKER_CACHE") or Path.home() / ".cache" / "stoker")


def clusters_root() -> Path:
    """Where running clusters keep their state, one folder each."""
    return cache_root() / "clusters"


def write_atomically(path: Path, content: str, mode: int = 0o644) -> None:
    """Write a file whole or not at all: a reader, and a killed writer, never leave half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.touch(mode=mode)
    partial.write_text(content, encoding="utf-8")
    partial.replace(path)
