"""Programs are built once, whole or not at all, and by everything that goes into them."""

import multiprocessing
import time
from pathlib import Path

import pytest

from clusters import binaries, paths
from clusters.errors import ClusterError

GO_MOD = "module example.test/hello\n\ngo 1.24\n"
HELLO = 'package main\n\nvar greeting = "hello"\n\nfunc main() { println(greeting) }\n'
BINARY = binaries.Binary("hello", "hello", "example.test/hello", ("main.greeting=servus",))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Go module without dependencies, a cache, and `hello` as the one program that there is."""
    folder = tmp_path / "go" / "hello"
    folder.mkdir(parents=True)
    (folder / "go.mod").write_text(GO_MOD)
    (folder / "main.go").write_text(HELLO)
    monkeypatch.setattr(paths, "MODULES", tmp_path / "go")
    monkeypatch.setenv("STOKER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(binaries, "ALL", (BINARY,))
    monkeypatch.setattr(binaries, "BY_NAME", {"hello": BINARY})
    return folder


def test_a_program_is_built_with_its_version_and_only_once(module: Path) -> None:
    first = binaries.ensure(["hello"])["hello"]
    built = first.stat().st_mtime_ns
    assert b"servus" in first.read_bytes()
    assert binaries.ensure(["hello"])["hello"].stat().st_mtime_ns == built
    assert [path.name for path in first.parent.iterdir()] == ["hello"]


@pytest.mark.parametrize("changed", ["go.mod", "go.sum", "main.go"])
def test_whatever_goes_into_a_build_changes_its_place(module: Path, changed: str) -> None:
    before = binaries.location(BINARY)
    with (module / changed).open("a") as source:
        source.write("// changed\n")
    assert binaries.location(BINARY) != before


def test_build_flags_change_its_place(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = binaries.location(BINARY)
    monkeypatch.setattr(binaries, "BUILD_FLAGS", ("-trimpath",))
    assert binaries.location(BINARY) != before


def test_a_build_that_fails_leaves_nothing_and_says_why(module: Path) -> None:
    (module / "main.go").write_text("package main\n\nfunc main() { missing() }\n")
    with pytest.raises(ClusterError, match=r"undefined: missing"):
        binaries.ensure(["hello"])
    assert not binaries.location(BINARY).exists()


def test_what_a_killed_build_left_is_removed_by_the_next(module: Path) -> None:
    folder = binaries.location(BINARY).parent
    folder.mkdir(parents=True)
    (folder / ".hello.4711").write_text("half")
    binaries.ensure(["hello"])
    assert [path.name for path in folder.iterdir()] == ["hello"]


def test_a_second_build_waits_for_the_first_and_finds_its_work_done(module: Path) -> None:
    ready, release = multiprocessing.Event(), multiprocessing.Event()
    other = multiprocessing.Process(target=_hold_lock, args=(ready, release))
    other.start()
    assert ready.wait(10)
    waiting = multiprocessing.Process(target=binaries.ensure, args=(["hello"],))
    waiting.start()
    time.sleep(0.5)
    target = binaries.location(BINARY)
    assert not target.exists()
    target.parent.mkdir(parents=True)
    target.write_text("built by the first")
    release.set()
    waiting.join(60)
    other.join(10)
    assert (waiting.exitcode, target.read_text()) == (0, "built by the first")


def _hold_lock(ready: "multiprocessing.synchronize.Event", release: "multiprocessing.synchronize.Event") -> None:
    with binaries._lock():
        ready.set()
        release.wait(10)


def test_an_unknown_program_is_refused() -> None:
    with pytest.raises(KeyError, match="kube-anything"):
        binaries.ensure(["kube-anything"])


def test_kubernetes_programs_report_the_version_that_go_mod_pins() -> None:
    required = (paths.MODULES / "kubernetes" / "go.mod").read_text()
    assert f"k8s.io/kubernetes v{binaries.KUBERNETES_VERSION}\n" in required
    flags = " ".join(binaries.build_command(binaries.BY_NAME["kubelet"], Path("kubelet")))
    assert f"version.gitVersion=v{binaries.KUBERNETES_VERSION}" in flags


def test_every_program_is_named_by_the_tools_file_of_its_module() -> None:
    for binary in binaries.ALL:
        sources = [path.read_text() for path in binaries.module_folder(binary).glob("*.go")]
        assert any(f'"{binary.package}"' in source or "func main" in source for source in sources), binary.name
