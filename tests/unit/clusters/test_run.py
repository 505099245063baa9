"""A program that fails is reported in its own words, within bounds."""

import sys
import time
from pathlib import Path

import pytest

from clusters import progress
from clusters.errors import ClusterError
from clusters.run import run, succeeds


def python(code: str) -> list[str]:
    """A program of one line."""
    return [sys.executable, "-c", code]


def test_what_it_printed_comes_back() -> None:
    assert run(python("print(input()[::-1])"), stdin="abc", timeout_seconds=10) == "cba\n"


def test_it_never_waits_for_input_that_nobody_gives() -> None:
    with pytest.raises(ClusterError, match="EOFError"):
        run(python("input()"), timeout_seconds=10)


def test_the_error_holds_status_and_last_words_of_bounded_length() -> None:
    code = "import sys; print('\\n'.join(['x' * 10_000] * 100 + ['disk is full']), file=sys.stderr); sys.exit(3)"
    with pytest.raises(ClusterError, match=r"ended with status 3[^$]*disk is full") as caught:
        run(python(code), timeout_seconds=10)
    assert len(str(caught.value)) < 20_000


def test_one_that_takes_too_long_is_ended() -> None:
    started = time.monotonic()
    with pytest.raises(ClusterError, match="ran longer than 1 s and was ended"):
        run(["sleep", "60"], timeout_seconds=1)
    assert time.monotonic() - started < 30


def test_one_that_is_not_installed_is_named() -> None:
    with pytest.raises(ClusterError, match="no-such-program is not installed"):
        run(["no-such-program"], timeout_seconds=1)
    assert not succeeds(["no-such-program"])


def test_a_long_step_says_how_long_it_has_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.step("building", heartbeat_seconds=0.05):
        time.sleep(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "  building ..."
    assert lines[1] == "  building ... 0 s"
    assert lines[-1] == "  building: done in 0 s"


def test_a_step_that_fails_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ClusterError), progress.step("building"):
        raise ClusterError("no compiler")
    assert capsys.readouterr().err.splitlines()[-1] == "  building: failed after 0 s"


@pytest.mark.parametrize(("seconds", "said"), [(0.4, "0 s"), (59.9, "59 s"), (60, "1 min 00 s"), (754, "12 min 34 s")])
def test_durations_are_said_as_people_do(seconds: float, said: str) -> None:
    assert progress.elapsed(seconds) == said


def test_programs_run_where_they_are_told_to(tmp_path: Path) -> None:
    assert run(["pwd"], cwd=tmp_path, timeout_seconds=10).strip() == str(tmp_path)
