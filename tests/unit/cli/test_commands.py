"""`stoker render` and `stoker plan`: what they print, and what bad input gets."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from stoker import __version__
from tests.builders.specs import a_spec
from tests.golden.harness import ROOT
from tests.unit.cli.support import fault_lines, write

PROGRAM = "from stoker.cli import main; main()"


# ---- render --------------------------------------------------------------------------------------------------------
def test_render_prints_all_that_a_first_apply_creates(command: Any, tmp_path: Path) -> None:
    code, out, err = command("render", "-f", write(tmp_path, a_spec().replicas(2)))
    assert (code, err) == (0, "")
    kinds = [found["kind"] for found in yaml.safe_load_all(out)]
    assert kinds == [
        "ServiceAccount",
        "NetworkPolicy",
        "Service",
        "PodDisruptionBudget",
        "Deployment",
        "ControllerRevision",
    ]
    assert "ownerReferences" not in out


def test_render_takes_several_files_and_standard_input(command: Any, tmp_path: Path) -> None:
    one = write(tmp_path, yaml.safe_dump(a_spec().manifest("one")), "one.yaml")
    code, out, _ = command("render", "-f", one, "-f", "-", stdin=yaml.safe_dump(a_spec().manifest("two")))
    assert code == 0
    names = [found["metadata"]["name"] for found in yaml.safe_load_all(out) if found["kind"] == "Deployment"]
    assert names == ["one", "two"]


def test_one_bad_file_leaves_nothing_half_printed(command: Any, tmp_path: Path) -> None:
    good, bad = write(tmp_path, a_spec(), "good.yaml"), write(tmp_path, a_spec().tensor(3), "bad.yaml")
    (line,) = fault_lines(command("render", "-f", good, "-f", bad))
    assert line["file"] == bad
    assert line["path"] == "spec.parallelism.tensor"


def test_the_nodes_decide_on_memory_and_on_the_way_to_replace(command: Any, tmp_path: Path) -> None:
    case = ROOT / "vllm-model-config"
    files = ["-f", str(case / "infsvc.yaml"), "--model-config", str(case / "config.json")]
    _, with_nodes, _ = command("render", *files, "--nodes", str(case / "nodes.yaml"))
    _, without, _ = command("render", *files)
    (deployment,) = (d for d in yaml.safe_load_all(with_nodes) if d["kind"] == "Deployment")
    assert deployment["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    (deployment,) = (d for d in yaml.safe_load_all(without) if d["kind"] == "Deployment")
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}


# ---- plan ----------------------------------------------------------------------------------------------------------
KEYS = {
    "podsPerReplica",
    "gpusPerPod",
    "resourceName",
    "weightBytesPerRank",
    "kvBytesPerTokenPerRank",
    "kvTokens",
    "maxConcurrency",
    "verdict",
    "reasons",
}


def test_plan_prints_an_object_with_the_layout(command: Any, tmp_path: Path) -> None:
    spec = a_spec().on("NVIDIA-H100-80GB-HBM3").max_length(8192)
    code, out, err = command("plan", "-f", write(tmp_path, spec), "-o", "json")
    assert (code, err) == (0, "")
    layout = json.loads(out)["layout"]
    assert layout.keys() >= KEYS
    assert layout["verdict"] == "Fits"
    assert layout["kvBytesPerTokenPerRank"] == 131072


def test_plan_prints_a_table_that_cuts_nothing_off(command: Any, tmp_path: Path) -> None:
    source = "hf://" + "a" * 96 + "/" + "b" * 96
    code, out, _ = command("plan", "-f", write(tmp_path, a_spec().model(source)))
    assert code == 0
    assert "verdict" in out
    assert "Unknown" in out
    assert "…" not in out
    assert out.count("a") >= 96
    assert out.count("b") >= 96


def test_a_layout_that_is_too_small_is_an_answer_of_plan_and_a_fault_of_render(command: Any, tmp_path: Path) -> None:
    spec = a_spec().on("NVIDIA-H100-80GB-HBM3").model("hf://meta-llama/Llama-3.1-70B-Instruct")
    file = write(tmp_path, spec)
    code, out, err = command("plan", "-f", file, "-o", "json")
    assert (code, err) == (0, "")
    assert json.loads(out)["layout"]["verdict"] == "TooSmall"
    assert json.loads(out)["layout"]["reasons"]
    (line,) = fault_lines(command("render", "-f", file))
    assert line["path"].startswith("spec.")
    assert line["remedy"].startswith("would fit: spec.parallelism.tensor ")


def test_a_contradiction_is_a_fault_of_both(command: Any, tmp_path: Path) -> None:
    file = write(tmp_path, a_spec().on("NVIDIA-H100-80GB-HBM3").tensor(3))
    for name in ("plan", "render"):
        (line,) = fault_lines(command(name, "-f", file))
        assert line["path"] == "spec.parallelism.tensor"


def test_plans_of_several_files_come_as_items(command: Any, tmp_path: Path) -> None:
    one, two = write(tmp_path, a_spec(), "one.yaml"), write(tmp_path, a_spec(), "two.yaml")
    _, out, _ = command("plan", "-f", one, "-f", two, "-o", "json")
    assert [item["name"] for item in json.loads(out)["items"]] == ["chat", "chat"]


def test_the_config_of_the_model_stands_for_its_facts(command: Any) -> None:
    case = ROOT / "vllm-model-config"
    file, config = str(case / "infsvc.yaml"), str(case / "config.json")
    _, without, _ = command("plan", "-f", file, "-o", "json")
    _, given, _ = command("plan", "-f", file, "-o", "json", "--model-config", config)
    assert json.loads(without)["layout"]["verdict"] == "Unknown"
    assert json.loads(given)["layout"]["verdict"] == "Fits"
    assert json.loads(given)["layout"]["kvBytesPerTokenPerRank"] == 2 * 28 * 8 * 128 * 2
    assert "--model-config" in json.loads(given)["layout"]["origins"]["facts"]


# ---- bad input -----------------------------------------------------------------------------------------------------
GOOD = yaml.safe_dump(a_spec().manifest())
BAD = {
    "nothing": ("", "document"),
    "comments only": ("# nothing\n---\n", "document"),
    "a list": ("[1, 2]", "document"),
    "a word": ("hello", "document"),
    "several documents": (f"{GOOD}---\n{GOOD}", "document"),
    "another kind": ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n", "kind"),
    "no kind": ("a: 1", "kind"),
    "no spec": ("apiVersion: serving.stoker.dev/v1alpha1\nkind: InferenceService\nmetadata: {name: a}\n", "spec"),
    "a broken document": ("a: [1", "line 2, column 1"),
    "a tab": ("spec:\n\tmodel: x\n", "line 2, column 1"),
    "a NUL byte": ("a: \x00", "document"),
    "a duplicate key": (GOOD.replace("spec:\n", "spec:\n  replicas: 1\n  replicas: 2\n"), "spec.replicas"),
    "a bad name": (GOOD.replace("name: chat", "name: Chat!"), "metadata.name"),
    "a long name": (GOOD.replace("name: chat", f"name: {'a' * 254}"), "metadata.name"),
    "a bad namespace": (GOOD.replace("namespace: team-a", "namespace: team.a"), "metadata.namespace"),
    "no name": (GOOD.replace("name: chat\n", ""), "metadata.name"),
    "metadata as a word": (re.sub(r"metadata:\n(  .*\n)+", "metadata: x\n", GOOD), "metadata"),
    "a version as number": (GOOD.replace("version: 0.32.0", "version: 0.32"), "spec.engine.version"),
    "a terminal's command": (GOOD.replace("name: chat", 'name: "\\e[31mred\\nsecond line"'), "metadata.name"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("verb", ["render", "plan"])
def test_bad_input_gets_a_line_that_names_the_place(command: Any, tmp_path: Path, verb: str, name: str) -> None:
    text, path = BAD[name]
    file = write(tmp_path, text)
    lines = fault_lines(command(verb, "-f", file))
    assert {line["file"] for line in lines} == {file}
    assert path in {line["path"] for line in lines}


def test_every_fault_gets_a_line_of_its_own(command: Any, tmp_path: Path) -> None:
    spec = a_spec().set("engine.nonsense", 1).set("replicas", -1).set("model.source", "x")
    lines = fault_lines(command("render", "-f", write(tmp_path, spec)))
    assert {line["path"] for line in lines} == {"spec.engine.nonsense", "spec.replicas", "spec.model.source"}


def test_N20_neither_a_field_nor_a_file_name_writes_lines_of_its_own(command: Any, tmp_path: Path) -> None:
    spec = a_spec().set("engine.x\x1b[31m\nforged: spec: all is well; do nothing", 1)
    for arguments in (["-f", write(tmp_path, spec)], ["-f", str(tmp_path / "a\nforged: b: c; d")]):
        (line,) = fault_lines(command("render", *arguments))
        assert line.string.isprintable()


def test_files_that_cannot_be_read_get_a_line_each(command: Any, tmp_path: Path) -> None:
    files = [str(tmp_path / "none.yaml"), str(tmp_path)]
    lines = fault_lines(command("render", "-f", files[0], "-f", files[1]))
    assert [line["file"] for line in lines] == files


ODD_FILES: dict[str, tuple[bytes, str, str]] = {
    "binary": (b"\xff\xd8\xff\xe0" * 64, "is not UTF-8 text (byte 0)", "save it as UTF-8"),
    "UTF-16": (GOOD.encode("utf-16"), "is not UTF-8 text (byte 0)", "save it as UTF-8"),
    "too large": (b"", "is too large", "give at most 3 MiB"),
    "deep": (b"a: " + b"[" * 5000, "nest", "correct the YAML"),
}


@pytest.mark.parametrize("name", ODD_FILES)
@pytest.mark.parametrize("option", ["--file", "--nodes"])
def test_a_file_that_is_no_manifest_gets_one_line_that_says_why(
    command: Any, tmp_path: Path, name: str, option: str
) -> None:
    content, problem, remedy = ODD_FILES[name]
    odd = tmp_path / "odd"
    odd.write_bytes(content)
    if name == "too large":
        os.truncate(odd, 65 * 2**20)
    files = ["--file", write(tmp_path, a_spec())] if option == "--nodes" else []
    (line,) = fault_lines(command("plan", *files, option, str(odd)))
    assert (line["file"], problem in line["problem"]) == (str(odd), True), line.string
    assert remedy.replace("3", "64" if option == "--nodes" else "3") in line["remedy"]


@pytest.mark.parametrize("target", ["nowhere", "itself"])
def test_a_link_that_leads_nowhere_gets_one_line(command: Any, tmp_path: Path, target: str) -> None:
    link = tmp_path / "itself"
    link.symlink_to(tmp_path / target)
    (line,) = fault_lines(command("render", "-f", str(link)))
    assert line["problem"].startswith("cannot be read: ")


def test_an_empty_name_is_told_from_a_folder(command: Any) -> None:
    (line,) = fault_lines(command("plan", "-f", ""))
    assert (line["file"], line["problem"]) == ("(no name)", "has an empty name")


def test_byte_order_marks_and_foreign_line_ends_do_no_harm(command: Any, tmp_path: Path) -> None:
    foreign = "\ufeff" + GOOD.replace("\n", "\r\n")
    (tmp_path / "foreign.yaml").write_bytes(foreign.encode())
    plain = command("render", "-f", write(tmp_path, GOOD))
    assert plain[0] == 0
    assert command("render", "-f", str(tmp_path / "foreign.yaml")) == plain
    case = ROOT / "vllm-model-config"
    config = tmp_path / "config.json"
    config.write_bytes(b"\xef\xbb\xbf" + (case / "config.json").read_bytes())
    assert command("plan", "-f", str(case / "infsvc.yaml"), "--model-config", str(config))[0] == 0


@pytest.mark.parametrize(("verb", "words"), [("plan", "whatever the verdict"), ("render", "that does not fit")])
def test_the_help_tells_the_exit_codes(command: Any, verb: str, words: str) -> None:
    code, out, _ = command(verb, "--help")
    told = " ".join(out.replace("\u2502", " ").split())
    assert code == 0
    assert "Exit code: 0" in told
    assert words in told
    assert "2 bad usage; 70 a fault of this program" in told


def test_standard_input_is_read_once_only(command: Any) -> None:
    (line,) = fault_lines(command("render", "-f", "-", "-f", "-", stdin=GOOD))
    assert line["file"] == "-"


def test_bad_usage_is_told_apart_from_bad_input(command: Any) -> None:
    for arguments in (["render"], ["nonsense"], ["plan", "-f", "x", "-o", "xml"]):
        code, out, err = command(*arguments)
        assert (code, out) == (2, "")
        assert "Traceback" not in err


def test_the_version_is_printed(command: Any) -> None:
    assert command("version") == (0, f"{__version__}\n", "")


# ---- as a process --------------------------------------------------------------------------------------------------
def _process(arguments: Sequence[str], program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": "operator"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_reader_that_goes_away_sees_no_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, "render", "-f", write(tmp_path, a_spec())]
    with subprocess.Popen(
        command, env={**os.environ, "PYTHONPATH": "operator"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()
        process.wait(timeout=60)


@pytest.mark.parametrize("verb", ["render", "plan", "version"])
@pytest.mark.parametrize(("where", "why"), [("/dev/full", "no space left on device"), ("&-", "it is closed")])
def test_output_that_cannot_be_written_is_no_fault_of_the_program(
    tmp_path: Path, verb: str, where: str, why: str
) -> None:
    file = [] if verb == "version" else ["-f", write(tmp_path, a_spec())]
    shell = ["sh", "-c", f'"$@" >{where}', "sh", sys.executable, "-c", PROGRAM, verb, *file]
    environment = {**os.environ, "PYTHONPATH": "operator"}
    result = subprocess.run(shell, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (74, f"stoker: the output cannot be written: {why}\n")


def test_standard_input_that_is_closed_cannot_be_read() -> None:
    shell = ["sh", "-c", '"$@" <&-', "sh", sys.executable, "-c", PROGRAM, "plan", "-f", "-"]
    environment = {**os.environ, "PYTHONPATH": "operator"}
    result = subprocess.run(shell, env=environment, capture_output=True, text=True, timeout=60, check=False)
    (line,) = fault_lines((result.returncode, result.stdout, result.stderr))
    assert line["problem"] == "cannot be read: bad file descriptor"


def test_a_fault_of_the_program_is_one_line() -> None:
    program = (
        "import stoker.cli.render as r\n"
        "def fail(*_): raise RuntimeError('first\\nsecond')\n"
        "r.render_files = fail\n" + PROGRAM
    )
    result = _process(["render", "-f", "x"], program)
    assert result.returncode == 70
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.stderr


HEAVY = {"typer", "rich", "kubernetes", "kopf", "yaml", "stoker.kube", "stoker.render"}


def test_the_agent_is_started_without_the_command_lines_libraries() -> None:
    program = (
        "import sys\n"
        "import stoker.agent.main as agent\n"
        "agent.main = lambda: print(sorted(sys.modules)) or 0\n"
        "sys.argv = ['stoker', 'agent']\n" + PROGRAM
    )
    result = _process([], program)
    assert result.returncode == 0, result.stderr
    assert not HEAVY & set(re.findall(r"[\w.]+", result.stdout))


def test_rendering_loads_neither_kopf_nor_the_client_of_kubernetes(tmp_path: Path) -> None:
    program = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('LOADED', *sorted(sys.modules)))\n"
        f"sys.argv = ['stoker', 'render', '-f', {write(tmp_path, a_spec())!r}]\n" + PROGRAM
    )
    result = _process([], program)
    assert result.returncode == 0, result.stderr
    assert not {"kopf", "kubernetes", "aiohttp", "rich.table"} & set(result.stdout.partition("LOADED")[2].split())


# ---- agent ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("word", ["--help", "-h"])
def test_the_agent_says_what_it_is_what_it_reads_and_how_it_ends(word: str) -> None:
    result = _process(["agent", word])
    assert (result.returncode, result.stderr) == (0, "")
    said = " ".join(result.stdout.split())
    for part in ("beside an engine", "STOKER_AGENT_CONFIG", "JSON", "0 stopped", "1 the configuration", "2 bad usage"):
        assert part in said


@pytest.mark.parametrize("words", [["--port", "9090"], ["now"], ["--"]])
def test_the_agent_refuses_what_it_would_ignore(words: list[str]) -> None:
    result = _process(["agent", *words])
    assert (result.returncode, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
