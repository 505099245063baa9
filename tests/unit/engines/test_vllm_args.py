"""The argument list of `vllm serve`: each field by version."""

import json
from typing import Any

import pytest

from stoker.engines.vllm import Vllm
from tests.builders.layouts import a_layout
from tests.builders.specs import SpecBuilder, a_spec

VERSIONS = [f"0.{minor}.0" for minor in range(12, 34)]
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - what an engine in a pod listens on


def args_of(builder: SpecBuilder, name: str = "chat", **layout: Any) -> tuple[str, ...]:
    spec = builder.build()
    gpus = 0 if spec.accelerator is None else 1
    assert Vllm().faults(spec) == ()
    return Vllm().invocation(spec, a_layout(**{"gpus": gpus, **layout}), name).args


def after(args: tuple[str, ...], option: str) -> str:
    assert args.count(option) == 1, f"{option} in {args}"
    return args[args.index(option) + 1]


def test_the_newest_version_gets_all_that_it_has() -> None:
    args = args_of(a_spec().vllm("0.32.0"), gpus=4, tensor=4)
    assert args == (
        "meta-llama/Llama-3.1-8B-Instruct",
        "--served-model-name", "chat",
        "--host", ANY_ADDRESS, "--port", "8000",
        "--disable-fastapi-docs",
        "--disable-access-log-for-endpoints", "/health,/metrics,/v1/models",
        "--shutdown-timeout", "15",
        "--tensor-parallel-size", "4", "--pipeline-parallel-size", "1",
        "--gpu-memory-utilization", "0.9",
        "--max-model-len", "8192",
        "--max-num-seqs", "256",
        "--max-num-queued-reqs", "512",
    )  # fmt: skip


def test_the_oldest_version_gets_nothing_that_it_lacks() -> None:
    assert args_of(a_spec().vllm("0.12.0")) == (
        "meta-llama/Llama-3.1-8B-Instruct",
        "--served-model-name", "chat",
        "--host", ANY_ADDRESS, "--port", "8000",
        "--disable-fastapi-docs",
        "--tensor-parallel-size", "1", "--pipeline-parallel-size", "1",
        "--gpu-memory-utilization", "0.9",
        "--max-model-len", "8192",
        "--max-num-seqs", "256",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("option", "first"),
    [
        ("--disable-access-log-for-endpoints", 16),
        ("--shutdown-timeout", 18),
        ("--max-num-queued-reqs", 29),
    ],
)
def test_an_option_is_rendered_from_its_first_version_on(option: str, first: int) -> None:
    having = [version for version in VERSIONS if option in args_of(a_spec().vllm(version))]
    assert having == [version for version in VERSIONS if int(version.split(".")[1]) >= first]


def test_an_unknown_version_gets_only_what_every_version_has() -> None:
    spec = a_spec().vllm(None).set("engine.image", "example.com/vllm:nightly")
    assert Vllm().version(spec.build()) is None
    assert args_of(spec) == args_of(a_spec().vllm("0.12.0"))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("field", "value", "rendered"),
    [
        ("model.names", ["llama", "llama-8b"], ("--served-model-name", "llama", "llama-8b")),
        ("model.revision", "0e9e39f", ("--revision", "0e9e39f")),
        ("model.revision", "0e9e39f", ("--code-revision", "0e9e39f")),
        ("model.revision", "0e9e39f", ("--tokenizer-revision", "0e9e39f")),
        ("quantization.weights", "fp8", ("--quantization", "fp8")),
        ("quantization.kvCache", "fp8", ("--kv-cache-dtype", "fp8")),
        ("context.prefixCaching", "Enabled", ("--enable-prefix-caching",)),
        ("context.prefixCaching", "Disabled", ("--no-enable-prefix-caching",)),
        ("batching.maxBatchedTokens", 4096, ("--max-num-batched-tokens", "4096")),
        ("batching.chunkedPrefill", "Enabled", ("--enable-chunked-prefill",)),
        ("batching.chunkedPrefill", "Disabled", ("--no-enable-chunked-prefill",)),
        ("batching.scheduling", "FCFS", ("--scheduling-policy", "fcfs")),
        ("batching.scheduling", "Priority", ("--scheduling-policy", "priority")),
        ("execution.cudaGraphs", "Disabled", ("--compilation-config", '{"cudagraph_mode":"NONE"}')),
        ("execution.cudaGraphs", "Enabled", ("--compilation-config", '{"cudagraph_mode":"FULL_AND_PIECEWISE"}')),
    ],
)
def test_a_field_becomes_its_option(version: str, field: str, value: object, rendered: tuple[str, ...]) -> None:
    plain = args_of(a_spec().vllm(version))
    args = args_of(a_spec().vllm(version).set(field, value))
    assert rendered not in _runs(plain, len(rendered))
    assert rendered in _runs(args, len(rendered))


