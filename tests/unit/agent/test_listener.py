"""The kernel's socket table: who listens, told apart by inode."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from stoker.agent.listener import Listener, ListenerReader, same_engine

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
PORT = 8000


def row(inode: int, port: int = PORT, state: str = "0A", address: str = "00000000") -> str:
    return (
        f"   0: {address}:{port:04X} 00000000:0000 {state} 00000000:00000000 00:00000000 00000000"
        f"     0        0 {inode} 1 0000000000000000 100 0 0 10 0"
    )


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "net").mkdir()
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("boot-1\n")
    (tmp_path / "self/ns/net").symlink_to("net:[42]")
    write(tmp_path)
    return tmp_path


def write(proc: Path, *rows: str, table: str = "tcp") -> None:
    (proc / "net" / table).write_text("".join(f"{line}\n" for line in (HEADER, *rows)))


def read(proc: Path) -> Listener:
    return ListenerReader(PORT, proc).read()


def test_the_identity_names_boot_namespace_and_inode(proc: Path) -> None:
    write(proc, row(1, port=22), row(77))
    assert read(proc) == Listener(known=True, identity="boot-1/net:[42]/77")


def test_nothing_listens(proc: Path) -> None:
    assert read(proc) == Listener(known=True)


def test_sockets_that_do_not_listen_are_not_looked_at(proc: Path) -> None:
    write(proc, row(1, port=22), *(row(900 + n, state="01") for n in range(20_000)), row(77))
    assert read(proc) == Listener(known=True)


def test_a_port_that_only_ends_alike_is_another(proc: Path) -> None:
    write(proc, row(77, port=PORT + 0x1000))
    assert read(proc) == Listener(known=True)


def test_both_families_count_in_one_order(proc: Path) -> None:
    write(proc, row(9))
    write(proc, row(5, address="0" * 32), table="tcp6")
    assert read(proc).identity == "boot-1/net:[42]/5,9"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("b/n/5", "b/n/5", True),
        ("b/n/5", "b/n/5,9", True),
        ("b/n/5,9", "b/n/9", True),
        ("b/n/5", "b/n/55", False),
        ("b/n/5", "c/n/5", False),
        ("b/n/5", "b/m/5", False),
        ("", "b/n/5", False),
    ],
)
def test_one_socket_in_common_is_the_same_engine(one: str, other: str, same: bool) -> None:
    assert same_engine(one, other) is same
    assert same_engine(other, one) is same


def test_another_boot_is_another_identity(proc: Path) -> None:
    write(proc, row(77))
    before = read(proc)
    (proc / "sys/kernel/random/boot_id").write_text("boot-2\n")
    assert read(proc) != before


def test_a_table_that_cannot_be_read_says_nothing(proc: Path) -> None:
    (proc / "net/tcp").unlink()
    assert read(proc) == Listener(known=False)


@pytest.mark.parametrize("broken", ["", "garbage", "   0: 00000000:1F40 00000000:0000 0A", f"{HEADER}\n{HEADER}"])
def test_a_broken_table_never_raises(proc: Path, broken: str) -> None:
    (proc / "net/tcp").write_text(broken)
    assert read(proc) == Listener(known=True)


def test_a_table_without_end_is_read_up_to_a_bound(proc: Path) -> None:
    write(proc, *(row(n, port=22) for n in range(10_000)), row(77))
    assert read(proc) == Listener(known=True)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_real_socket_of_this_machine(family: socket.AddressFamily) -> None:
    with socket.socket(family) as bound:
        bound.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        reader = ListenerReader(bound.getsockname()[1])
        assert reader.read() == Listener(known=True), "bound, and not listening yet"
        bound.listen()
        identity = reader.read().identity
        assert identity is not None
        assert identity.endswith(f"/{os.fstat(bound.fileno()).st_ino}")


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, ""), (socket.AF_INET6, "::")])
def test_a_port_is_bound_before_anything_listens_on_it(family: socket.AddressFamily, host: str) -> None:
    """As vLLM does it: with the option to use an address again."""
    with socket.socket(family) as engine:
        engine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        engine.bind((host, 0))
        reader = ListenerReader(engine.getsockname()[1])
        assert reader.is_bound()
    assert not reader.is_bound()


def test_connections_that_a_former_engine_closed_do_not_bind_its_port() -> None:
    """They linger for a minute after it, while the next engine imports."""
    with socket.create_server(("127.0.0.1", 0)) as former:
        port = former.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as client:
            accepted, _ = former.accept()
            accepted.close()
            assert client.recv(1) == b""
    assert not ListenerReader(port).is_bound()


def test_a_port_that_may_not_be_tried_is_not_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(socket.socket, "bind", refused)
    assert not ListenerReader(PORT).is_bound()
