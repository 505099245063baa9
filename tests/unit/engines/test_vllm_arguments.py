"""Every spelling of an argument of `vllm serve` is recognised."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from stoker.engines import arguments
from stoker.engines.versions import Version
from stoker.engines.vllm import Vllm
from stoker.engines.vllm_arguments import read_arguments
from stoker.engines.vllm_owners import OWNERS
from stoker.engines.vllm_table import vllm_options
from tests.builders.specs import a_spec

NEWEST = Version(0, 33)
TABLE = vllm_options()


def problems(args: list[str], version: str | None = "0.32.0") -> list[str]:
    spec = a_spec().vllm(version).set("engine.args", args)
    if version is None:
        spec = spec.set("engine.image", "example.com/vllm:nightly")
    return [
        f"{fault.path[len('spec.engine.args') :]} {fault.reason}: {fault.problem}"
        for fault in Vllm().faults(spec.build())
    ]


@pytest.mark.parametrize(
    ("args", "field"),
    [
        (["--max-model-len", "8192"], "spec.context.maxLength"),
        (["--max-model-len=8k"], "spec.context.maxLength"),
        (["--max_model_len", "8192"], "spec.context.maxLength"),
        (["--max_model-len=8192"], "spec.context.maxLength"),
        (["--max-model", "8192"], "spec.context.maxLength"),
        (["--tensor-parallel-size", "2"], "spec.parallelism.tensor"),
        (["-tp", "2"], "spec.parallelism.tensor"),
        (["-tp=2"], "spec.parallelism.tensor"),
        (["-tp2"], "spec.parallelism.tensor"),
        (["-t", "2"], "spec.parallelism.tensor"),
        (["--tensor", "2"], "spec.parallelism.tensor"),
        (["-pp", "2"], "spec.parallelism.pipeline"),
        (["-q", "fp8"], "spec.quantization.weights"),
        (["-qfp8"], "spec.quantization.weights"),
        (["-q=fp8"], "spec.quantization.weights"),
        (["--quantization-config", "{}"], "spec.quantization.weights"),
        (["--kv_cache_dtype=fp8"], "spec.quantization.kvCache"),
        (["--enable-prefix-caching"], "spec.context.prefixCaching"),
        (["--no-enable-prefix-caching"], "spec.context.prefixCaching"),
        (["--disable-prefix-caching"], "spec.context.prefixCaching"),
        (["--no_enable_prefix_caching"], "spec.context.prefixCaching"),
        (["--no-enable-prefix"], "spec.context.prefixCaching"),
        (["--no-enable-chunked-prefill"], "spec.batching.chunkedPrefill"),
        (["--gpu-memory-utilization", "0.5"], "spec.accelerator.memoryFraction"),
        (["--device-memory-utilization", "0.5"], "spec.accelerator.memoryFraction"),
        (["--kv-cache-memory-bytes", "1G"], "spec.accelerator.memoryFraction"),
        (["--speculative-config", '{"method":"eagle"}'], "spec.speculation"),
        (["--speculative-config.method", "eagle"], "spec.speculation"),
        (["-sc.method=eagle"], "spec.speculation"),
        (["--speculative_config.method", "eagle"], "spec.speculation"),
        (["--spec-method", "eagle"], "spec.speculation"),
        (["--served-model-name", "a", "b"], "spec.model.names"),
        (["--revision", "main"], "spec.model.revision"),
        (["--model", "other/model"], "spec.model.source"),
        (["--hf-token"], "spec.model.credentialsSecret"),
        (["--max-num-queued-reqs", "7"], "spec.batching.maxQueued"),
        (["--seed", "1", "--max-num-seqs", "7"], "spec.batching.maxSequences"),
    ],
)
def test_an_argument_of_a_field_is_refused_in_every_spelling(args: list[str], field: str) -> None:
    for version in ("0.32.0", None):
        spec = a_spec().vllm(version).set("engine.args", args)
        spec = spec if version else spec.set("engine.image", "example.com/vllm:nightly")
        faults = Vllm().faults(spec.build())
        assert any(field in fault.remedy and fault.reason == "OwnedArgument" for fault in faults), faults


@pytest.mark.parametrize(
    "args",
    [
        ["--host", "::"], ["--hos=0.0.0.0"], ["--port=9000"], ["--uds", "/tmp/s"], ["--root-path", "/x"],
        ["--middleware", "a.b"], ["--ssl-keyfile", "k"], ["--ssl_certfile=c"], ["--enable-ssl-refresh"],
        ["--disable-log-stats"], ["--disable_log_stats"], ["--disable-log-s"], ["--config", "f.yaml"],
        ["--no-disable-fastapi-docs"], ["--enable-fastapi-docs"], ["--shutdown-timeout", "9"], ["--nnodes", "2"],
        ["-n2"], ["-n", "2"], ["-r", "1"], ["-r1"], ["--headless"], ["--grpc"], ["--device-ids", "0"],
        ["--distributed-executor-backend", "ray"], ["--download-dir", "/x"], ["-dp", "2"], ["-dp=2"], ["-dpa", "h"],
        ["--data-parallel-size", "2"], ["-ep"], ["--no-enable-expert-parallel"], ["-dcp", "2"], ["-asc", "4"],
        ["--trust-remote-code"], ["--trust_remote_code"], ["--trust-remote"], ["--no-trust-remote-code"],
        ["--tool-parser-plugin", "/models/x.py"], ["--runner", "pooling"], ["--convert", "embed"], ["--help"], ["-h"],
        ["--help=all"], ["--tokens-only"],
    ],
)  # fmt: skip
def test_an_argument_of_stoker_is_refused_in_every_spelling(args: list[str]) -> None:
    for version in ("0.32.0", None):
        assert any("OwnedArgument" in problem for problem in problems(args, version)), args


@pytest.mark.parametrize("args", [["--dtype", "float32"], ["--dtype=float"], ["--dty", "float32"]])
def test_a_type_of_twice_the_size_that_the_layout_counts_is_refused(args: list[str]) -> None:
    for version in ("0.32.0", None):
        assert any("OwnedArgument" in it and "twice the memory" in it for it in problems(args, version)), args
    assert problems(["--dtype", "bfloat16"]) == problems(["--dtype=auto"]) == []


GRAPHS_OFF = (
    ["-O.cudagraph_mode=NONE"],
    ["-O.cudagraph_mode", "NONE"],
    ["-cc.cudagraph_mode=NONE"],
    ["-cc.cudagraph_mode", "NONE"],
    ["-cc", '{"cudagraph_mode":"NONE"}'],
    ['-cc={"cudagraph_mode":"NONE"}'],
    ["--compilation-config", '{"cudagraph_mode": "NONE"}'],
    ['--compilation-config={"cudagraph_mode": "NONE"}'],
    ["--compilation-config.cudagraph_mode", "NONE"],
    ["--compilation-config.cudagraph_mode=NONE"],
    ["--compilation_config.cudagraph_mode=NONE"],
    ["--compilation-conf.cudagraph_mode=NONE"],
    ["--compilation-config.cudagraph_mode+", "NONE"],
)


@pytest.mark.parametrize("args", GRAPHS_OFF)
def test_the_mode_of_cuda_graphs_is_refused_in_every_spelling(args: list[str]) -> None:
    for version in ("0.12.0", "0.14.0", "0.32.0", None):
        told = problems(args, version)
        assert any("OwnedArgument" in it and "spec.execution.cudaGraphs" in it for it in told), (args, version, told)


@pytest.mark.parametrize(
    ("args", "version", "accepted"),
    [
        (["-O.mode=3"], "0.12.0", True),
        (["-O.mode", "3"], "0.12.0", True),
        (["-O.mode=3"], "0.15.0", True),  # nobody looked
        (["-O.mode=3"], "0.20.0", False),
        (["-O.mode", "3"], "0.32.0", False),
        (["-O3"], "0.12.0", True),
        (["-O=3"], "0.33.0", True),
        (["-O", "0"], "0.20.0", True),
        (["--optimization-level", "2"], "0.32.0", True),
        (["-Odecode"], "0.32.0", False),
        (["-O4"], "0.32.0", False),
        (["-O", "decode"], "0.32.0", False),
        (["-O", '{"mode": 3}'], "0.12.0", False),
        (["--optimization-level=-1"], "0.32.0", False),
        (["-O"], "0.32.0", False),
    ],
)
def test_a_level_of_optimization_is_a_number_from_0_to_3(args: list[str], version: str, accepted: bool) -> None:
    assert (problems(args, version) == []) is accepted


def test_keys_of_the_short_option_are_those_of_the_long_one() -> None:
    (short,), (long,) = (
        read_arguments([it], TABLE, Version(0, 12)) for it in ("-O.a.b=1", "--compilation-config.a.b=1")
    )
    assert (short.options[0], short.keys, short.values) == (long.options[0], long.keys, long.values)


def test_a_name_of_another_version_is_an_abbreviation_here() -> None:
    assert "OwnedArgument" in problems(["-dc", "2"], "0.23.0")[0]
    assert problems(["-dc", "{}"], "0.24.0") == []


@pytest.mark.parametrize(
    "args", [["--api-key", "s3cr3t"], ["--api-key=s3cr3t"], ["--api_key", "s3cr3t"], ["--api-k", "s3cr3t", "t0ps3cr3t"]]
)
def test_a_key_is_refused_and_never_repeated(args: list[str]) -> None:
    told = " ".join(str(fault) for fault in Vllm().faults(a_spec().set("engine.args", args).build()))
    assert "access does not exist yet" in told
    assert "s3cr3t" not in told


@pytest.mark.parametrize(
    "args",
    [
        ["--seed", "7"],
        ["--seed=7"],
        ["--max-logprobs", "-1"],
        ["--enable-log-requests", "--async-scheduling"],
        ["--no-async-scheduling"],
        ["--hf-overrides", '{"a": 1}'],
        ["--hf-overrides.rope.theta", "1e6"],
        ["--chat-template", "{{ x }} --host"],
        ["--allowed-origins", '["*"]'],
        ["--cudagraph-capture-sizes", "1", "2", "4"],
        ["--load-format", "dummy"],
        ["--chat-template-content-format", "string"],
        ["--enable-auto-tool-choice", "--tool-call-parser", "hermes"],
        ["--enforce-eager"],
        ["-O3"],
        ["-O", "2"],
        ["-O=1"],
        ["--generation-config", "vllm"],
    ],
)
def test_what_nobody_owns_passes(args: list[str]) -> None:
    assert problems(args) == []


@pytest.mark.parametrize(
    ("args", "version", "problem"),
    [
        (["--sede", "7"], "0.32.0", "is no option of vLLM 0.32.0"),
        (["--swap-space", "4"], "0.18.0", "exists before 0.18"),
        (["--watermark", "0.1"], "0.23.0", "exists since 0.24"),
        (["--enable-log-requests", "--disable-cascade"], "0.32.0", None),
        (["--enable-cascade-attn"], "0.32.0", "is no option"),
        (["--disable-log-requests"], "0.17.0", "exists before 0.17"),
        (["--disable-log-requests"], "0.16.0", None),
        (["--disable-log-requests"], "0.33.0", None),
        (["--anything-at-all"], "0.99.0", None),
        (["--anything-at-all"], None, None),
    ],
)
def test_an_option_that_the_version_lacks_is_refused(args: list[str], version: str | None, problem: str | None) -> None:
    told = problems(args, version)
    assert (told == []) if problem is None else (problem in told[0] and "UnknownArgument" in told[0])


@pytest.mark.parametrize(
    "args", [["--seed 7"], ["model"], ["--seed", "7", "8"], ["--"], [""], ["--enforce-eager", "x"]]
)
def test_an_item_that_is_no_option_is_refused(args: list[str]) -> None:
    for version in ("0.32.0", None):
        assert any("MalformedArgument" in problem for problem in problems(args, version)), args


def test_an_option_and_its_value_are_two_items() -> None:
    first, second = problems(["--seed 7", "8"])
    assert "one item" in first
    assert second.startswith("[1] MalformedArgument")


def test_a_value_may_be_glued_to_a_letter_only() -> None:
    glued, apart = read_arguments(["-qfp8", "-tp4"], TABLE, NEWEST)
    assert (glued.values, glued.accepted) == (("fp8",), True)
    assert (apart.options, apart.accepted) == (("--tensor-parallel-size",), False)


def test_a_value_that_is_missing_is_refused() -> None:
    assert "needs a value" in problems(["--seed", "--enforce-eager"])[0]


def test_the_nearest_option_is_suggested() -> None:
    (fault,) = Vllm().faults(a_spec().set("engine.args", ["--chat_templat_content", "x"]).build())
    assert "--chat-template" in fault.remedy


@pytest.mark.parametrize("option", sorted(OWNERS))
def test_an_owned_option_is_one_that_vllm_has_or_had(option: str) -> None:
    assert option in TABLE.options


def _mixed(spelling: str, flips: list[bool]) -> str:
    """Write some dashes of a long option as underscores."""
    if not spelling.startswith("--"):
        return spelling
    flip = iter(flips * len(spelling))
    return "--" + "".join("_" if character == "-" and next(flip) else character for character in spelling[2:])


SPELLINGS = sorted((spelling, name) for name in OWNERS for spelling in TABLE.options[name].spellings)


@given(
    st.sampled_from(SPELLINGS),
    st.lists(st.booleans(), min_size=1, max_size=8),
    st.sampled_from([["v"], ["=v"], [".key", "v"], [".key=v"], []]),
    st.lists(st.sampled_from(["--seed", "1", "--enforce-eager", "-O1"]), max_size=2),
    st.sampled_from([None, Version(0, 12), Version(0, 20), Version(0, 33), Version(1, 0)]),
)
def test_no_spelling_of_an_owned_option_slips_through(
    spelled: tuple[str, str], flips: list[bool], value: list[str], before: list[str], version: Version | None
) -> None:
    assume(before[-1:] != ["--seed"])
    spelling, name = spelled
    head, *tail = value or [""]
    item = _mixed(spelling, flips) + (head if head.startswith(("=", ".")) else "")
    items = [item, *([head] if head == "v" else []), *tail]
    read = read_arguments([*before, *items], TABLE, version)
    assert any(name in argument.options for argument in read)


@given(st.sampled_from(SPELLINGS), st.integers(3, 40))
def test_no_unique_beginning_of_an_owned_option_slips_through(spelled: tuple[str, str], length: int) -> None:
    spelling, name = spelled
    beginning = spelling[:length]
    assume(beginning.startswith("--") and beginning not in TABLE.by_spelling)
    (argument,) = read_arguments([f"{beginning}=x"], TABLE, NEWEST)
    assert name in argument.options


@given(st.lists(st.text(max_size=12) | st.sampled_from(sorted(TABLE.by_spelling)), max_size=12))
def test_any_list_is_read_to_its_end(args: list[str]) -> None:
    read = read_arguments(args, TABLE, NEWEST)
    assert [argument.index for argument in read] == sorted({argument.index for argument in read})
    assert all(argument.text == args[argument.index] for argument in read)


def test_the_nearest_option_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comparing takes milliseconds for each argument, and a faulty spec is looked at as often as its pods move."""
    asked: list[str] = []

    def compared(word: str, *_: object, **__: object) -> list[str]:
        asked.append(word)
        return []

    monkeypatch.setattr(arguments, "get_close_matches", compared)
    for _ in range(3):
        problems(["--seen-for-the-first-time"])
    assert asked == ["--seen-for-the-first-time"]
