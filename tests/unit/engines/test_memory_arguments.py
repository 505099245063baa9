"""Arguments that move memory: computed where they say by how much, else the verdict leaves it open and names them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.engines.llama_cpp import LlamaCpp
from stoker.engines.llama_table import llama_options
from stoker.engines.vllm import Vllm
from stoker.engines.vllm_table import vllm_options
from stoker.plan.types import Layout, Verdict
from tests.builders.layouts import GIB, planned
from tests.builders.specs import GGUF_70B, H100, NUMBERS_70B, SpecBuilder, a_spec

L4, T4 = "NVIDIA-L4", "Tesla-T4"
VERSIONS = ("0.12.0", "0.20.0", "0.32.0", "0.33.0")
GEMMA = "hf://google/gemma-3-27b-it"
MIXTRAL = "hf://mistralai/Mixtral-8x7B-Instruct-v0.1"


def told(spec: SpecBuilder, *args: str) -> Layout:
    """Plan a spec with arguments, by the traits of the engine itself."""
    if args:
        spec = spec.set("engine.args", list(args))
    parsed = spec.build()
    engine = Vllm() if spec.raw()["engine"]["name"] == "vllm" else LlamaCpp()
    return planned(spec, traits=engine.traits(parsed))


def fits(version: str = "0.32.0") -> SpecBuilder:
    return a_spec().vllm(version).on(H100).max_length(8192)


def too_small(version: str = "0.32.0") -> SpecBuilder:
    return a_spec().vllm(version).on(T4).max_length(8192)


# ---- vLLM ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "args",
    [
        ["--enable-lora"],
        ["--enable_lora", "--max-loras", "4"],
        ["--enable-lor"],
        ["--hf-overrides", '{"num_hidden_layers": 999}'],
        ["--hf-overrides.num_hidden_layers", "999"],
        ["--hf_overrides.num_hidden_layers=999"],
        ["--hf-config-path", "/models/other"],
        ["--worker-cls", "a.b"],
        ["--enable-dbo"],
        ["--kv-transfer-config", '{"kv_connector":"NixlConnector"}'],
        ["--cudagraph-capture-sizes", "1", "1024"],
        ["--max-cudagraph-capture-size=1024"],
        ["--compilation-config", '{"cudagraph_capture_sizes": [1, 1024]}'],
        ["--compilation-config.max_cudagraph_capture_size", "1024"],
        ["-cc.cudagraph_capture_sizes=[1,1024]"],
    ],
)
def test_an_argument_that_takes_an_unknown_amount_is_never_a_fit(version: str, args: list[str]) -> None:
    layout = told(fits(version), *args)
    assert layout.verdict is Verdict.UNKNOWN
    assert layout.reasons[0].startswith("spec.engine.args[0]: --")
    assert layout.reasons[0].endswith("which the layout does not count")
    assert layout.reasons[1] == f"without that {layout.kv_tokens} tokens of KV cache on 1 GPU"


def test_an_argument_that_only_takes_leaves_a_too_small_gpu_too_small() -> None:
    layout = told(too_small(), "--enable-lora")
    assert layout.verdict is Verdict.TOO_SMALL
    assert any("--enable-lora" in reason for reason in layout.reasons)


@pytest.mark.parametrize(
    "args",
    [
        ["--no-enable-lora"],
        ["--enable-lora", "--no-enable-lora"],
        ["--max-loras", "4"],
        ["--kv-offloading-size", "0"],
        ["--kv-offloading-size", "8"],
        ["--cpu-offload-gb", "8"],
        ["--cudagraph-capture-sizes", "1", "2", "4"],
        ["--mamba-cache-dtype", "float32"],
        ["--limit-mm-per-prompt", '{"image": 8}'],
        ["--compilation-config", '{"mode": 3}'],
        ["--compilation-config", '{"cudagraph_capture_sizes": null}'],
        ["--swap-space", "4"],
        ["--enforce-eager"],
        ["--performance-mode", "balanced"],
        ["--load-format", "dummy"],
    ],
)
def test_what_takes_no_memory_of_the_gpu_of_this_model_leaves_it_fitting(args: list[str]) -> None:
    assert told(fits("0.17.0"), *args).verdict is Verdict.FITS


@pytest.mark.parametrize("version", VERSIONS)
def test_weights_that_leave_the_gpu_may_cure_what_is_short_by_less(version: str) -> None:
    short = told(too_small(version)).short_by_bytes
    assert short is not None
    more, less = -(-short // GIB), short // GIB
    opened = told(too_small(version), "--cpu-offload-gb", str(more))
    assert opened.verdict is Verdict.UNKNOWN
    assert opened.reasons[0].startswith("weights and activations need")
    assert "--cpu-offload-gb moves weights" in opened.reasons[-1]
    assert told(too_small(version), f"--cpu-offload-gb={less}").verdict is Verdict.TOO_SMALL


def test_weights_that_leave_the_gpus_are_counted_in_the_container() -> None:
    plain, moved = told(fits().tensor(2)), told(fits().tensor(2), "--cpu-offload-gb", "4")
    assert moved.memory_request_bytes == plain.memory_request_bytes + 2 * 4 * GIB
    all_of_it = told(fits().tensor(2), "--cpu-offload-gb", "400").memory_request_bytes - plain.memory_request_bytes
    assert 0 <= all_of_it - 2 * plain.ranks[0].weight_bytes < GIB
    fault = told(fits().tensor(2).set("resources.memory", "12Gi"), "--cpu-offload-gb", "4").faults[0]
    assert (fault.path, "weights that leave the GPUs (8 GiB)" in fault.problem) == ("spec.resources.memory", True)


def test_kv_cache_that_leaves_the_gpus_is_counted_in_shared_memory() -> None:
    plain, moved = told(fits()), told(fits(), "--kv-offloading-size", "32")
    assert moved.shm_bytes == plain.shm_bytes + 32 * GIB
    assert moved.memory_request_bytes == plain.memory_request_bytes + 32 * GIB


def test_the_block_size_is_computed() -> None:
    spec = fits().max_length(100)
    large = told(spec, "--block-size", "256")
    assert large.verdict is Verdict.FITS
    assert large.max_concurrency is not None
    # A sequence of 100 tokens takes a whole block.
    assert (large.kv_tokens or 0) < (told(spec).kv_tokens or 0) * 0.45


@pytest.mark.parametrize("args", [["--enforce-eager"], ["-O0"], ["-O", "0"], ["--optimization-level=0"]])
def test_an_engine_without_graphs_has_their_memory(args: list[str]) -> None:
    assert told(fits(), *args).ranks[0].graph_bytes == 0
    assert told(fits(), "-O1").ranks[0].graph_bytes > 0
    assert told(fits("0.12.0"), "-O.mode=0").ranks[0].graph_bytes > 0
    assert told(fits(), "--enforce-eager", "--no-enforce-eager").ranks[0].graph_bytes > 0


def test_a_mode_for_throughput_computes_twice_the_tokens_unless_told_otherwise() -> None:
    wide, plain = told(fits(), "--performance-mode", "throughput"), told(fits())
    assert wide.ranks[0].activation_bytes > plain.ranks[0].activation_bytes
    stated = fits().set("batching.maxBatchedTokens", 8192)
    mode = told(stated, "--performance-mode", "throughput")
    assert mode.ranks[0].activation_bytes == told(stated).ranks[0].activation_bytes


def test_windows_are_whole_without_the_hybrid_manager() -> None:
    spec = a_spec().model(GEMMA).on(H100).max_length(8192)
    plain, whole = told(spec), told(spec, "--disable-hybrid-kv-cache-manager")
    # 62 layers x 16 heads x 256 values x 2 bytes.
    assert whole.kv_bytes_per_token_per_rank == 507904
    assert (plain.kv_bytes_per_token_per_rank or 0) < 100_000
    assert whole.verdict is Verdict.FITS or whole.verdict is Verdict.TOO_SMALL
    assert told(spec, "--no-disable-hybrid-kv-cache-manager").kv_tokens == plain.kv_tokens


def test_windows_alone_stay_windows_without_the_hybrid_manager() -> None:
    spec = a_spec().on(H100).facts(
        parameterCount=7 * 10**9, layers=32, attentionHeads=32, kvHeads=8, hiddenSize=4096, vocabularySize=32000,
        maxContextLength=32768, slidingWindow=4096, slidingWindowLayers=32,
    )  # fmt: skip
    assert told(spec, "--disable-hybrid-kv-cache-manager").kv_tokens == told(spec).kv_tokens


@pytest.mark.parametrize(
    ("model", "args", "concerned"),
    [
        (GEMMA, ["--kv-offloading-size", "8"], True),
        (GEMMA, ["--limit-mm-per-prompt", '{"image": 8}'], True),
        (MIXTRAL, ["--limit-mm-per-prompt", '{"image": 8}'], False),
        (MIXTRAL, ["--enable-eplb"], True),
        (GEMMA, ["--enable-eplb"], False),
        (GEMMA, ["--mamba-ssm-cache-dtype", "float32"], True),
        (MIXTRAL, ["--mamba-ssm-cache-dtype", "float32"], False),
    ],
)
def test_an_argument_counts_in_the_models_that_it_concerns(model: str, args: list[str], concerned: bool) -> None:
    spec = a_spec().model(model).on(H100).tensor(4).max_length(8192)
    assert told(spec).verdict is Verdict.FITS
    assert told(spec, *args).verdict is (Verdict.UNKNOWN if concerned else Verdict.FITS)


def test_a_variable_that_moves_memory_is_named() -> None:
    spec = a_spec().model("hf://deepseek-ai/DeepSeek-V3").on("NVIDIA-H200").tensor(8).max_length(8192)
    set_ = spec.set("pod.env", [{"name": "VLLM_MLA_DISABLE", "value": "1"}])
    assert told(spec).verdict is Verdict.FITS
    assert (told(set_).verdict, "VLLM_MLA_DISABLE" in told(set_).reasons[0]) == (Verdict.UNKNOWN, True)
    off = spec.set("pod.env", [{"name": "VLLM_MLA_DISABLE", "value": "0"}])
    assert told(off).verdict is Verdict.FITS


def test_a_row_is_an_option_that_the_engine_has_or_had() -> None:
    from stoker.engines.llama_memory import _ROWS as LLAMA_ROWS
    from stoker.engines.vllm_memory import _ROWS as VLLM_ROWS

    assert set(VLLM_ROWS) <= set(vllm_options().options)
    assert set(LLAMA_ROWS) <= set(llama_options().options)


# ---- llama.cpp -----------------------------------------------------------------------------------------------------
def llama(layers: int = 20, version: str = "b11434") -> SpecBuilder:
    spec = a_spec().llama_cpp(version, source=GGUF_70B).facts(**NUMBERS_70B).on(L4).max_length(4096)
    return spec.set("execution.gpuLayers", layers)


@pytest.mark.parametrize("version", ["b9093", "b11434"])
@pytest.mark.parametrize(
    "args",
    [
        ["-md", "/models/draft.gguf"],
        ["--model-draft", "/models/draft.gguf"],
        ["--model_draft", "/models/draft.gguf"],
        ["-hfd", "a/b"],
        ["--mmproj", "/models/p.gguf"],
        ["-mm", "/models/p.gguf"],
        ["--lora", "/models/l.gguf"],
        ["-ot", "exps=CPU"],
        ["--override-tensor", "exps=CPU"],
        ["-fa", "off"],
        ["--override-kv", "llama.block_count=int:999"],
        ["--spec-type", "draft-mtp"],
    ],
)
def test_an_argument_of_llama_cpp_that_takes_an_unknown_amount_is_never_a_fit(version: str, args: list[str]) -> None:
    layout = told(llama(version=version), *args)
    assert layout.verdict is Verdict.UNKNOWN
    assert layout.reasons[0].startswith("spec.engine.args[0]: --")


@pytest.mark.parametrize(
    "args", [["--spec-type", "ngram-simple"], ["-fa", "auto"], ["--n-cpu-moe", "0"], ["--fit", "off"], ["--cpu-moe"]]
)
def test_what_moves_nothing_in_a_dense_model_leaves_it_fitting(args: list[str]) -> None:
    assert told(llama(), *args).verdict is Verdict.FITS


@pytest.mark.parametrize("args", [["-ncffn", "40"], ["-ot", "ffn=CPU"]])
def test_weights_that_stay_in_the_container_may_cure_what_is_short(args: list[str]) -> None:
    assert told(llama(81)).verdict is Verdict.TOO_SMALL
    assert told(llama(81), *args).verdict is Verdict.UNKNOWN


MIXTRAL_GGUF = "hf://mistralai/Mixtral-8x7B-Instruct-v0.1/mixtral.Q4_K_M.gguf"
EXPERTS = 32 * 8 * 3 * 4096 * 14336
"""32 layers x 8 experts x 3 matrices; 96 % of the model."""


def mixtral(layers: int = 33) -> SpecBuilder:
    return a_spec().llama_cpp("b11434", source=MIXTRAL_GGUF).on(L4).max_length(4096).set("execution.gpuLayers", layers)


def test_experts_that_stay_in_the_container_are_counted_there() -> None:
    whole, moved = told(mixtral()), told(mixtral(), "--cpu-moe")
    assert (whole.verdict, moved.verdict) == (Verdict.TOO_SMALL, Verdict.FITS)
    bytes_of_experts = EXPERTS * (whole.weight_bytes or 0) / 46.7e9
    assert whole.ranks[0].weight_bytes - moved.ranks[0].weight_bytes == pytest.approx(bytes_of_experts, rel=0.02)
    assert moved.memory_request_bytes - whole.memory_request_bytes == pytest.approx(bytes_of_experts, rel=0.03)
    half = told(mixtral(), "-ncmoe", "16")
    assert whole.ranks[0].weight_bytes - half.ranks[0].weight_bytes == pytest.approx(bytes_of_experts / 2, rel=0.02)


def test_experts_of_layers_that_are_not_on_the_gpu_are_counted_once() -> None:
    split, both = told(mixtral(16)), told(mixtral(16), "--n-cpu-moe", "16")
    assert (split.verdict, both.ranks, both.memory_request_bytes) == (
        Verdict.FITS,
        split.ranks,
        split.memory_request_bytes,
    )


@pytest.mark.parametrize("args", [["--cpu-moe"], ["-cmoe"], ["-ncmoe", "8"]])
def test_experts_that_numbers_do_not_tell_leave_the_verdict_open(args: list[str]) -> None:
    assert told(llama(81), *args).verdict is Verdict.UNKNOWN
    assert told(llama(81), "-ncmoe", "0").verdict is Verdict.TOO_SMALL


def test_numbers_tell_neither_encoders_nor_experts() -> None:
    numbers = {**NUMBERS_70B, "parameterCount": 8 * 10**9, "layers": 32, "attentionHeads": 32, "hiddenSize": 4096}
    spec = a_spec().on(H100).facts(**numbers).max_length(8192)
    assert told(spec).verdict is Verdict.FITS
    for args in (["--enable-eplb"], ["--limit-mm-per-prompt", '{"image": 8}']):
        assert told(spec, *args).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("args", [["-nkvo"], ["--no-kv-offload"], ["--no_kv_offload"], ["-kvo", "-nkvo"]])
def test_a_kv_cache_in_the_container_is_computed(args: list[str]) -> None:
    plain, moved = told(llama(20)), told(llama(20), *args)
    of_gpu = 4 * 4096 * 20 * 8 * 128 * 2 * 2
    assert moved.memory_request_bytes - plain.memory_request_bytes == pytest.approx(of_gpu, abs=GIB // 4)
    assert (moved.verdict, moved.kv_tokens) == (Verdict.FITS, 4 * 4096)
    assert "of KV cache on the memory of the container" in moved.reasons[0]
    assert told(llama(20), "-nkvo", "-kvo").memory_request_bytes == plain.memory_request_bytes


def test_a_kv_cache_in_the_container_leaves_room_for_more_layers() -> None:
    spec = llama(30).max_length(32768)
    assert told(spec).verdict is Verdict.TOO_SMALL
    assert told(spec, "-nkvo").verdict is Verdict.FITS


def test_the_cache_of_prompts_is_counted_in_the_container() -> None:
    plain, cached = told(llama(20)), told(llama(20), "-cram", "4096")
    assert cached.memory_request_bytes - plain.memory_request_bytes == 4 * GIB
    numbers = {"parameterCount": 134_515_008, "layers": 30, "attentionHeads": 9, "kvHeads": 3, "hiddenSize": 576}
    file = "pvc://models/smollm.Q8_0.gguf"
    small = a_spec().llama_cpp("b11434", source=file).facts(**numbers).on_cpu("2Gi").max_length(2048)
    assert told(small).verdict is Verdict.FITS
    assert told(small, "--cache-ram", "4096").verdict is Verdict.TOO_SMALL
    assert told(small, "--cache-ram", "-1").verdict is Verdict.UNKNOWN


def test_whole_windows_of_llama_cpp_are_computed() -> None:
    spec = a_spec().llama_cpp("b11434", source="hf://google/gemma-3-27b-it/gemma.Q4_K_M.gguf").on(H100).max_length(8192)
    plain, whole = told(spec), told(spec, "--swa-full")
    assert whole.kv_bytes_per_token_per_rank == 507904
    assert (plain.kv_bytes_per_token_per_rank or 0) < 100_000


def test_a_variable_of_llama_cpp_that_moves_memory_is_named() -> None:
    spec = llama(81).set("pod.env", [{"name": "GGML_CUDA_ENABLE_UNIFIED_MEMORY", "value": "1"}])
    assert (told(spec).verdict, "UNIFIED_MEMORY" in told(spec).reasons[-1]) == (Verdict.UNKNOWN, True)


# ---- whatever is written -------------------------------------------------------------------------------------------
VALUES = st.text(max_size=10) | st.sampled_from(
    [
        "0",
        "-1",
        "1e400",
        "NaN",
        "sNaN",
        "inf",
        "1_0",
        "9" * 40,
        "{",
        '{"cudagraph_capture_sizes":[[],{}]}',
        "[]",
        "none,",
    ]
)


@given(st.lists(st.sampled_from(sorted(vllm_options().by_spelling)) | VALUES, max_size=6))
def test_no_list_of_arguments_stops_the_planning_of_vllm(args: list[str]) -> None:
    layout = told(fits(), *args)
    assert layout.reasons
    assert layout.memory_request_bytes > 0


@given(st.lists(st.sampled_from(sorted(llama_options().by_spelling)) | VALUES, max_size=6))
def test_no_list_of_arguments_stops_the_planning_of_llama_cpp(args: list[str]) -> None:
    layout = told(llama(), *args)
    assert layout.reasons
    assert layout.memory_request_bytes > 0


@pytest.mark.parametrize("value", ["", "x", "NaN", "sNaN", "inf", "-inf", "1e400", "-1", "9" * 25])
@pytest.mark.parametrize(
    "option", ["--cpu-offload-gb", "--kv-offloading-size", "--block-size", "--max-cudagraph-capture-size"]
)
def test_a_size_that_is_none_moves_nothing(option: str, value: str) -> None:
    plain, odd = told(fits()), told(fits(), f"{option}={value}")
    assert (odd.memory_request_bytes, odd.shm_bytes, odd.kv_tokens) == (
        plain.memory_request_bytes,
        plain.shm_bytes,
        plain.kv_tokens,
    )


@pytest.mark.parametrize("value", ["x", "NaN", "inf", "1e400", "-1", "9" * 25])
def test_a_cache_of_prompts_without_a_size_takes_nothing_that_is_counted(value: str) -> None:
    assert told(llama(), "--cache-ram", value).memory_request_bytes == told(llama()).memory_request_bytes
