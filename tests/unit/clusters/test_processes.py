"""Programs are found again after their starter was killed, and nobody else's process is ever signalled."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clusters import janitor, paths
from clusters.errors import ClusterError
from clusters.processes import Processes, ProcessRecord, end, is_alive, read_records, start_ticks, write_records

SLEEP = ["sleep", "600"]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own."""
    monkeypatch.setenv("STOKER_CACHE", str(tmp_path))
    return tmp_path


def await_gone(pid: int) -> None:
    """Wait until a process is gone."""
    deadline = time.monotonic() + 10
    while start_ticks(pid) is not None:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_program_runs_until_it_is_stopped(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.spawn("sleeper", SLEEP)
    (record,) = processes.records()
    assert processes.is_running("sleeper")
    processes.stop("sleeper")
    assert not is_alive(record)
    assert processes.records() == []


def test_a_program_that_ignores_sigterm_is_ended_by_force(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); "
    processes.spawn("stubborn", [sys.executable, "-c", f"{deaf} time.sleep(600)"])
    while "deaf" not in processes.tail("stubborn"):
        time.sleep(0.02)
    (record,) = processes.records()
    processes.stop(grace_seconds=0.2)
    assert not is_alive(record)


def test_a_tied_program_dies_with_the_process_that_started_it(tmp_path: Path) -> None:
    program = (
        "import time; from pathlib import Path; from clusters.processes import Processes;"
        f"Processes(Path({str(tmp_path)!r})).spawn('sleeper', {SLEEP!r}); print('started', flush=True); time.sleep(600)"
    )
    starter = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=dict(os.environ))
    assert starter.stdout is not None
    assert starter.stdout.readline() == b"started\n"
    (record,) = read_records(tmp_path)
    assert is_alive(record)
    starter.kill()
    starter.wait()
    starter.stdout.close()
    await_gone(record.pid)


def test_a_process_with_the_same_id_but_another_start_is_left_alone() -> None:
    bystander = subprocess.Popen(SLEEP)
    try:
        ticks = start_ticks(bystander.pid)
        assert ticks is not None
        end([ProcessRecord("recycled", bystander.pid, ticks - 1)], grace_seconds=0.1)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_a_paused_program_may_still_end_in_its_own_way(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    tidy = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit('tidied up')); "
    processes.spawn("tidy", [sys.executable, "-c", f"{tidy} print('begun', flush=True); time.sleep(600)"])
    while "begun" not in processes.tail("tidy"):
        time.sleep(0.02)
    (record,) = processes.records()
    processes.pause("tidy")
    state = Path(f"/proc/{record.pid}/stat")
    while state.read_text().split()[2] != "T":
        time.sleep(0.02)
    processes.stop()
    assert not is_alive(record)
    assert "tidied up" in processes.tail("tidy")


def test_a_resumed_program_goes_on(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    counting = "import itertools, time\nfor n in itertools.count(): print(n, flush=True); time.sleep(0.02)"
    processes.spawn("counter", [sys.executable, "-c", counting])
    processes.pause("counter")
    processes.resume("counter")
    before = processes.tail("counter")
    deadline = time.monotonic() + 10
    while processes.tail("counter") == before:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    processes.stop()


def test_the_error_for_a_program_that_ended_holds_its_last_words(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.spawn("brief", ["bash", "-c", "echo cannot bind port 6443"])
    await_gone(processes.records()[0].pid)
    with pytest.raises(ClusterError, match=r"brief ended unexpectedly[^$]*cannot bind port 6443"):
        processes.require_running("brief")


def test_pausing_a_program_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"no program named etcd runs in .*; there are: none"):
        Processes(tmp_path).pause("etcd")


def test_the_janitor_ends_what_a_killed_run_left_and_spares_what_is_in_use(cache: Path) -> None:
    left, used = paths.clusters_root() / "control-plane-1", paths.clusters_root() / "control-plane-2"
    programs = {folder: Processes(folder, tied=False) for folder in (left, used)}
    for folder, processes in programs.items():
        folder.mkdir(parents=True)
        processes.spawn("sleeper", SLEEP)
        janitor.claim(folder)
    gone = subprocess.Popen(["true"])
    gone.wait()
    paths.write_atomically(left / "owner.json", f'{{"name": "owner", "pid": {gone.pid}, "start_ticks": 1}}')
    (orphan,), (other,) = read_records(left), read_records(used)
    try:
        assert janitor.sweep("control-plane-") == [left]
        programs[left].await_exit("sleeper")
        assert not is_alive(orphan)
        assert not left.exists()
        assert is_alive(other)
        assert used.exists()
    finally:
        programs[used].stop()


def test_the_janitor_leaves_folders_that_nobody_claimed(cache: Path) -> None:
    folder = paths.clusters_root() / "control-plane-3"
    write_records(folder, [])
    assert janitor.sweep("control-plane-") == []
    assert folder.exists()


def test_a_record_that_cannot_be_read_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "processes.json").write_text('[{"pid":')
    assert read_records(tmp_path) == []
