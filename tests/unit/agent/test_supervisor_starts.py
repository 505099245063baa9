"""A supervisor that cannot start a worker at once."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stoker.agent.supervisor import Supervisor


def refuse(*_: Any, **__: Any) -> None:
    """Start no process, as the kernel does when memory or process numbers are short."""
    raise BlockingIOError(11, "Resource temporarily unavailable")


def test_a_worker_that_cannot_be_started_is_tried_again_and_leaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", refuse)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        watched = Supervisor(listening)
        before = len(list(Path("/proc/self/fd").iterdir()))
        watched._one_life()
        watched._one_life()
        assert (watched.deaths, len(list(Path("/proc/self/fd").iterdir()))) == (2, before)
