"""N12: a contradiction is rejected with the field, and with both fields where two contradict each other."""

import pytest

from stoker.plan.contradictions import valid_tensors
from stoker.plan.types import Layout, Verdict
from tests.builders.layouts import gpu, model, planned, tiny
from tests.builders.specs import H100, SpecBuilder, a_spec
from tests.builders.views import a_node

T4, A100, B200 = "Tesla-T4", "NVIDIA-A100-SXM4-80GB", "NVIDIA-B200"
GPT_OSS = "hf://openai/gpt-oss-20b"


def fault_of(layout: Layout) -> tuple[str, str]:
    """The only fault: (path, whole sentence)."""
    assert len(layout.faults) == 1, layout.faults
    return layout.faults[0].path, str(layout.faults[0])


CASES: dict[str, tuple[SpecBuilder, str, tuple[str, ...]]] = {
    "heads": (
        a_spec().on(H100).tensor(3),
        "spec.parallelism.tensor",
        ("32 attention heads and 8 key-value heads cannot be divided over 3 GPUs", "1, 2, 4, 8, 16, 32"),
    ),
    "kv heads": (
        a_spec().model("hf://microsoft/phi-4").on(H100).tensor(4).max_length(4096),
        "spec.parallelism.tensor",
        ("40 attention heads and 10 key-value heads", "one of 1, 2, 5, 10, 20, 40"),
    ),
    "71 heads of falcon": (
        a_spec().model("hf://tiiuae/falcon-7b").on(H100).tensor(2),
        "spec.parallelism.tensor",
        ("71 attention heads and 1 key-value heads", "set it to one of 1"),
    ),
    "N13 slices of a GPU": (
        a_spec().on("NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", memory="40Gi").tensor(2).max_length(4096),
        "spec.parallelism",
        ("spec.accelerator.products", "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", "set tensor and pipeline to 1"),
    ),
    "a shared GPU": (
        a_spec().on(H100, f"{H100}-SHARED").pipeline(2),
        "spec.parallelism",
        ("spec.accelerator.products", f"{H100}-SHARED", "whole GPUs"),
    ),
    "stages": (
        a_spec().model("hf://google/gemma-2b").on(H100).pipeline(20),
        "spec.parallelism.pipeline",
        ("18 layers, fewer than the 20 stages", "18 or less"),
    ),
    "a whole GPU": (
        a_spec().on(H100).max_length(4096).memory_fraction("1"),
        "spec.accelerator.memoryFraction",
        ("1 leaves nothing of each GPU", "the context of CUDA", "set it to 0.99 or less"),
    ),
    "almost a whole GPU": (
        a_spec().on("NVIDIA-L4").max_length(4096).memory_fraction("0.99"),
        "spec.accelerator.memoryFraction",
        ("0.99 leaves 230.34 MiB of each GPU", "set it to 0.96 or less"),
    ),
    "the whole of a GPU that nobody knows": (
        a_spec().on("NVIDIA-X900").max_length(4096).memory_fraction("1.0"),
        "spec.accelerator.memoryFraction",
        ("leaves nothing", "set it to 0.95 or less"),
    ),
    "length": (
        a_spec().on(H100).max_length(200_000),
        "spec.context.maxLength",
        ("200000 tokens are more than the 131072", "131072 or less", "spec.model.facts"),
    ),
    "whole prompts, length of the model": (
        a_spec().on(H100).set("batching.chunkedPrefill", "Disabled").set("batching.maxBatchedTokens", 2048),
        "spec.batching.maxBatchedTokens",
        ("spec.batching.chunkedPrefill Disabled", "131072", "spec.context.maxLength to 2048"),
    ),
    "sequences": (
        a_spec().on(H100).set("batching.maxSequences", 64).set("batching.maxBatchedTokens", 32),
        "spec.batching.maxSequences",
        ("64 sequences", "lower it to 32", "spec.batching.maxBatchedTokens"),
    ),
    "fp8 on a T4": (
        a_spec().on(T4).weights("fp8").max_length(1024),
        "spec.quantization.weights",
        ("fp8 needs compute capability 8.0, and Tesla-T4 has 7.5", "spec.accelerator.products"),
    ),
    "the checkpoint's own quantization on a T4": (
        a_spec().model(GPT_OSS).on(T4).max_length(1024),
        "spec.model.source",
        ("quantized as mxfp4, which needs 8.0", "Tesla-T4 has 7.5"),
    ),
    "another quantization than the checkpoint's": (
        a_spec().model(GPT_OSS).on(H100).weights("awq").max_length(1024),
        "spec.quantization.weights",
        ("awq contradicts the checkpoint of spec.model.source, which is mxfp4", "remove it"),
    ),
    "no layer on the GPU": (
        a_spec().llama_cpp().on(H100).set("execution.gpuLayers", 0),
        "spec.execution.gpuLayers",
        ("0 leaves the GPU of spec.accelerator idle",),
    ),
    "more memory than the GPU has": (
        a_spec().on("NVIDIA-L4", memory="80Gi").max_length(1024),
        "spec.accelerator.memory",
        ("80 GiB is more than the 22.49 GiB of table of known GPUs (NVIDIA-L4)", "spec.accelerator.products"),
    ),
    "a container below its shared memory": (
        a_spec().on(H100).tensor(2).set("resources.memory", "4Gi"),
        "spec.resources.memory",
        ("4 GiB cannot hold", "shared memory (8 GiB)", "at least 10Gi"),
    ),
}


