"""Run a program to its end: a list of arguments, a time limit, and an error that quotes what the program said."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from clusters.errors import ClusterError

TAIL_LINES = 25
# kubectl quotes whole objects in some of its complaints.
LINE_CHARACTERS = 500


def run(
    argv: Sequence[str | Path],
    *,
    timeout_seconds: float,
    stdin: str | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """Run a program and return its standard output.

    `env` is added to this process's environment. Raises ClusterError when the program is missing, fails, or runs
    longer than `timeout_seconds`; the message holds the last lines of what it printed.
    """
    words = [str(word) for word in argv]
    try:
        done = subprocess.run(
            words,
            input="" if stdin is None else stdin,
            cwd=cwd,
            env={**os.environ, **env} if env else None,
            timeout=timeout_seconds,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except FileNotFoundError as error:
        raise ClusterError(f"{words[0]} is not installed: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"`{' '.join(words)}` ran longer than {timeout_seconds:.0f} s and was ended") from error
    if done.returncode:
        raise ClusterError(_failure(words, done.returncode, done.stderr or done.stdout))
    return done.stdout


def succeeds(argv: Sequence[str | Path], *, timeout_seconds: float = 30) -> bool:
    """Whether a program runs and ends with status 0."""
    try:
        run(argv, timeout_seconds=timeout_seconds)
    except ClusterError:
        return False
    return True


def _failure(words: Sequence[str], status: int, said: str) -> str:
    tail = "\n".join(f"  {line[:LINE_CHARACTERS]}" for line in said.strip().splitlines()[-TAIL_LINES:])
    return f"`{' '.join(words)}` ended with status {status}:\n{tail}"
