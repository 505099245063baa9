"""The providers that need what this machine lacks are held to the commands that they would run."""

from pathlib import Path

import pytest

from clusters import __main__, kind, providers
from clusters.current import CurrentCluster
from clusters.errors import ClusterError
from clusters.kind import KindCluster
from clusters.local import LocalCluster


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole of PATH; programs in it write down how they were called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("STOKER_CACHE", str(tmp_path / "cache"))
    return folder


def put(folder: Path, name: str, prints: str = "", status: int = 0) -> Path:
    """Put a program on PATH; returns the file in which its calls are written down."""
    calls = folder.parent / f"{name}.calls"
    program = folder / name
    program.write_text(f'#!/bin/bash\necho "$*" >> {calls}\nprintf "{prints}"\nexit {status}\n')
    program.chmod(0o755)
    return calls


def calls_of(file: Path) -> list[str]:
    """How a program was called."""
    return file.read_text().splitlines() if file.exists() else []


def test_kind_is_chosen_where_a_docker_engine_answers(programs: Path) -> None:
    put(programs, "kind")
    put(programs, "docker")
    assert providers.choose(None, "demo") == KindCluster("demo")


@pytest.mark.parametrize(("kind_is_there", "docker_status"), [(True, 1), (False, 0)])
def test_local_is_chosen_where_kind_or_the_engine_is_missing(
    programs: Path, kind_is_there: bool, docker_status: int
) -> None:
    put(programs, "docker", status=docker_status)
    if kind_is_there:
        put(programs, "kind")
    assert isinstance(providers.choose(None, "demo"), LocalCluster)
    assert not kind.is_usable()


def test_the_users_own_cluster_is_used_only_when_it_is_asked_for(programs: Path) -> None:
    assert isinstance(providers.choose("current", "demo"), CurrentCluster)
    assert not isinstance(providers.choose(None, "demo"), CurrentCluster)


@pytest.mark.parametrize("name", ["", "Demo", "-demo", "demo-", "a/b", "x" * 33, "demo\n", "control-plane-1"])
def test_a_name_that_is_no_node_name_is_refused(name: str) -> None:
    with pytest.raises(ClusterError, match="is not usable"):
        providers.choose("local", name)


def test_a_provider_that_there_is_not_is_refused_however_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make demo CLUSTER=…` says it by the environment: a typo must not bring up a cluster on this machine."""
    monkeypatch.setenv("CLUSTER", "curent")
    assert __main__.main(["status"]) == 1
    assert capsys.readouterr().err == (
        "clusters: there is no provider 'curent' of clusters; the providers are local, kind, current\n"
    )


def test_kind_creates_a_cluster_with_a_kubeconfig_of_its_own_and_only_once(programs: Path) -> None:
    calls = put(programs, "kind", prints="other\\n")
    cluster = KindCluster("demo")
    cluster.up()
    create = f"create cluster --name=demo --kubeconfig={cluster.kubeconfig} --wait=180s"
    assert calls_of(calls) == ["get clusters", create]
    put(programs, "kind", prints="other\\ndemo\\n")
    cluster.up()
    assert calls_of(calls)[2:] == ["get clusters"]


def test_kind_loads_an_archive_and_deletes_by_name(programs: Path) -> None:
    calls = put(programs, "kind")
    cluster = KindCluster("demo")
    cluster.load_image(Path("/images/stoker.tar"))
    cluster.down()
    assert calls_of(calls) == [
        "load image-archive /images/stoker.tar --name=demo",
        f"delete cluster --name=demo --kubeconfig={cluster.kubeconfig}",
    ]


def test_a_cluster_that_kind_could_not_create_is_reported_with_its_words(programs: Path) -> None:
    put(programs, "kind", prints="no space left on device", status=1)
    with pytest.raises(ClusterError, match=r"kind create cluster [^$]*no space left on device"):
        KindCluster("demo").up()


def test_current_is_checked_and_never_taken_down(programs: Path) -> None:
    calls = put(programs, "kubectl", prints="work")
    cluster = CurrentCluster()
    cluster.up()
    cluster.down()
    assert calls_of(calls) == ["config current-context", "version --request-timeout=10s"]
    assert cluster.status() == "current context work answers"


def test_current_that_does_not_answer_is_named(programs: Path) -> None:
    program = programs / "kubectl"
    program.write_text('#!/bin/bash\n[ "$1" = config ] && echo work || exit 1\n')
    program.chmod(0o755)
    with pytest.raises(ClusterError, match="the current context work does not answer"):
        CurrentCluster().up()


def test_current_takes_no_images(programs: Path) -> None:
    with pytest.raises(ClusterError, match=r"push stoker\.tar to a registry"):
        CurrentCluster().load_image(Path("/images/stoker.tar"))


def test_an_error_reaches_people_as_one_line_without_a_traceback(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(["--provider", "local", "--name", "Demo", "up"]) == 1
    said = capsys.readouterr()
    assert said.err.startswith("clusters: the cluster name 'Demo' is not usable")
    assert len(said.err.splitlines()) == 1


def test_a_local_cluster_that_is_down_says_how_to_bring_it_up(
    programs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(["--provider", "local", "exec", "--", "true"]) == 1
    assert "cluster stoker-demo is not up; bring it up with `make up NAME=stoker-demo`" in capsys.readouterr().err
    assert __main__.main(["--provider", "local", "status"]) == 1


def test_what_down_did_is_said(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STOKER_CACHE", str(tmp_path))
    listed = tmp_path / "clusters-of-kind"
    listed.write_text("demo\n")
    program = programs / "kind"
    program.write_text(
        f'#!/bin/bash\n[ "$1" = delete ] && : > {listed} || while read -r x; do echo "$x"; done < {listed}\n'
    )
    program.chmod(0o755)
    assert __main__.main(["--provider", "kind", "--name", "demo", "down"]) == 0
    assert capsys.readouterr().out == "cluster demo is removed\n"
    assert __main__.main(["--provider", "kind", "--name", "demo", "down"]) == 0
    assert capsys.readouterr().out == "cluster demo was not up; nothing of it is left\n"
    put(programs, "kubectl", prints="work")
    assert __main__.main(["--provider", "current", "down"]) == 0
    assert capsys.readouterr().out == "current context work answers, and is left as it is\n"
