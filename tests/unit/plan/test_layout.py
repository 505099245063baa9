"""`plan_layout`: verdicts on known hardware, unknown inputs, engines on the CPU, and the time it takes."""

import time
from decimal import Decimal

import pytest

from stoker.facts.model import UnknownFacts
from stoker.plan.inputs import UnknownDevice
from stoker.plan.types import Placement, Verdict
from tests.builders.layouts import GIB, gpu, planned, tiny
from tests.builders.specs import GGUF_70B, H100, NUMBERS_70B, a_spec
from tests.builders.traits import llama_cpp_traits, vllm_cpu_traits, vllm_traits

L4, T4, H200 = "NVIDIA-L4", "Tesla-T4", "NVIDIA-H200"
SMOLLM = "hf://HuggingFaceTB/SmolLM2-135M-Instruct"
LLAMA_70B = "hf://meta-llama/Llama-3.1-70B-Instruct"


# ---- GPUs ----------------------------------------------------------------------------------------------------------
def test_8b_on_an_h100() -> None:
    layout = planned(a_spec().on(H100).max_length(8192))
    assert layout.verdict is Verdict.FITS
    assert (layout.gpus_per_pod, layout.resource_name, layout.pods_per_replica) == (1, "nvidia.com/gpu", 1)
    assert layout.placement is Placement.GPU
    assert layout.weight_bytes_per_rank == pytest.approx(16.06e9, rel=0.001)
    assert layout.kv_bytes_per_token_per_rank == 131072
    # vLLM reports about 54 GiB and 440,000 tokens here.
    assert layout.kv_tokens == pytest.approx(440_000, rel=0.05)
    assert layout.max_concurrency == Decimal(layout.kv_tokens or 0) / 8192 // Decimal("0.01") * Decimal("0.01")
    assert layout.faults == ()


@pytest.mark.parametrize(
    ("model", "product", "tensor", "length", "verdict"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", L4, 1, 8192, Verdict.FITS),
        ("meta-llama/Llama-3.1-8B-Instruct", L4, 1, 131072, Verdict.TOO_SMALL),
        ("meta-llama/Llama-3.1-8B-Instruct", T4, 1, 8192, Verdict.TOO_SMALL),
        ("meta-llama/Llama-3.1-70B-Instruct", H100, 1, 8192, Verdict.TOO_SMALL),
        ("meta-llama/Llama-3.1-70B-Instruct", H100, 4, 8192, Verdict.FITS),
        # 812 GB in 16 bits exceed 8 x 80 GB.
        ("meta-llama/Llama-3.1-405B-Instruct", H100, 8, 8192, Verdict.TOO_SMALL),
        ("deepseek-ai/DeepSeek-V3", H100, 8, 8192, Verdict.TOO_SMALL),
        ("deepseek-ai/DeepSeek-V3", H200, 8, 8192, Verdict.FITS),
        ("openai/gpt-oss-120b", H100, 1, 8192, Verdict.FITS),
        ("google/gemma-3-27b-it", H100, 1, 8192, Verdict.FITS),
    ],
)
def test_what_is_known_to_fit_and_what_is_not(
    model: str, product: str, tensor: int, length: int, verdict: Verdict
) -> None:
    spec = a_spec().model(f"hf://{model}").on(product).tensor(tensor).max_length(length)
    assert planned(spec).verdict is verdict


def test_405b_fits_eight_h100_in_fp8_only() -> None:
    spec = a_spec().model("hf://meta-llama/Llama-3.1-405B-Instruct").on(H100).tensor(8).max_length(8192)
    assert planned(spec.weights("fp8")).verdict is Verdict.FITS
    assert {"spec.quantization.weights": "fp8"} in [dict(it.fields) for it in planned(spec).suggestions]


