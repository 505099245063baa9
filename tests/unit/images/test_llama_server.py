"""The thin ``llama-server``: llama.cpp's spellings reach llama.cpp's parameters, everything else is refused."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
import xllamacpp
from llama_server import serve
from llama_server.options import BY_SPELLING, OPTIONS, EnumMember, Option, UsageError, Value, parse
from llama_server.serve import apply

from stoker.engines.llama_cpp import COMMAND, RENDERED_FLAGS

PACKAGE_ROOT = Path(__file__).resolve().parents[3] / "images/llama-cpp"


def parameters(*argv: str) -> dict[str, Value]:
    return dict(parse(["-m", "x.gguf", *argv], {}).parameters)


@pytest.mark.parametrize(
    ("argv", "path", "value"),
    [
        (["--model", "/m/a b.gguf"], "model.path", "/m/a b.gguf"),
        (["-a", "smol,small"], "model_alias", ("smol", "small")),
        (["--host", "0.0.0.0,::"], "hostnames", ("0.0.0.0", "::")),  # noqa: S104
        (["--port", "8000"], "port", 8000),
        (["-c", "8192"], "n_ctx", 8192),
        (["--ctx_size", "8192"], "n_ctx", 8192),
        (["-np", "4"], "n_parallel", 4),
        (["-b", "512"], "n_batch", 512),
        (["-ub", "256"], "n_ubatch", 256),
        (["-ngl", "12"], "n_gpu_layers", 12),
        (["--gpu-layers", "all"], "n_gpu_layers", -2),
        (["--n-gpu-layers", "auto"], "n_gpu_layers", -1),
        (["-sm", "layer"], "split_mode", EnumMember("llama_split_mode", "LLAMA_SPLIT_MODE_LAYER")),
        (["--tensor-split", "3,1"], "tensor_split", (3.0, 1.0)),
        (["--metrics"], "endpoint_metrics", True),
        (["--slots"], "endpoint_slots", True),
        (["--no-slots"], "endpoint_slots", False),
        (["--cache-prompt"], "cache_prompt", True),
        (["--no-cache-prompt"], "cache_prompt", False),
        (["--cache-ram", "0"], "cache_ram_mib", 0),
        (["-ctk", "q8_0"], "cache_type_k", EnumMember("ggml_type", "GGML_TYPE_Q8_0")),
        (["--cache-type-v", "bf16"], "cache_type_v", EnumMember("ggml_type", "GGML_TYPE_BF16")),
        (["-fa", "on"], "flash_attn_type", EnumMember("llama_flash_attn_type", "LLAMA_FLASH_ATTN_TYPE_ENABLED")),
        (["--threads-http", "8"], "n_threads_http", 8),
        (["--no-warmup"], "warmup", False),
        (["--no-webui"], "ui", False),
        (["--fit", "off"], "fit_params", False),
        (["--spec-ngram-simple-size-n", "3"], "speculative.ngram_simple.size_n", 3),
        (["--timeout", "60"], "timeout_write", 60),
        (["-c", "1", "-c", "2"], "n_ctx", 2),
    ],
)
def test_an_option_sets_its_parameter(argv: list[str], path: str, value: Value) -> None:
    assert parameters(*argv)[path] == value


def test_threads_count_for_prompts_too_unless_told_otherwise() -> None:
    assert parameters("-t", "1")["cpuparams_batch.n_threads"] == 1
    assert parameters("-t", "1", "-tb", "2")["cpuparams_batch.n_threads"] == 2
    assert "cpuparams_batch.n_threads" not in parameters()


def test_without_options_it_listens_on_loopback_with_automatic_slots() -> None:
    assert parameters() == {"model.path": "x.gguf", "hostnames": ("127.0.0.1",), "port": 8080, "n_parallel": -1}


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "--model: missing"),
        (["-m"], "-m: a value must follow"),
        (["-m", ""], "-m: the value is empty"),
        (["-m", "x", "--frobnicate"], "--frobnicate: refused"),
        (["-m", "x", "--host=0.0.0.0"], "--host=0.0.0.0: refused"),
        (["-m", "x", "--metric"], "--metric: refused"),
        (["-m", "x", "-np4"], "-np4: refused"),
        (["-m", "x", "stray"], "stray: refused"),
        (["-m", "x", "--api-key", "k"], "--api-key: refused: keys are checked in front of the engine"),
        (["-m", "x", "-hf", "a/b"], "-hf: refused: this build downloads nothing"),
        (["-m", "x", "--tools", "all"], "--tools: refused"),
        (["-m", "x", "-c", "8k"], "-c: '8k' is not a whole number"),
        (["-m", "x", "--port", "0"], "--port: 0 is not between 1 and 65535"),
        (["-m", "x", "-c", "-1"], "-c: -1 is not between"),
        (["-m", "x", "-ctk", "fp8"], "-ctk: 'fp8' is not one of f32, f16, bf16"),
        (["-m", "x", "--temp", "nan"], "--temp: nan is not between"),
        (["-m", "x", "-a", "a,,b"], "-a: 'a,,b' holds an empty name"),
        (["-m", "x", "--spec-type", "draft-mtp"], "--spec-type: 'draft-mtp' is not one of none, ngram-simple"),
    ],
)
def test_what_it_does_not_know_is_refused_in_one_line(argv: list[str], words: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse(argv, {})
    assert str(refusal.value).startswith(words)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", ["LLAMA_ARG_HOST", "LLAMA_ARG_ANYTHING", "LLAMA_API_KEY"])
def test_variables_that_llama_cpp_would_read_are_refused_and_never_shown(name: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse(["-m", "x"], {name: "s3cret"})
    assert name in str(refusal.value)
    assert "s3cret" not in str(refusal.value)


def test_it_takes_every_option_that_the_operator_renders_for_a_model_on_a_volume() -> None:
    downloads = {"--hf-repo", "--hf-file"}
    assert set(RENDERED_FLAGS) - downloads <= set(BY_SPELLING)
    for name in downloads:
        with pytest.raises(UsageError, match="downloads nothing"):
            parse([name, "x"], {})


def test_the_image_has_the_program_where_the_operator_starts_it() -> None:
    assert f"COPY llama-server {COMMAND[0]}\n" in (PACKAGE_ROOT / "Containerfile").read_text()


def test_no_spelling_belongs_to_two_options() -> None:
    assert len(BY_SPELLING) == sum(len(option.spellings) for option in OPTIONS)


EXAMPLES = ["1", "on", "f16", "mean", "none", "0.5"]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.spellings[0])
def test_every_option_names_a_parameter_that_the_library_has(option: Option) -> None:
    params = xllamacpp.CommonParams()
    apply(_one_value(option), params, xllamacpp)
    with pytest.raises(AttributeError):
        apply({"no_such_parameter": 1}, params, xllamacpp)


def _one_value(option: Option) -> dict[str, Value]:
    spelling = option.spellings[0]
    for example in EXAMPLES:
        words = [spelling] if option.read is None else [spelling, example]
        try:
            return parameters(*words)
        except UsageError:
            continue
    raise AssertionError(f"no example value suits {spelling}")


def test_values_arrive_in_the_library() -> None:
    params = xllamacpp.CommonParams()
    line = parameters(
        "-a", "b,a", "-np", "3", "-ctk", "q8_0", "-t", "2", "--spec-type", "ngram-simple", "--no-slots", "-ts", "3,1"
    )
    apply(line, params, xllamacpp)
    assert params.model.path == "x.gguf"
    assert params.model_alias == {"a", "b"}
    assert params.n_parallel == 3
    assert int(params.cache_type_k) == int(xllamacpp.ggml_type.GGML_TYPE_Q8_0)
    assert params.cpuparams_batch.n_threads == 2
    assert [int(kind) for kind in params.speculative.types] == [
        int(xllamacpp.common_speculative_type.COMMON_SPECULATIVE_TYPE_NGRAM_SIMPLE)
    ]
    assert params.endpoint_slots is False
    assert list(params.tensor_split)[:3] == [3.0, 1.0, 0.0]


WAITING = 100


def free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


def run(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-B", "-m", "llama_server", *argv],
        cwd=PACKAGE_ROOT,
        env={"PATH": os.defpath, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_refusal_ends_the_program_with_2_and_one_line() -> None:
    done = run("-m", "x", "--frobnicate")
    assert done.returncode == 2
    assert done.stderr == (
        "llama-server: --frobnicate: refused: it is not an option of this llama-server; --help lists them\n"
    )
    assert done.stdout == ""


def test_a_missing_model_ends_the_program_with_1_and_says_so() -> None:
    done = run("-m", "/nonexistent.gguf", "--port", free_port())
    assert done.returncode == 1
    assert "No such file or directory" in done.stderr
    # llama.cpp logs from a thread of its own, in pieces: ours may come between two of them.
    assert "llama-server: not started:" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_lists_every_spelling() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert all(spelling in done.stdout for spelling in BY_SPELLING)


def test_a_stop_signal_ends_it_while_the_library_holds_the_interpreter(tmp_path: Path) -> None:
    pipe = tmp_path / "model.gguf"
    os.mkfifo(pipe)  # opening it blocks inside the library for as long as nobody writes: a load that never ends
    with subprocess.Popen(
        [sys.executable, "-B", "-m", "llama_server", "-m", str(pipe), "--port", free_port()],
        cwd=PACKAGE_ROOT,
        env={"PATH": os.defpath},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "loading model" in line:
                break
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == signal.SIGTERM.value


def test_it_leaves_when_its_own_port_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "WATCH_INTERVAL_SECONDS", 0.02)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        watch = threading.Thread(target=serve._watch, args=(f"http://0.0.0.0:{port}", port), daemon=True)
        watch.start()
        watch.join(timeout=0.3)
        assert watch.is_alive()
    watch.join(timeout=10)
    assert not watch.is_alive()


def test_many_connections_may_wait_at_its_port() -> None:
    with ExitStack() as held, socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        address = listener.getsockname()
        serve._lengthen_queue(address[1] + 1)
        assert connections(held, address) < WAITING, "another port's queue was lengthened, or this test cannot fail"

        serve._lengthen_queue(address[1])
        assert connections(held, address) == WAITING


def test_the_server_s_own_port_is_the_one(monkeypatch: pytest.MonkeyPatch) -> None:
    with ExitStack() as held, socket.create_server(("127.0.0.1", 0), backlog=1) as listener:
        address = listener.getsockname()
        established: list[int] = []
        monkeypatch.setattr(
            xllamacpp, "Server", lambda _: SimpleNamespace(listening_address=f"http://127.0.0.1:{address[1]}")
        )
        for name in ("_die_while_loading", "_leave_on_signal"):
            monkeypatch.setattr(serve, name, lambda: None)
        monkeypatch.setattr(serve, "_watch", lambda *_: established.append(connections(held, address)))

        serve.serve(parse(["-m", "x.gguf", "--port", str(address[1])], {}))

    assert established == [WAITING]


def connections(held: ExitStack, address: tuple[str, int]) -> int:
    """Open connections that nobody accepts, and return how many of WAITING were established."""
    for number in range(WAITING):
        try:
            held.enter_context(socket.create_connection(address, timeout=0.5))
        except TimeoutError:
            return number
    return WAITING
