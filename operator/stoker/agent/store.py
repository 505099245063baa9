"""What an agent remembers over its own restarts, in one small file of its state directory.

The file is untrusted when it is read: too large, broken or of another version, it counts as absent, with a log line.
"""

from __future__ import annotations

import contextlib
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from stoker.agent.drain import Drain
from stoker.agent.listener import Listener, same_engine
from stoker.agent.state import State

FILE_NAME: Final = "agent-state.json"
FILE_LIMIT_BYTES: Final = 16 * 1024

log = logging.getLogger("stoker.agent")


class Saved(BaseModel):
    """The stored part of a state: which incarnation it was, how far it had come, and since when it is drained.

    That time is of the kernel's monotonic clock: it means something for as long as the same socket listens.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    incarnation: int = Field(ge=1, le=2**53)
    identity: str | None = Field(default=None, max_length=4096)
    started: bool = False
    warm: bool = False
    drain_began: float | None = Field(default=None, allow_inf_nan=False)


@dataclass(frozen=True, slots=True)
class Store:
    """The state file of one agent."""

    directory: Path

    @property
    def path(self) -> Path:
        """Where the state lies."""
        return self.directory / FILE_NAME

    def load(self) -> Saved | None:
        """The stored state; None where there is none that can be used. Never raises."""
        try:
            return Saved.model_validate_json(_bounded(self.path), strict=True)
        except FileNotFoundError:
            return None
        except (OSError, ValidationError, ValueError) as error:
            log.warning("the stored state cannot be used; starting afresh", extra={"reason": _short(error)})
            return None

    def save(self, saved: Saved) -> bool:
        """Replace the stored state in one step. False, with a log line, where that is not possible."""
        temporary = self.directory / f".{FILE_NAME}.new"
        try:
            temporary.write_text(saved.model_dump_json())
            temporary.replace(self.path)
        except OSError as error:
            log.warning(
                "the state cannot be stored; a restarted agent will warm up again", extra={"reason": str(error)}
            )
            with contextlib.suppress(OSError):
                temporary.unlink()
            return False
        return True


def _bounded(path: Path) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(FILE_LIMIT_BYTES + 1)
    if len(content) > FILE_LIMIT_BYTES:
        raise ValueError(f"longer than {FILE_LIMIT_BYTES} bytes")
    return content


def _short(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:3])
    return str(error)


def snapshot(state: State, drain_began: float | None = None) -> Saved:
    """What of a state is worth keeping."""
    return Saved(
        incarnation=state.incarnation,
        identity=state.identity,
        started=state.started,
        warm=state.started and state.warm,
        drain_began=drain_began,
    )


def resume(saved: Saved | None, listener: Listener, now: float) -> State:
    """The state to begin with: the stored one where the same socket still listens, else a new incarnation."""
    if saved is None:
        return State(since=now)
    if listener.identity is None or saved.identity is None or not same_engine(saved.identity, listener.identity):
        known_engine = saved.identity is not None or saved.started
        return State(incarnation=saved.incarnation + (1 if known_engine else 0), since=now)
    return State(
        incarnation=saved.incarnation,
        since=now,
        identity=listener.identity,
        listening=True,
        started_at=now if saved.started else None,
        warm=saved.started and saved.warm,
    )


def resume_drain(saved: Saved | None, state: State, now: float) -> Drain | None:
    """The drain that a worker left behind, over for now: its callers, where there still are any, take it up again."""
    if saved is None or saved.drain_began is None or state.incarnation != saved.incarnation or not state.warm:
        return None
    return Drain(began=min(saved.drain_began, now), incarnation=state.incarnation, over_at=now)
