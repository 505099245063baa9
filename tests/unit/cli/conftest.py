"""The commands, run within the test's own process."""

import io
import sys
from typing import Any

import pytest

from stoker.cli.app import run


def stoker(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str, stdin: str = ""
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    monkeypatch.setattr(sys, "argv", ["stoker", *arguments])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
    code = run()
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(name="command")
def _command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda *arguments, stdin="": stoker(capsys, monkeypatch, *arguments, stdin=stdin)
