"""Long steps say how long they have run."""

import re
import sys

import pytest

from clusters.progress import main


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
