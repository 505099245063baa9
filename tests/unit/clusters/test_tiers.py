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
leads: ; @touch led; for i in `seq 300`; do test -e followed && exit 0; sleep 0.1; done; exit 1
follows: ; @for i in `seq 300`; do test -e led && touch followed && exit 0; sleep 0.1; done; exit 1
"""


def run(tier: Tier) -> Result:
    """Run one tier, alone."""
    (result,) = tiers.side_by_side([(tier,)])
    return result


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
    result = run(Tier(target, 30))
    assert (result.outcome, result.summary) == (outcome, summary)


def test_a_tier_never_waits_for_a_person(makefile: Path) -> None:
    reading, writing = os.pipe()
    terminal = os.dup(0)
    os.dup2(reading, 0)
    try:
        os.write(writing, b"yes\n")
        assert run(Tier("asks", 30)).outcome == "failed"
    finally:
        os.dup2(terminal, 0)
        for each in (reading, writing, terminal):
            os.close(each)


def test_a_tier_that_hangs_is_ended_with_all_that_it_started(
    makefile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    started = time.monotonic()
    assert run(Tier("slow", 1)).outcome == "took too long"
    assert time.monotonic() - started < 30
    assert "begun" in capsys.readouterr().out


def test_lanes_run_side_by_side_and_every_line_says_whose_it_is(
    makefile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of the two needs the other to be running."""
    results = tiers.side_by_side([(Tier("leads", 60), Tier("passes", 30)), (Tier("follows", 60),)])
    assert {result.target: result.outcome for result in results} == dict.fromkeys(
        ("leads", "passes", "follows"), "passed"
    )
    assert "passes: collected" in capsys.readouterr().out.splitlines()


def test_a_lane_is_run_in_its_order_though_a_tier_fails(makefile: Path) -> None:
    results = tiers.side_by_side([(Tier("fails", 30), Tier("passes", 30))])
    assert [result.outcome for result in results] == ["failed", "passed"]


def test_lanes_that_are_interrupted_end_what_they_started(makefile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def interrupted(_: float) -> None:
        if (makefile / "led").exists():
            monkeypatch.setattr(time, "sleep", slept)
            raise KeyboardInterrupt

    popen, slept = subprocess.Popen, time.sleep

    def noted(*words: object, **rest: object) -> "subprocess.Popen[bytes]":
        process: subprocess.Popen[bytes] = popen(*words, **rest)  # type: ignore[call-overload]
        started.append(process.pid)
        return process

    monkeypatch.setattr(subprocess, "Popen", noted)
    monkeypatch.setattr(time, "sleep", interrupted)
    with pytest.raises(KeyboardInterrupt) as kept:  # with its frames: what nobody refers to ends by itself
        tiers.side_by_side([(Tier("slow", 60),), (Tier("leads", 60),)])
    assert len(started) == 2 and kept.traceback
    assert [pid for pid in started if start_ticks(pid) is not None] == []


LATE_OR_FAILED = [("passes", "fails", 30), ("slow", "passes", 2)]


@pytest.mark.parametrize(("first", "second", "limit"), LATE_OR_FAILED)
def test_one_tier_that_did_not_pass_fails_the_whole(
    first: str, second: str, limit: int, monkeypatch: pytest.MonkeyPatch, makefile: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(tiers, "LANES", ((Tier(first, limit),), (Tier(second, 30),)))
    monkeypatch.setattr(tiers, "ALONE", ())
    assert tiers.main() == 1
    assert capsys.readouterr().out.rstrip().endswith("make test: FAILED")


def test_all_tiers_that_passed_pass_the_whole(
    monkeypatch: pytest.MonkeyPatch, makefile: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Preparation that fails is told, and counts for nothing: what lacks its programs builds them, or fails."""
    monkeypatch.setattr(tiers, "LANES", ((Tier("silent", 10, counts=False),),))
    monkeypatch.setattr(tiers, "ALONE", (Tier("passes", 30),))
    assert tiers.main() == 0
    last = capsys.readouterr().out.rstrip().splitlines()[-3:]
    assert last[0].split()[:2] == ["silent", "failed"]
    assert last[1].split()[:2] == ["passes", "passed"]
    assert last[1].endswith("31 passed, 2 skipped in 25.49s")
    assert last[2] == "make test: passed"


def test_every_tier_is_a_target_of_the_makefile() -> None:
    targets = {line.split(":")[0] for line in Path("Makefile").read_text().splitlines() if ": venv" in line}
    assert {tier.target for lane in (*tiers.LANES, tiers.ALONE) for tier in lane} <= targets


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