@pytest.mark.parametrize(("spec", "path", "words"), CASES.values(), ids=CASES)
def test_N12_a_contradiction_names_its_fields(spec: SpecBuilder, path: str, words: tuple[str, ...]) -> None:
    found, sentence = fault_of(planned(spec))
    assert found == path
    assert all(word in sentence for word in words), sentence


def test_more_layers_on_the_gpu_than_there_are() -> None:
    spec = a_spec().llama_cpp().on(H100).set("execution.gpuLayers", 4)
    path, sentence = fault_of(planned(spec, facts=tiny()))
    assert path == "spec.execution.gpuLayers"
    assert "4 is more than the model's 2 layers and its output layer" in sentence
    assert planned(spec.set("execution.gpuLayers", 3), facts=tiny()).faults == ()


def test_a_container_below_the_layers_outside_the_gpu() -> None:
    numbers = {"parameterCount": 8 * 10**9, "layers": 32, "attentionHeads": 32, "hiddenSize": 4096}
    spec = a_spec().llama_cpp().facts(**numbers).on(H100).max_length(1024).set("execution.gpuLayers", 1)
    path, sentence = fault_of(planned(spec.set("resources.memory", "2Gi")))
    assert path == "spec.resources.memory"
    assert "layers outside the GPU" in sentence


@pytest.mark.parametrize(
    "spec",
    [
        a_spec().on(A100).weights("fp8").max_length(1024),
        a_spec().model(GPT_OSS).on(H100).weights("gpt_oss_mxfp4").max_length(1024),
        a_spec().model("hf://deepseek-ai/DeepSeek-V3").on(B200).tensor(8).weights("fp8"),
        a_spec().model("hf://deepseek-ai/DeepSeek-V3").on(B200).tensor(16),
        a_spec().on(H100).tensor(16),
        a_spec().on(H100, memory="80Gi"),
        a_spec().on("NVIDIA-L4", memory="24Gi").max_length(1024),
        a_spec().on("NVIDIA-X900", memory="500Gi"),
        a_spec().on(H100).max_length(131072),
        a_spec().on(H100).set("batching.chunkedPrefill", "Disabled"),
        a_spec().model("hf://acme/novel").on(H100).tensor(3),
        a_spec().on("NVIDIA-X900").weights("fp8"),
        a_spec().on(H100).set("resources.memory", "16Gi"),
    ],
)
def test_what_is_no_contradiction(spec: SpecBuilder) -> None:
    assert planned(spec).faults == ()


def test_every_valid_tensor_size_divides_the_heads() -> None:
    assert valid_tensors(model("Qwen/Qwen2.5-7B")) == (1, 2, 4, 28)
    assert valid_tensors(model("deepseek-ai/DeepSeek-V3")) == (1, 2, 4, 8, 16, 32, 64)
    assert valid_tensors(model("HuggingFaceTB/SmolLM2-135M")) == (1, 3, 9)