def test_a_gpu_that_is_too_small_says_by_how_much_and_where() -> None:
    layout = planned(a_spec().on(L4))
    assert layout.verdict is Verdict.TOO_SMALL
    assert layout.reasons[0].startswith("the KV cache of one sequence of 131072 tokens needs 16 GiB, and 3.")
    assert layout.short_by_bytes is not None
    left = layout.ranks[0].kv_bytes
    assert left is not None
    assert layout.short_by_bytes == 16 * GIB - left
    assert "short by" in layout.reasons[1]


def test_weights_that_exceed_the_gpu_are_named_as_the_cause() -> None:
    reasons = planned(a_spec().model(LLAMA_70B).on(H100)).reasons
    assert reasons[0].startswith("weights and activations need 135.")
    assert reasons[1].endswith(" on each GPU, with 40 GiB for the KV cache of one sequence of 131072 tokens")


def test_uneven_stages_give_the_capacity_of_the_fullest() -> None:
    layout = planned(a_spec().on(H100).pipeline(3).max_length(8192))
    assert [rank.layers for rank in layout.ranks] == [11, 11, 10]
    assert layout.gpus_per_pod == 3
    assert layout.kv_tokens == min(rank.kv_tokens or 0 for rank in layout.ranks)
    assert layout.weight_bytes_per_rank == max(rank.weight_bytes for rank in layout.ranks)


