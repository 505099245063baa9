"""llama.cpp's own server judges what is rendered: it reads its arguments, then prints its help and ends.

`make parsers` builds it and sets STOKER_LLAMA_SERVER.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from stoker.engines.llama_table import llama_options
from tests.parsers.cases import golden_llama_cpp, rendered_llama_cpp


@pytest.fixture(scope="session")
def server() -> Path:
    """The program."""
    path = os.environ.get("STOKER_LLAMA_SERVER", "")
    if not path:
        pytest.fail("STOKER_LLAMA_SERVER names no llama-server; run make parsers")
    return Path(path)


def _judge(server: Path, *arguments: str) -> tuple[int, str]:
    """Return the exit status and the last words of the server for these arguments; no model is loaded."""
    result = subprocess.run([str(server), *arguments, "--help"], capture_output=True, timeout=60, check=False)
    return result.returncode, (result.stderr or result.stdout).decode(errors="replace").strip()[-300:]


@pytest.mark.parametrize(("name", "arguments"), sorted({**rendered_llama_cpp(), **golden_llama_cpp()}.items()))
def test_every_list_passes(server: Path, name: str, arguments: tuple[str, ...]) -> None:
    status, words = _judge(server, *arguments)
    assert status == 0, f"{name}: {words}"


@pytest.mark.parametrize(
    "arguments", [("--bogus",), ("--port=1",), ("-ngl=9",), ("-ngl9",), ("--parallel", "0"), ("--cache-type-k", "fp8")]
)
def test_the_judge_can_refuse(server: Path, arguments: tuple[str, ...]) -> None:
    assert _judge(server, *arguments)[0] != 0


def test_the_table_has_the_options_of_the_parser(server: Path) -> None:
    text = subprocess.run([str(server), "--help"], capture_output=True, timeout=60, check=True).stdout.decode()
    spellings = {word for line in text.splitlines() if line.startswith("-") for word in _spellings(line)}
    assert len(spellings) > 400
    assert {word for word in spellings if word not in llama_options().by_spelling} == set()


def _spellings(line: str) -> list[str]:
    """Return the options at the beginning of a line of the help; what follows describes them."""
    found = []
    for word in line.split():
        if re.fullmatch(r"--?[A-Za-z][\w.-]*,?", word) is None:
            break
        found.append(word.rstrip(","))
    return found
