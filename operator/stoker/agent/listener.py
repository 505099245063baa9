"""Which process listens on the engine's port, told apart by the inode of its listening socket.

The containers of a pod share a network namespace, so the kernel's socket table shows the engine's listening socket to
the agent although their process ids are hidden from each other. The inode changes with every restart of the engine and
survives a restart of the agent: it names one incarnation. Format: `Documentation/networking/proc_net_tcp.rst` of the
kernel; listening sockets come first, and a socket that is bound but does not listen is absent.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LISTEN_STATE: Final = b"0A"
TRIAL_ADDRESS: Final = "127.0.0.9"
"""A loopback address that nothing else uses. An engine binds every address, and this one with them."""
TABLE_LIMIT_BYTES: Final = 256 * 1024
_CHUNK_BYTES: Final = 32 * 1024


@dataclass(frozen=True, slots=True)
class Listener:
    """What the socket table says: not `known` where it cannot be read, no `identity` where nothing listens."""

    known: bool
    identity: str | None = None


def same_engine(one: str, other: str) -> bool:
    """Whether two identities share a socket: an engine may open one for each address family, one after the other."""
    host, _, inodes = one.rpartition("/")
    other_host, _, other_inodes = other.rpartition("/")
    return host == other_host and not set(inodes.split(",")).isdisjoint(other_inodes.split(","))


class ListenerReader:
    """Reads the socket table under `proc` for one port, and tries the port itself."""

    def __init__(self, port: int, proc: Path = Path("/proc")) -> None:
        self._port = port
        self._tables = (proc / "net/tcp", proc / "net/tcp6")
        self._host = _host_identity(proc)

    def read(self) -> Listener:
        """The present listener. Never raises: a table that cannot be read is `known=False`."""
        try:
            inodes = sorted(inode for table in self._tables for inode in _inodes(_listening_rows(table), self._port))
        except OSError:
            return Listener(known=False)
        if not inodes:
            return Listener(known=True)
        return Listener(known=True, identity=f"{self._host}/{','.join(map(str, inodes))}")

    def is_bound(self) -> bool:
        """Whether a process of the pod has bound the port, even if nothing listens on it yet, which no table shows.

        It is tried: a process that would bind the port in that moment fails. To be asked only of one that is to end.
        Connections of a former engine, which linger for a minute on addresses that were used, are not taken for it.
        """
        with socket.socket() as trial:
            try:
                trial.bind((TRIAL_ADDRESS, self._port))
            except OSError as error:
                return error.errno == errno.EADDRINUSE
        return False


def _host_identity(proc: Path) -> str:
    """Inodes count anew after a boot and per kernel, so an identity also names the boot and the network namespace."""
    try:
        boot = (proc / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink(proc / 'self/ns/net')}"  # noqa: PTH115 (not a path: "net:[4026531833]")
    except OSError:
        return "unknown"


def _listening_rows(table: Path) -> Iterator[bytes]:
    """Rows up to the first that is no listening socket: a busy pod has thousands of others behind it."""
    if table.name == "tcp6" and not table.exists():  # a kernel without IPv6
        return
    descriptor = os.open(table, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield from _rows(descriptor)
    finally:
        os.close(descriptor)


def _rows(descriptor: int) -> Iterator[bytes]:
    rest, total, header = b"", 0, True
    while total < TABLE_LIMIT_BYTES and (chunk := os.read(descriptor, _CHUNK_BYTES)):
        total += len(chunk)
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines[1:] if header else lines:
            if _state(line) != LISTEN_STATE:
                return
            yield line
        header = False


def _state(row: bytes) -> bytes:
    fields = row.split(maxsplit=4)
    return fields[3] if len(fields) > 3 else b""


def _inodes(rows: Iterator[bytes], port: int) -> Iterator[int]:
    wanted = b":%04X" % port
    for row in rows:
        fields = row.split()
        if len(fields) > 9 and fields[1].endswith(wanted) and fields[9].isdigit():
            yield int(fields[9])
