"""Every spelling of an argument of llama-server is recognised."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.engines.llama_arguments import OWNERS, read_arguments
from stoker.engines.llama_cpp import LlamaCpp
from stoker.engines.llama_table import llama_options
from stoker.engines.versions import Build
from tests.builders.specs import a_spec

CPU = a_spec().llama_cpp().on_cpu()


def reasons(args: list[str], version: str | None = "b11434") -> list[str]:
    spec = CPU.set("engine.version", version).set("engine.args", args)
    if version is None:
        spec = spec.set("engine.image", "example.com/llama:1")
    return [f"{fault.reason} {fault.remedy}" for fault in LlamaCpp().faults(spec.build())]


@pytest.mark.parametrize(
    ("args", "remedy"),
    [
        (["-c", "4096"], "spec.context.maxLength"),
        (["--ctx-size", "4096"], "spec.context.maxLength"),
        (["--ctx_size", "4096"], "spec.context.maxLength"),
        (["--ctx-size=4096"], "spec.context.maxLength"),
        (["-kvu"], "spec.context.maxLength"),
        (["--no-kv-unified"], "spec.context.maxLength"),
        (["-np", "2"], "spec.batching.maxSequences"),
        (["-ub", "2"], "spec.batching.maxBatchedTokens"),
        (["-ctk", "q8_0"], "spec.quantization.kvCache"),
        (["--no-cache-prompt"], "spec.context.prefixCaching"),
        (["-ngl", "9"], "spec.execution.gpuLayers"),
        (["--gpu-layers", "9"], "spec.execution.gpuLayers"),
        (["--gpu_layers", "9"], "spec.execution.gpuLayers"),
        (["--n-gpu-layers=9"], "spec.execution.gpuLayers"),
        (["-ngl=9"], "spec.execution.gpuLayers"),
        (["-ngl 9"], "spec.execution.gpuLayers"),
        (["-ngl9"], "spec.execution.gpuLayers"),
        (["-c4096"], "spec.context.maxLength"),
        (["-np4"], "spec.batching.maxSequences"),
        (["-t8"], "spec.resources.cpu"),
        (["-ts1,1"], "spec.parallelism.pipeline"),
        (["-t", "9"], "spec.resources.cpu"),
        (["-m", "x.gguf"], "spec.model.source"),
        (["-hf", "a/b"], "spec.model.source"),
        (["-hft", "x"], "spec.model.credentialsSecret"),
        (["-a", "x"], "spec.model.names"),
        (["--host", "::"], "remove it"),
        (["--port 9"], "remove it"),
        (["--metrics"], "remove it"),
        (["--slots"], "remove it"),
        (["--no-slots"], "remove it"),
        (["--api-key", "k"], "NetworkPolicy"),
        (["--api-key-file", "k"], "NetworkPolicy"),
        (["--ssl-key-file", "k"], "remove it"),
        (["--tools", "all"], "remove it"),
        (["--models-dir", "/x"], "remove it"),
        (["--embedding"], "remove it"),
        (["--sleep-idle-seconds", "5"], "remove it"),
        (["-h"], "remove it"),
        (["--usage"], "remove it"),
        (["--license"], "remove it"),
        (["--webui"], "remove it"),
        (["--fim-qwen-7b-default"], "spec.model.source"),
        (["--fim-qwen-14b-spec"], "spec.model.source"),
        (["--gpt-oss-120b-default"], "spec.model.source"),
        (["--embd-gemma-default"], "spec.model.source"),
        (["--vision-gemma-4b-default"], "spec.model.source"),
    ],
)
def test_an_owned_argument_is_refused_in_every_spelling(args: list[str], remedy: str) -> None:
    for version in ("b11434", "b9093", "b12000", None):
        assert any(r.startswith("OwnedArgument") and remedy in r for r in reasons(args, version)), (args, version)


@pytest.mark.parametrize(
    "args",
    [["--temp", "0.5"], ["-s", "-1"], ["--top_k", "4"], ["-fa", "on"], ["--chat-template", "--host"], ["--jinja"]],
)
def test_what_nobody_owns_passes(args: list[str]) -> None:
    assert reasons(args) == []


@pytest.mark.parametrize(
    ("args", "version", "refused"),
    [
        (["--bogus"], "b11434", True),
        (["--bogus"], "b12000", False),
        (["--bogus"], None, False),
        (["--mmap"], "b9093", False),
        (["--mmap"], "b11434", True),
        (["--load-mode", "mmap"], "b9093", True),
        (["-mmdev", "none"], "b9093", True),
        (["-mmdev", "none"], "b11434", False),
        (["--load-mode", "mmap"], "b10000", False),
        (["--load-mode", "mmap"], "b11434", False),
        (["--temp=0.5"], "b11434", True),
        (["stray"], "b11434", True),
        (["--temp"], "b11434", True),
        (["--temp"], None, True),
    ],
)
def test_what_the_build_does_not_take_is_refused(args: list[str], version: str | None, refused: bool) -> None:
    assert bool(reasons(args, version)) is refused


def test_a_value_glued_to_an_option_is_told_what_is_right() -> None:
    (fault,) = LlamaCpp().faults(CPU.set("engine.args", ["-s42"]).build())
    assert (fault.reason, fault.remedy) == ("MalformedArgument", "write option and value as two items")


@pytest.mark.parametrize("option", sorted(OWNERS))
def test_an_owned_option_is_one_that_llama_cpp_has(option: str) -> None:
    assert option in llama_options().options


SPELLINGS = sorted((spelling, name) for name in OWNERS for spelling in llama_options().options[name].spellings)


@given(st.sampled_from(SPELLINGS), st.sampled_from([None, Build(9093, 0), Build(11434, 0), Build(20000, 0)]))
def test_no_spelling_of_an_owned_option_slips_through(spelled: tuple[str, str], build: Build | None) -> None:
    spelling, name = spelled
    for item in (spelling, f"{spelling}=1", f"{spelling} 1", spelling[:2] + spelling[2:].replace("-", "_")):
        if item.startswith("--") or item == spelling or "=" in item or " " in item:
            read = read_arguments(["--temp", "1", item, "v", "w"], build)
            assert any(name in argument.options for argument in read), item


@given(st.lists(st.text(max_size=8) | st.sampled_from([s for s, _ in SPELLINGS]), max_size=12))
def test_any_list_is_read_to_its_end(args: list[str]) -> None:
    for argument in read_arguments(args, Build(11434, 0)):
        assert args[argument.index] == argument.text
