"""Callers of a drain, kept while the worker that answers them is replaced.

The kubelet asks for a drain once and waits on that one connection: where it closes, the hook has ended and the engine
is stopped under its running requests. So the worker hands a copy of each such connection to its supervisor, which keeps
it open over the worker's death and gives it to the next one. Both talk over a pair of Unix sockets that keeps the
bounds of messages: `.` is a sign of life, `+` comes with a connection to keep, `-` and a number let one go. The number
is the inode of the connection's socket, which all its copies share.

Nothing but the standard library is imported: the supervisor stays small.
"""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import dataclass, field
from typing import Final

HELD_LIMIT: Final = 16
"""More callers than this are not kept; they end with their worker."""
MESSAGE_BYTES: Final = 64
BEAT: Final = b"."
KEEP: Final = b"+"
DROP: Final = b"-"


def channel() -> tuple[socket.socket, socket.socket]:
    """The supervisor's end and the worker's. Raises OSError."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


@dataclass(frozen=True, slots=True)
class Handover:
    """The worker's end. A channel that is full has beats enough."""

    channel: socket.socket

    def beat(self) -> None:
        """Tell that the loops go round. Raises BrokenPipeError once the supervisor is gone."""
        with contextlib.suppress(BlockingIOError):
            self.channel.send(BEAT, socket.MSG_DONTWAIT)

    def keep(self, connection: int) -> int:
        """Have a connection outlive this worker; its number, for `drop`. Where that fails it ends as any other."""
        with contextlib.suppress(OSError):
            socket.send_fds(self.channel, [KEEP], [connection], socket.MSG_DONTWAIT)
        return os.fstat(connection).st_ino

    def drop(self, number: int) -> None:
        """Let a connection go that was answered, or whose caller has gone."""
        with contextlib.suppress(OSError):
            self.channel.send(DROP + b"%d" % number, socket.MSG_DONTWAIT)


@dataclass(slots=True)
class Held:
    """The supervisor's copies of connections, by the inode of their socket."""

    connections: dict[int, int] = field(default_factory=dict)

    def receive(self, end: socket.socket) -> bool:
        """Read one message; false once the worker has closed its end."""
        try:
            message, descriptors, _, _ = socket.recv_fds(end, MESSAGE_BYTES, HELD_LIMIT)
        except ConnectionResetError:
            return False
        for descriptor in descriptors:
            self._keep(descriptor)
        if message.startswith(DROP) and message[1:].isdigit():
            self._drop(int(message[1:]))
        return bool(message)

    def _keep(self, descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        if inode in self.connections or len(self.connections) >= HELD_LIMIT:
            os.close(descriptor)
        else:
            self.connections[inode] = descriptor

    def _drop(self, inode: int) -> None:
        descriptor = self.connections.pop(inode, None)
        if descriptor is not None:
            os.close(descriptor)
