"""Long steps say how long they have run."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from clusters import progress
from clusters.progress import main

PROGRESS = str(progress.__file__)


def test_a_command_that_takes_long_tells_the_time_that_has_passed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["building it", "--", sys.executable, "-c", "import time; time.sleep(0.5)"], 0.1) == 0
    first, *beats, last = capsys.readouterr().err.splitlines()
    assert first == "  building it ..."
    assert beats
    assert all(re.fullmatch(r"  building it \.\.\. \d+ s", beat) for beat in beats), beats
    assert last.startswith("  building it: done in ")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["import sys; sys.exit(3)"], 3),
        (["import os, signal; os.kill(os.getpid(), signal.SIGTERM)"], 143),
    ],
)
def test_the_exit_code_of_the_command_is_that_of_the_step(
    capsys: pytest.CaptureFixture[str], words: list[str], code: int
) -> None:
    assert main(["building it", "--", sys.executable, "-c", *words]) == code
    assert "  building it: failed after " in capsys.readouterr().err


def test_a_program_that_is_missing_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["building it", "--", "/no/such/program"]) == 127
    assert capsys.readouterr().err.splitlines()[-1] == "  building it: there is no program /no/such/program"


@pytest.mark.parametrize("arguments", [[], ["building it"], ["building it", "--"], ["building it", "true", "--"]])
def test_a_step_without_a_command_is_told_how_to_write_one(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == "usage: progress.py TITLE -- COMMAND ...\n"


# A run in the background, or under nohup, hands ignored signals down, and a step keeps ignoring them.
HEAR = "import os, signal, sys; signal.signal(int(sys.argv[1]), signal.SIG_DFL); os.execv(sys.argv[2], sys.argv[2:])"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_whoever_ends_a_step_ends_its_command_and_all_that_it_started(number: int, code: int) -> None:
    children = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
    endless = "import os, time; print(os.getppid(), os.getpid(), flush=True); time.sleep(120)"
    words = [PROGRESS, "building it", "--", sys.executable, "-c", children, endless]
    heard = [sys.executable, "-c", HEAR, str(number), sys.executable, *words]
    with subprocess.Popen(heard, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout
        ours = [int(word) for word in started.stdout.readline().split()]
        assert len(ours) == 2
        started.send_signal(number)
        assert started.wait(30) == code
    assert [process for process in ours if is_alive(process)] == []


def is_alive(process: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has asked after yet does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return False
