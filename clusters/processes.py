"""Long-running programs: started, recorded on disk, stopped, and found again after their starter was killed.

A record holds the process id and the start time in clock ticks since boot; only a process that matches both is ever
signalled, so an id that the kernel has given to somebody else since is left alone.
"""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from clusters import paths
from clusters.errors import ClusterError

STOP_SECONDS = 5.0
LAUNCH_SECONDS = 5.0
# Handles of programs that outlive this process: without them Python would warn that these still run.
_DETACHED: list["subprocess.Popen[bytes]"] = []
LAUNCHERS = ("nsenter", "unshare", "setpriv")


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """One process: its name in the cluster, its id, its start in clock ticks since boot."""

    name: str
    pid: int
    start_ticks: int


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None where it is gone or a zombie."""
    try:
        # The name in the second field may hold blanks and parentheses: count from its last one.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def is_alive(record: ProcessRecord) -> bool:
    """Whether the very process of a record still runs."""
    return start_ticks(record.pid) == record.start_ticks


def this_process() -> ProcessRecord:
    """A record of the calling process."""
    return ProcessRecord("owner", os.getpid(), start_ticks(os.getpid()) or 0)


def send(record: ProcessRecord, number: signal.Signals) -> None:
    """Signal the process of a record; nothing where it is gone."""
    with _handle(record) as handle:
        if handle is not None:
            signal.pidfd_send_signal(handle, number)


def end(records: Sequence[ProcessRecord], grace_seconds: float = STOP_SECONDS) -> None:
    """End processes together: first politely, after `grace_seconds` by force; returns when all are gone."""
    for record in records:
        # A stopped process cannot act on SIGTERM.
        send(record, signal.SIGCONT)
        send(record, signal.SIGTERM)
    deadline = time.monotonic() + grace_seconds
    for record in records:
        _await_end(record, deadline - time.monotonic())
    for record in records:
        send(record, signal.SIGKILL)
        _await_end(record, STOP_SECONDS)


@contextmanager
def _handle(record: ProcessRecord) -> Iterator[int | None]:
    try:
        handle = os.pidfd_open(record.pid)
    except ProcessLookupError:
        yield None
        return
    try:
        # Compared after opening: from here on the handle cannot come to mean another process.
        yield handle if is_alive(record) else None
    finally:
        os.close(handle)


def _await_launch(child: subprocess.Popen[bytes]) -> None:
    # Until the helpers of the prefix have handed over, the program does not yet die with this process.
    # The link to the program is there before the start is told to have succeeded; the name of the process comes later.
    program, deadline = Path(f"/proc/{child.pid}/exe"), time.monotonic() + LAUNCH_SECONDS
    with suppress(FileNotFoundError, ProcessLookupError):
        while program.readlink().name in LAUNCHERS and time.monotonic() < deadline:
            time.sleep(0.005)


def _join(pid: int, group: Path) -> None:
    with suppress(ProcessLookupError):
        (group / "cgroup.procs").write_text(str(pid))


def _await_end(record: ProcessRecord, timeout_seconds: float) -> None:
    with _handle(record) as handle:
        if handle is not None:
            select.select([handle], [], [], max(0.0, timeout_seconds))


@dataclass(slots=True)
class Processes:
    """The programs of one cluster.

    `tied` programs die with this process, whatever ends it; the others go on, and are found through the record on disk.
    `enter` is put before each command, to run it in namespaces; `group` is the cgroup that each joins.
    """

    folder: Path
    tied: bool = True
    enter: tuple[str, ...] = ()
    group: Path | None = None
    _children: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def spawn(self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None) -> None:
        """Start a program in the background, its output appended to `logs/<name>.log`, and record it."""
        log = self.log(name)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            child = subprocess.Popen(
                [*self._prefix(), *(str(word) for word in argv)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(env or {})},
                cwd=self.folder,
                # Of its own session, so that Ctrl-C reaches this process alone, which then stops them in order.
                start_new_session=True,
            )
        self._children[name] = child
        if not self.tied:
            _DETACHED.append(child)
        _await_launch(child)
        if self.group is not None:
            _join(child.pid, self.group)
        self._record([*self.records(), ProcessRecord(name, child.pid, start_ticks(child.pid) or 0)])

    def stop(self, *names: str, grace_seconds: float = STOP_SECONDS) -> None:
        """Stop the named programs, or all of them, together."""
        chosen = [record for record in self.records() if not names or record.name in names]
        end(chosen, grace_seconds)
        for record in chosen:
            self.await_exit(record.name)
        self._record([record for record in self.records() if record not in chosen])

    def await_exit(self, name: str, timeout_seconds: float = STOP_SECONDS) -> None:
        """Wait for the end of a program, if this process started it, and take note of it."""
        child = self._children.pop(name, None)
        if child is not None:
            child.wait(timeout=timeout_seconds)

    def pause(self, name: str) -> None:
        """Freeze a program (SIGSTOP): it keeps its connections and answers nothing."""
        send(self._running(name), signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Let a frozen program go on (SIGCONT)."""
        send(self._running(name), signal.SIGCONT)

    def records(self) -> list[ProcessRecord]:
        """The programs on record, started by this process or by an earlier one."""
        return read_records(self.folder)

    def is_running(self, name: str) -> bool:
        """Whether a program of that name is on record and alive."""
        self._reap(name)
        return any(record.name == name and is_alive(record) for record in self.records())

    def require_running(self, *names: str) -> None:
        """Raise ClusterError, with the end of its log, when one of the named programs has ended."""
        for name in names:
            if not self.is_running(name):
                raise ClusterError(f"{name} ended unexpectedly; the end of {self.log(name)}:\n{self.tail(name)}")

    def log(self, name: str) -> Path:
        """Where the output of a program is kept."""
        return self.folder / "logs" / f"{name}.log"

    def tail(self, name: str, lines: int = 15) -> str:
        """The last lines that a program printed, each indented."""
        log = self.log(name)
        said = log.read_text(errors="replace").splitlines()[-lines:] if log.exists() else []
        return "\n".join(f"  {line}" for line in said)

    def _prefix(self) -> list[str]:
        return [*self.enter, *(["setpriv", "--pdeathsig", "KILL", "--"] if self.tied else [])]

    def _running(self, name: str) -> ProcessRecord:
        for record in self.records():
            if record.name == name:
                return record
        known = ", ".join(record.name for record in self.records())
        raise ClusterError(f"no program named {name} runs in {self.folder}; there are: {known or 'none'}")

    def _reap(self, name: str) -> None:
        child = self._children.get(name)
        if child is not None:
            child.poll()

    def _record(self, records: Sequence[ProcessRecord]) -> None:
        write_records(self.folder, records)


def read_records(folder: Path) -> list[ProcessRecord]:
    """The processes on record in a cluster's folder; none where there is no readable record."""
    with suppress(FileNotFoundError, json.JSONDecodeError, TypeError):
        return [ProcessRecord(**entry) for entry in json.loads((folder / "processes.json").read_text())]
    return []


def write_records(folder: Path, records: Sequence[ProcessRecord]) -> None:
    """Replace the record of a cluster's processes."""
    paths.write_atomically(folder / "processes.json", json.dumps([asdict(record) for record in records], indent=1))