def test_memory_fraction_is_of_the_whole_device() -> None:
    ranks = [planned(a_spec().on(H100).memory_fraction(it)).ranks[0] for it in ("0.9", "0.5")]
    assert [rank.budget_bytes for rank in ranks] == [81559 * 2**20 * 9 // 10, 81559 * 2**20 // 2]


def test_cuda_graphs_take_memory_unless_disabled() -> None:
    disabled = planned(a_spec().on(H100).set("execution.cudaGraphs", "Disabled")).ranks[0]
    assert disabled.graph_bytes == 0
    assert planned(a_spec().on(H100)).ranks[0].graph_bytes == (256 + 12 * 32) * 2**20


def test_speculation_by_ngrams_takes_no_memory_of_the_gpu() -> None:
    drafted = a_spec().on(H100).set("speculation", {"method": "ngram", "tokens": 4})
    assert planned(drafted).kv_tokens == planned(a_spec().on(H100)).kv_tokens


def test_kaito_1744_a_slice_computes_the_steps_of_its_whole_gpu() -> None:
    """The driver tells an engine on a slice the memory of the whole GPU, by which it chooses the tokens of a step."""
    slice_ = a_spec().on("NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", memory="40192Mi").max_length(8192)
    by_itself = planned(slice_).ranks[0]
    assert (
        by_itself.activation_bytes == planned(slice_.set("batching.maxBatchedTokens", 8192)).ranks[0].activation_bytes
    )
    assert by_itself.budget_bytes == 40192 * 2**20 * 9 // 10
    small = a_spec().on("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", memory="4864Mi").max_length(8192)
    stated = planned(small.set("batching.maxBatchedTokens", 2048))
    assert planned(small).ranks[0].activation_bytes == stated.ranks[0].activation_bytes


def test_kaito_975_the_longest_sequence_over_small_gpus_is_what_one_of_them_holds() -> None:
    """Not what all of them together hold, nor what one holds of the whole model."""
    spec = a_spec().model("hf://Qwen/Qwen2.5-32B-Instruct").on(L4).tensor(4)
    layout = planned(spec)
    assert layout.verdict is Verdict.TOO_SMALL
    length = int(layout.suggestions[-1].fields["spec.context.maxLength"])
    # 64 layers x 2 of 8 heads x 128 x key and value x 2 bytes on each GPU.
    assert length == (layout.ranks[0].kv_bytes or 0) // (64 * 2 * 128 * 2 * 2) // 1024 * 1024
    assert planned(spec.max_length(length)).verdict is Verdict.FITS
    assert planned(spec.max_length(length + 2048)).verdict is Verdict.TOO_SMALL


# ---- defaults ------------------------------------------------------------------------------------------------------
def test_defaults_are_resolved_with_their_origin() -> None:
    layout = planned(a_spec().on(H100))
    assert (layout.max_length, layout.origins["maxLength"]) == (131072, "model")
    assert (layout.max_sequences, layout.origins["maxSequences"]) == (256, "default of vllm")
    assert (layout.max_queued, layout.memory_fraction) == (512, Decimal("0.9"))
    assert layout.origins["memory"] == "table of known GPUs (NVIDIA-H100-80GB-HBM3)"
    assert layout.origins["facts"] == "table of known models"


def test_fields_win_over_defaults() -> None:
    layout = planned(a_spec().on(H100).max_length(4096).set("batching.maxSequences", 32).set("batching.maxQueued", 5))
    assert (layout.max_length, layout.max_sequences, layout.max_queued) == (4096, 32, 5)
    assert layout.origins["maxLength"] == "spec.context.maxLength"


def test_the_default_of_sequences_never_exceeds_the_tokens_of_a_step() -> None:
    layout = planned(a_spec().on(H100).set("batching.maxBatchedTokens", 64))
    assert (layout.max_sequences, layout.faults) == (64, ())


def test_no_queue_limit_where_the_engine_has_none() -> None:
    assert planned(a_spec().on(H100), traits=vllm_traits(has_queue_limit=False)).max_queued is None


def test_a_larger_step_leaves_less_for_the_kv_cache() -> None:
    small, large = (planned(a_spec().on(H100).set("batching.maxBatchedTokens", it)) for it in (2048, 32768))
    assert (large.kv_tokens or 0) < (small.kv_tokens or 0)


def test_without_chunked_prefill_a_step_holds_the_longest_prompt() -> None:
    whole = planned(a_spec().on(H100).set("batching.chunkedPrefill", "Disabled"))
    assert whole.ranks[0].activation_bytes > 10 * planned(a_spec().on(H100)).ranks[0].activation_bytes


# ---- what is not known ---------------------------------------------------------------------------------------------
def test_an_unknown_model_is_unknown_and_keeps_its_counts() -> None:
    layout = planned(a_spec().model("hf://acme/novel").on(H100).tensor(4).pipeline(2))
    assert layout.verdict is Verdict.UNKNOWN
    assert "acme/novel is not in the table of known models" in layout.reasons[0]
    assert (layout.gpus_per_pod, layout.kv_tokens, layout.weight_bytes, layout.ranks) == (8, None, None, ())
    assert (layout.max_length, layout.startup_budget_seconds) == (None, 1800)
    assert layout.faults == ()


def test_an_unknown_device_still_tells_what_a_rank_needs() -> None:
    layout = planned(a_spec().on("NVIDIA-X900"))
    assert layout.verdict is Verdict.UNKNOWN
    assert layout.reasons[0].startswith("the memory of the GPU is not known: no node has the label")
    assert layout.weight_bytes_per_rank == pytest.approx(16.06e9, rel=0.001)
    assert (layout.kv_tokens, layout.ranks[0].budget_bytes, layout.ranks[0].kv_bytes) == (None, None, None)
    assert layout.suggestions == ()


def test_both_unknown_gives_both_reasons() -> None:
    layout = planned(a_spec().on(), facts=UnknownFacts("why"), device=UnknownDevice("because"))
    assert [reason.partition(":")[0] for reason in layout.reasons] == [
        "the model is not known",
        "the memory of the GPU is not known",
    ]


def test_a_model_without_a_longest_sequence_is_unknown_until_one_is_set() -> None:
    facts = tiny(max_position_embeddings=None)
    assert planned(a_spec().on(H100), facts=facts).verdict is Verdict.UNKNOWN
    assert planned(a_spec().on(H100).max_length(2048), facts=facts).verdict is Verdict.FITS


def test_weights_that_do_not_fit_are_too_small_whatever_the_length() -> None:
    facts = tiny(max_position_embeddings=None)
    assert planned(a_spec().on(H100), facts=facts, device=gpu(memory_bytes=2**20)).verdict is Verdict.TOO_SMALL


def test_a_gguf_file_whose_name_says_nothing_is_unknown_unless_its_size_is_stated() -> None:
    unnamed = a_spec().llama_cpp(source="pvc://models/model.gguf").on(L4).max_length(4096)
    assert planned(unnamed.facts(**NUMBERS_70B)).verdict is Verdict.UNKNOWN
    assert "does not state its quantization" in planned(unnamed.facts(**NUMBERS_70B)).reasons[0]
    stated = {**NUMBERS_70B, "weightBytes": 42 * GIB}
    stated.pop("parameterCount")
    assert planned(unnamed.facts(**stated)).verdict is Verdict.TOO_SMALL
    assert planned(unnamed.facts(**stated)).weight_bytes == 42 * GIB


# ---- engines on the CPU --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("memory", "dtype", "kv_gib", "tokens"),
    [
        ("4Gi", "auto", 2, 2 * GIB // (23040 * 128) * 128),
        ("16Gi", "auto", 13, 13 * GIB // (23040 * 128) * 128),
        ("4Gi", "fp8", 2, 2 * GIB // (11520 * 128) * 128),
    ],
)
def test_vllm_on_the_cpu_is_told_whole_gib_and_reports_these_tokens(
    memory: str, dtype: str, kv_gib: int, tokens: int
) -> None:
    layout = planned(a_spec().model(SMOLLM).on_cpu(memory).kv(dtype).max_length(2048))
    assert (layout.verdict, layout.placement, layout.gpus_per_pod) == (Verdict.FITS, Placement.CPU, 0)
    assert layout.resource_name is None
    assert layout.kv_cache_bytes == kv_gib * GIB
    assert layout.kv_tokens == tokens
    assert any("rounded down" in reason for reason in layout.reasons)


def test_literal_tokens_of_smollm2_on_the_cpu() -> None:
    assert planned(a_spec().model(SMOLLM).on_cpu("4Gi").max_length(2048)).kv_tokens == 93184
    assert planned(a_spec().model(SMOLLM).on_cpu("4Gi").kv("fp8").max_length(2048)).kv_tokens == 186368


def test_the_budget_of_a_cpu_engine_is_its_container() -> None:
    layout = planned(
        a_spec().model(SMOLLM).on_cpu("4Gi").max_length(2048), traits=vllm_cpu_traits(kv_cache_step_bytes=1)
    )
    rank = layout.ranks[0]
    assert rank.budget_bytes == 4 * GIB * 9 // 10
    assert layout.memory_request_bytes == 4 * GIB
    assert layout.kv_cache_bytes == rank.budget_bytes - rank.weight_bytes - rank.activation_bytes - GIB
    assert layout.origins["memory"] == "spec.resources.memory"


def test_a_cpu_engine_without_memory_gets_what_it_needs() -> None:
    layout = planned(a_spec().model(SMOLLM).on_cpu(None).max_length(2048))
    assert layout.verdict is Verdict.FITS
    assert layout.memory_request_bytes < 4 * GIB
    assert layout.kv_cache_bytes == GIB
    again = planned(a_spec().model(SMOLLM).on_cpu(f"{layout.memory_request_bytes // 2**20}Mi").max_length(2048))
    assert again.kv_cache_bytes == layout.kv_cache_bytes


def test_a_cpu_engine_of_an_unknown_model_is_told_a_part_of_its_container() -> None:
    layout = planned(a_spec().model("hf://acme/novel").on_cpu("8Gi"))
    assert (layout.verdict, layout.kv_cache_bytes) == (Verdict.UNKNOWN, GIB)
    assert planned(a_spec().model("hf://acme/novel").on_cpu(None)).memory_request_bytes == 8 * GIB


def test_a_container_below_the_weights_suggests_its_memory() -> None:
    layout = planned(a_spec().on_cpu("16Gi").max_length(8192))
    assert layout.verdict is Verdict.TOO_SMALL
    assert "of the container" in layout.reasons[0]
    wanted = layout.suggestions[0].fields["spec.resources.memory"]
    assert planned(a_spec().on_cpu(wanted).max_length(8192)).verdict is Verdict.FITS


# ---- llama.cpp -----------------------------------------------------------------------------------------------------
def smollm_numbers() -> dict[str, int]:
    return {
        "parameterCount": 134_515_008,
        "layers": 30,
        "attentionHeads": 9,
        "kvHeads": 3,
        "hiddenSize": 576,
        "maxContextLength": 8192,
    }


def test_llama_cpp_allocates_the_context_of_every_slot() -> None:
    layout = planned(a_spec().llama_cpp().facts(**smollm_numbers()).on_cpu("2Gi").max_length(2048))
    assert (layout.verdict, layout.max_sequences, layout.max_queued) == (Verdict.FITS, 4, None)
    assert (layout.kv_tokens, layout.max_concurrency) == (4 * 2048, Decimal(4))
    assert layout.kv_cache_bytes == 4 * 2048 * 23040
    assert layout.shm_bytes == 0


@pytest.mark.parametrize(("dtype", "numerator"), [("f16", 64), ("q8_0", 34), ("q4_0", 18)])
def test_quantized_kv_caches_of_llama_cpp_carry_their_scales(dtype: str, numerator: int) -> None:
    layout = planned(a_spec().llama_cpp().facts(**smollm_numbers()).on_cpu("2Gi").kv(dtype).max_length(2048))
    assert layout.kv_bytes_per_token_per_rank == 23040 * numerator // 64


def test_llama_cpp_whose_slots_do_not_fit_can_have_fewer_or_shorter_ones() -> None:
    layout = planned(a_spec().llama_cpp().facts(**smollm_numbers()).on_cpu("1Gi").max_length(8192))
    assert layout.verdict is Verdict.TOO_SMALL
    assert "of 4 sequences of 8192 tokens" in layout.reasons[0]
    fields = {path for suggestion in layout.suggestions for path in suggestion.fields}
    assert {"spec.context.maxLength", "spec.batching.maxSequences"} <= fields


def test_layers_split_between_gpu_and_container() -> None:
    spec = a_spec().llama_cpp(source=GGUF_70B).facts(**NUMBERS_70B).on(L4).max_length(4096)
    whole, split = planned(spec), planned(spec.set("execution.gpuLayers", 20))
    assert (whole.verdict, whole.placement) == (Verdict.TOO_SMALL, Placement.GPU)
    assert (split.verdict, split.placement, split.gpu_layers) == (Verdict.FITS, Placement.SPLIT, 20)
    assert split.ranks[0].layers == 20
    assert split.kv_bytes_per_token_per_rank == 20 * 8 * 128 * 2 * 2
    in_container = split.memory_request_bytes - GIB // 2
    weights, cache = 42.1e9 - split.ranks[0].weight_bytes, 4 * 4096 * 60 * 8 * 128 * 2 * 2
    assert in_container == pytest.approx(weights + cache, rel=0.03)
    assert planned(spec.set("execution.gpuLayers", 81)).placement is Placement.GPU


def test_llama_cpp_over_several_gpus_cuts_by_layers() -> None:
    spec = a_spec().llama_cpp(source=GGUF_70B).facts(**NUMBERS_70B).on(L4).max_length(4096).pipeline(4)
    layout = planned(spec)
    assert (layout.verdict, layout.gpus_per_pod, len(layout.ranks)) == (Verdict.FITS, 4, 4)


# ---- the time it takes ---------------------------------------------------------------------------------------------
def test_a_layout_takes_milliseconds() -> None:
    spec = a_spec().model("hf://meta-llama/Llama-3.1-405B-Instruct").on(L4).tensor(8)
    planned(spec)
    started = time.perf_counter()
    for _ in range(20):
        planned(spec)
    assert (time.perf_counter() - started) / 20 < 0.1


def test_the_same_inputs_give_the_same_layout() -> None:
    spec = a_spec().on(L4)
    assert planned(spec) == planned(spec)
    assert planned(a_spec().llama_cpp().on_cpu(), traits=llama_cpp_traits()) == planned(a_spec().llama_cpp().on_cpu())
