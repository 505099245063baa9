"""`make test` tells the truth about every tier, and ends what it started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clusters import tiers
from clusters.processes import start_ticks
from clusters.tiers import Result, Tier

MAKEFILE = """\
passes: ; @echo 'collected'; echo '31 passed, 2 skipped in 25.49s'
fails: ; @echo '= 1 failed, 30 passed in 2.1s ='; exit 1
silent: ; @exit 2
slow: ; @echo begun; sleep 600
asks: ; @read answer && echo "got $$answer"
"""


@pytest.fixture
def makefile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with targets that end in different ways."""
    (tmp_path / "Makefile").write_text(MAKEFILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("target", "outcome", "summary"),
    [
        ("passes", "passed", "31 passed, 2 skipped in 25.49s"),
        ("fails", "failed", "1 failed, 30 passed in 2.1s"),
        ("silent", "failed", ""),
        ("absent", "failed", ""),
        ("asks", "failed", ""),
    ],
)
def test_a_tier_is_what_its_target_says(makefile: Path, target: str, outcome: str, summary: str) -> None:
    result = tiers.run(Tier(target, 30))
    assert (result.outcome, result.summary) == (outcome, summary)


def test_a_tier_never_waits_for_a_person(makefile: Path) -> None:
    reading, writing = os.pipe()
    terminal = os.dup(0)
    os.dup2(reading, 0)
    try:
        os.write(writing, b"yes\n")
        assert tiers.run(Tier("asks", 30)).outcome == "failed"
    finally:
        os.dup2(terminal, 0)
        for each in (reading, writing, terminal):
            os.close(each)


def test_a_tier_that_hangs_is_ended_with_all_that_it_started(
    makefile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.monotonic()
    assert tiers.run(Tier("slow", 1)).outcome == "took too long"
    assert time.monotonic() - started < 30
    assert "begun" in capsys.readouterr().out


@pytest.mark.parametrize("outcomes", [["passed", "failed"], ["took too long", "passed"]])
def test_one_tier_that_did_not_pass_fails_the_whole(
    outcomes: list[str], monkeypatch: pytest.MonkeyPatch, makefile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = iter(Result("unit", outcome, 1.0) for outcome in outcomes)
    monkeypatch.setattr(tiers, "TIERS", tuple(Tier("unit", 1) for _ in outcomes))
    monkeypatch.setattr(tiers, "PREPARE", Tier("passes", 10))
    monkeypatch.setattr(tiers, "run", lambda _: next(results))
    assert tiers.main() == 1
    assert capsys.readouterr().out.rstrip().endswith("make test: FAILED")


def test_all_tiers_that_passed_pass_the_whole(
    monkeypatch: pytest.MonkeyPatch, makefile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tiers, "TIERS", (Tier("passes", 30, prepared=True),))
    monkeypatch.setattr(tiers, "PREPARE", Tier("silent", 10))
    assert tiers.main() == 0
    last = capsys.readouterr().out.rstrip().splitlines()[-2:]
    assert last[0].split()[:2] == ["passes", "passed"]
    assert last[0].endswith("31 passed, 2 skipped in 25.49s")
    assert last[1] == "make test: passed"


def test_what_make_started_ends_when_make_is_killed(tmp_path: Path) -> None:
    program = """
import os, time
from clusters import lifetime
lifetime.end_with_parent()
print(os.getpid(), flush=True)
time.sleep(600)
"""
    (tmp_path / "program.py").write_text(program)
    (tmp_path / "Makefile").write_text(f"run: ; @{sys.executable} program.py\n")
    environment = {**os.environ, "STOKER_END_WITH_PARENT": "1", "PYTHONPATH": str(Path.cwd())}
    with subprocess.Popen(["make", "run"], stdout=subprocess.PIPE, cwd=tmp_path, env=environment) as make:
        assert make.stdout is not None
        pid = int(make.stdout.readline())
        make.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 10
    while start_ticks(pid) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