def _runs(args: tuple[str, ...], length: int) -> list[tuple[str, ...]]:
    return [args[start : start + length] for start in range(len(args))]


def test_layout_values_reach_the_arguments_N12() -> None:
    args = args_of(a_spec(), gpus=8, tensor=4, pipeline=2, max_length=4096, max_sequences=17, max_queued=34)
    options = ("--tensor-parallel-size", "--pipeline-parallel-size", "--max-model-len", "--max-num-seqs")
    assert [after(args, option) for option in options] == ["4", "2", "4096", "17"]
    assert after(args, "--max-num-queued-reqs") == "34"


def test_an_unknown_length_is_left_to_the_model() -> None:
    assert "--max-model-len" not in args_of(a_spec(), max_length=None)


@pytest.mark.parametrize(("version", "flag"), [("0.12.0", False), ("0.13.0", True), ("0.32.0", True)])
def test_the_attention_backend_is_an_option_or_a_variable(version: str, flag: bool) -> None:
    spec = a_spec().vllm(version).set("execution.attentionBackend", "FLASH_ATTN").build()
    invocation = Vllm().invocation(spec, a_layout(), "chat")
    variables = {variable.name: variable.value for variable in invocation.env}
    assert ("--attention-backend" in invocation.args) is flag
    assert variables.get("VLLM_ATTENTION_BACKEND") == (None if flag else "FLASH_ATTN")


def test_N11_speculation_is_one_item_of_json() -> None:
    spec = a_spec().set("speculation", {"method": "ngram", "tokens": 4, "promptLookupMin": 2, "promptLookupMax": 5})
    text = after(args_of(spec), "--speculative-config")
    assert text == '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":5,"prompt_lookup_min":2}'
    assert json.loads(text)["num_speculative_tokens"] == 4


def test_N11_args_arrive_byte_for_byte_at_the_end() -> None:
    given = ["--hf-overrides", '{"a": "$(HOME) \\"q\\" \'x\' `id`", "b": [1,  2]}', "--chat-template", "{{ a }}\n"]
    assert args_of(a_spec().set("engine.args", given))[-4:] == tuple(given)


def test_a_default_gives_way_to_an_argument() -> None:
    given = ["--disable-access-log-for-endpoints", "/health"]
    args = args_of(a_spec().set("engine.args", given))
    assert args.count("--disable-access-log-for-endpoints") == 1
    assert args[-2:] == tuple(given)


@pytest.mark.parametrize(
    ("source", "model", "mount"),
    [
        ("hf://acme/model", "acme/model", None),
        ("pvc://models/llama/8b", "/models/llama/8b", "/models"),
        ("pvc://models", "/models", "/models"),
    ],
)
def test_the_model_is_the_first_argument(source: str, model: str, mount: str | None) -> None:
    invocation = Vllm().invocation(a_spec().model(source).build(), a_layout(), "chat")
    assert invocation.command == ("vllm", "serve")
    assert invocation.args[0] == model
    assert invocation.model_path == mount


def test_the_service_s_name_is_served_where_no_name_is_given() -> None:
    assert after(args_of(a_spec(), name="llama.v2"), "--served-model-name") == "llama.v2"


@pytest.mark.parametrize("version", ["0.20.0", "0.32.0"])
def test_a_cpu_engine_is_told_its_kv_cache_in_bytes(version: str) -> None:
    args = args_of(a_spec().vllm(version).on_cpu(), kv_cache_bytes=123_456_789)
    assert after(args, "--kv-cache-memory-bytes") == "123456789"
    assert "--tensor-parallel-size" not in args


def test_a_cpu_engine_without_a_known_model_keeps_to_a_quarter_of_its_container() -> None:
    args = args_of(a_spec().on_cpu(), kv_cache_bytes=None, memory_request_bytes=8 * 2**30)
    assert after(args, "--kv-cache-memory-bytes") == str(2 * 2**30)


def test_a_gpu_engine_is_told_a_fraction_and_no_bytes() -> None:
    assert "--kv-cache-memory-bytes" not in args_of(a_spec())


@pytest.mark.parametrize("version", VERSIONS)
def test_metrics_are_never_switched_off(version: str) -> None:
    assert "--disable-log-stats" not in args_of(a_spec().vllm(version))


def test_equal_inputs_give_equal_invocations() -> None:
    first, second = (
        Vllm().invocation(a_spec().set("context.maxLength", 10).set("batching.maxQueued", 3).build(), a_layout(), "x"),
        Vllm().invocation(a_spec().set("batching.maxQueued", 3).set("context.maxLength", 10).build(), a_layout(), "x"),
    )
    assert first == second
