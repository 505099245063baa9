"""Running the server: parameters into the library, signals, and a look at the own port."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import FrameType, ModuleType

from llama_server.options import CommandLine, EnumMember, UsageError, Value, help_text, parse

EXIT_BROKEN = 1
EXIT_USAGE = 2
WATCH_INTERVAL_SECONDS = 2.0
REFUSALS_BEFORE_EXIT = 3
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
# llama.cpp lets five new connections wait. One more is dropped, silently, and its client sends again after seconds.
WAITING_CONNECTIONS = 1024
OPEN_FILES = Path("/proc/self/fd")


def main(argv: list[str] | None = None) -> int:
    """Serve until a signal comes. Returns the exit code; never returns after a signal."""
    try:
        line = parse(sys.argv[1:] if argv is None else argv, os.environ)
    except UsageError as refusal:
        return _complain(str(refusal), EXIT_USAGE)
    if line.wants is not None:
        print(help_text() if line.wants == "help" else f"llama-server: xllamacpp {metadata.version('xllamacpp')}")
        return 0
    return serve(line)


def serve(line: CommandLine) -> int:
    """Load the model and serve it; returns only when the server cannot start or its port is gone."""
    _die_while_loading()
    import xllamacpp

    params = xllamacpp.CommonParams()
    apply(line.parameters, params, xllamacpp)
    try:
        server = xllamacpp.Server(params)
    except (RuntimeError, ValueError) as error:
        return _complain(f"not started: {error} The lines above say why.", EXIT_BROKEN)
    _leave_on_signal()
    port = int(str(line.parameters["port"]))
    _lengthen_queue(port)
    _watch(str(server.listening_address), port)
    return _complain("the listener is gone: the port refuses connections", EXIT_BROKEN)


def apply(values: Mapping[str, Value], params: object, library: ModuleType) -> None:
    """Set each value at its dotted path below ``params``. Raises AttributeError for a path that the library lacks."""
    for path, value in values.items():
        *parents, name = path.split(".")
        holder = params
        for parent in parents:
            holder = getattr(holder, parent)
        native = _native(path, value, library)
        if path == "tensor_split" and isinstance(native, list):
            native += [0.0] * (len(getattr(holder, name)) - len(native))  # a place for every device that could be
        setattr(holder, name, native)


def _native(path: str, value: Value, library: ModuleType) -> object:
    if isinstance(value, EnumMember):
        member = getattr(getattr(library, value.enumeration), value.member)
        return [member] if path == "speculative.types" else member
    if path == "model_alias":
        return set(value) if isinstance(value, tuple) else {value}
    return list(value) if isinstance(value, tuple) else value


def _die_while_loading() -> None:
    """Let a stop signal end the process even while the library loads.

    The library holds the interpreter's lock for the whole load, so that no Python handler could run; and process 1 of
    a container ignores every signal that it has no handler for. The C library's ``_exit`` is a handler that needs
    neither: the exit code is then the signal's number.
    """
    libc = ctypes.CDLL(None)
    libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    libc.signal.restype = ctypes.c_void_p
    leave = ctypes.cast(libc._exit, ctypes.c_void_p)
    for number in STOP_SIGNALS:
        libc.signal(number, leave)


def _leave_on_signal() -> None:
    for number in STOP_SIGNALS:
        signal.signal(number, _leave)


def _leave(number: int, _frame: FrameType | None) -> None:
    print(f"llama-server: {signal.Signals(number).name}: leaving", file=sys.stderr, flush=True)
    os._exit(0)  # no teardown: with streams open it blocks for half a minute


def _lengthen_queue(port: int) -> None:
    """Let more connections wait at the sockets of this process that listen on a port.

    Linux takes a second listen(2) on a listening socket as a new length of its queue; `net.core.somaxconn` bounds it.
    """
    for entry in OPEN_FILES.iterdir():
        try:
            found = socket.socket(fileno=int(entry.name))
        except OSError:
            continue  # not a socket, or closed since
        with suppress(OSError):  # the library closed it since
            if _listens(found, port):
                found.listen(WAITING_CONNECTIONS)
        found.detach()  # it is the library's: it stays open


def _listens(candidate: socket.socket, port: int) -> bool:
    if candidate.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    return bool(candidate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)) and candidate.getsockname()[1] == port


def _watch(address: str, port: int) -> None:
    host = address.removeprefix("http://").rpartition(":")[0].strip("[]")
    connect_to = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    pause = threading.Event()
    refusals = 0
    while refusals < REFUSALS_BEFORE_EXIT:
        pause.wait(WATCH_INTERVAL_SECONDS)
        refusals = refusals + 1 if _refuses(connect_to, port) else 0


def _refuses(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=WATCH_INTERVAL_SECONDS).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False  # slow is not gone: who watches from outside decides that
    return False


def _complain(text: str, code: int) -> int:
    print(f"llama-server: {text}", file=sys.stderr, flush=True)
    return code