def test_faults_do_not_hide_the_arithmetic() -> None:
    layout = planned(a_spec().on(H100).tensor(3))
    assert layout.kv_tokens
    assert planned(a_spec().on().pipeline(40), device=gpu()).ranks == ()


@pytest.mark.parametrize(("product", "fraction"), [(H100, "0.99"), ("NVIDIA-L4", "0.98"), (T4, "0.97")])
def test_a_fraction_that_leaves_the_context_its_room_passes(product: str, fraction: str) -> None:
    assert planned(a_spec().on(product).max_length(4096).memory_fraction(fraction)).faults == ()


SLICE = "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb"


def on_nodes(spec: SpecBuilder, *products: str) -> Layout:
    nodes = [a_node(f"node-{i}", gpus=8, product=it, memory_mib=40192) for i, it in enumerate(products)]
    return planned(spec, nodes=nodes)


@pytest.mark.parametrize("product", [SLICE, f"{A100}-SHARED"])
def test_N13_parts_of_gpus_on_every_known_node_are_refused_without_a_product(product: str) -> None:
    path, told = fault_of(on_nodes(a_spec().on(memory="40Gi").tensor(2).max_length(4096), product, product))
    assert path == "spec.parallelism"
    assert f"node-0 ({product})" in told
    assert on_nodes(a_spec().on(memory="40Gi").max_length(4096), product).faults == ()


def test_N13_parts_of_gpus_on_some_nodes_leave_the_verdict_open() -> None:
    spec = a_spec().on(memory="40Gi").tensor(2).max_length(4096)
    assert on_nodes(spec, A100).verdict is Verdict.FITS
    mixed = on_nodes(spec, A100, SLICE)
    assert (mixed.verdict, mixed.faults) == (Verdict.UNKNOWN, ())
    assert f"node-1 ({SLICE})" in mixed.reasons[0]
    assert "spec.accelerator.products" in mixed.reasons[0]
    assert on_nodes(spec.on(A100, memory="40Gi"), A100, SLICE).verdict is Verdict.FITS


def test_N13_nodes_that_do_not_take_the_pods_do_not_count() -> None:
    spec = a_spec().on(memory="40Gi").tensor(2).max_length(4096)
    apart = a_node("slices", gpus=8, product=SLICE, memory_mib=40192, taints=(("slices", "", "NoSchedule"),))
    assert planned(spec, nodes=[a_node("whole", gpus=8, product=A100), apart]).verdict is Verdict.FITS
    assert (
        planned(
            spec.set("pod.nodeSelector", {"zone": "b"}), nodes=[a_node(gpus=8, product=SLICE, memory_mib=40192)]
        ).faults
        == ()
    )


def test_N13_an_affinity_may_lead_elsewhere() -> None:
    expression = {"key": "zone", "operator": "In", "values": ["b"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    layout = on_nodes(a_spec().on(memory="40Gi").tensor(2).max_length(4096).set("pod.affinity", affinity), SLICE)
    assert (layout.verdict, layout.faults) == (Verdict.UNKNOWN, ())


@pytest.mark.parametrize(("tensor", "verdict"), [(4, Verdict.FITS), (8, Verdict.UNKNOWN)])
def test_more_gpus_than_any_known_node_has_leave_the_verdict_open(tensor: int, verdict: Verdict) -> None:
    for spec in (a_spec().on(H100), a_spec().on()):
        nodes = [a_node("a", gpus=2), a_node("b", gpus=4), a_node("c")]
        layout = planned(spec.tensor(tensor).max_length(4096), nodes=nodes)
        assert (layout.verdict, layout.faults) == (verdict, ())
    if verdict is Verdict.UNKNOWN:
        assert "one replica takes 8 GPUs of one node, and the largest that is known has 4" in layout.reasons[0]


def test_where_no_node_is_known_none_is_too_small() -> None:
    assert planned(a_spec().on(H100).tensor(8).max_length(4096)).verdict is Verdict.FITS
    assert planned(a_spec().on(H100).tensor(8).max_length(4096), nodes=[a_node()]).verdict is Verdict.FITS


def test_the_usual_fraction_passes_on_the_smallest_slice() -> None:
    slice_ = a_spec().on("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", memory="4864Mi").max_length(4096)
    assert planned(slice_).faults == ()
