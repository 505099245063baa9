"""Where the model's facts and the GPU's memory come from."""

import json
from dataclasses import replace

import pytest

from stoker.facts.model import ModelFacts, UnknownFacts
from stoker.plan.inputs import Device, UnknownDevice, facts_origin, resolve_device, resolve_facts
from stoker.plan.snapshot import NodeView, ReferenceView
from tests.builders.configs import a_config
from tests.builders.specs import H100, SpecBuilder, a_spec
from tests.builders.views import a_node

MIB = 2**20
A100, L4 = "NVIDIA-A100-SXM4-80GB", "NVIDIA-L4"


def config_map(**data: str) -> ReferenceView:
    return ReferenceView("ConfigMap", "facts", "spec.model.facts.configMapName", True, data=data)


def with_config_map() -> SpecBuilder:
    return a_spec().model("hf://acme/novel").set("model.facts", {"configMapName": "facts"})


def facts(spec: SpecBuilder, *references: ReferenceView) -> ModelFacts:
    found = resolve_facts(spec.build(), references)
    assert isinstance(found, ModelFacts), found
    return found


def why_not(spec: SpecBuilder, *references: ReferenceView) -> str:
    found = resolve_facts(spec.build(), references)
    assert isinstance(found, UnknownFacts), found
    return found.reason


# ---- facts ---------------------------------------------------------------------------------------------------------
def test_facts_of_a_known_repository() -> None:
    assert facts(a_spec()).attention_heads == 32
    assert facts_origin(a_spec().build()) == "table of known models"


def test_facts_from_a_config_map_win_over_the_table() -> None:
    reference = config_map(**{"config.json": json.dumps(a_config())})
    spec = a_spec().set("model.facts", {"configMapName": "facts"})
    assert facts(spec, reference).hidden_size == 128
    assert facts_origin(spec.build()) == "spec.model.facts.configMapName (facts)"


def test_the_index_in_the_config_map_gives_the_size() -> None:
    index = json.dumps({"metadata": {"total_size": 4242}})
    reference = config_map(**{"config.json": json.dumps(a_config()), "model.safetensors.index.json": index})
    assert facts(with_config_map(), reference).weight_bytes == 4242


def test_the_index_of_another_format_says_nothing_of_a_gguf_file() -> None:
    index = json.dumps({"metadata": {"total_size": 4242}})
    reference = config_map(**{"config.json": json.dumps(a_config()), "model.safetensors.index.json": index})
    spec = a_spec().llama_cpp().set("model.facts", {"configMapName": "facts"})
    assert facts(spec, reference).weight_bytes is None


def test_inline_numbers() -> None:
    numbers = {"parameterCount": 10**9, "layers": 4, "attentionHeads": 8, "kvHeads": 2, "hiddenSize": 512}
    found = facts(a_spec().model("pvc://claim/model").facts(**numbers, maxContextLength=4096))
    assert (found.max_length, found.kv_heads, len(found.layers)) == (4096, 2, 4)
    assert found.layers[0].cache.values_per_head == 128
    latent = {"parameterCount": 10**9, "layers": 4, "attentionHeads": 8, "hiddenSize": 512}
    mla = facts(a_spec().facts(**latent, kvLoraRank=512, ropeHeadDim=64)).layers[0].cache
    assert (mla.heads, mla.values_per_head) == (1, 576)
    windows = facts(a_spec().facts(**numbers, slidingWindow=128, slidingWindowLayers=3)).layers
    assert sum(layer.cache.is_bounded for layer in windows) == 3


@pytest.mark.parametrize(
    ("spec", "references", "words"),
    [
        (a_spec().model("hf://acme/novel"), (), "acme/novel is not in the table of known models"),
        (a_spec().model("pvc://claim/model"), (), "lies on a volume"),
        (with_config_map(), (), "ConfigMap facts was not read"),
        (with_config_map(), (ReferenceView("ConfigMap", "facts", "", False),), "ConfigMap facts does not exist"),
        (with_config_map(), (ReferenceView("ConfigMap", "facts", "", None, problem="is forbidden"),), "is forbidden"),
        (with_config_map(), (ReferenceView("Secret", "facts", "", True, data={"config.json": "{}"}),), "was not read"),
        (with_config_map(), (config_map(other="x"),), "has no key config.json"),
        (with_config_map(), (config_map(**{"config.json": "{"}),), "config.json is no JSON"),
        (with_config_map(), (config_map(**{"config.json": "{}"}),), "num_attention_heads is missing"),
        (with_config_map(), (config_map(**{"config.json": "x" * 2_000_000}),), "larger than 1048576 bytes"),
        (
            a_spec().facts(parameterCount=1000, layers=4, attentionHeads=8, hiddenSize=512, vocabularySize=1000),
            (),
            "parameterCount 1000 is less than the embeddings",
        ),
        (
            a_spec().facts(parameterCount=10**9, layers=4, attentionHeads=8, kvHeads=3, hiddenSize=512),
            (),
            "kvHeads 3 does not divide attentionHeads 8",
        ),
        (
            a_spec().facts(parameterCount=10**9, layers=4, attentionHeads=7, hiddenSize=512),
            (),
            "set headDim",
        ),
    ],
)
def test_unknown_facts_say_why(spec: SpecBuilder, references: tuple[ReferenceView, ...], words: str) -> None:
    assert words in why_not(spec, *references)


# ---- the device ----------------------------------------------------------------------------------------------------
def device(spec: SpecBuilder, *nodes: NodeView) -> Device:
    found = resolve_device(spec.build(), nodes)
    assert isinstance(found, Device), found
    return found


def test_no_accelerator_is_no_device() -> None:
    assert resolve_device(a_spec().on_cpu().build(), ()) is None


def test_the_spec_wins_over_labels_and_table() -> None:
    found = device(a_spec().on(H100, memory="40Gi"), a_node(gpus=8))
    assert (found.memory_bytes, found.origin) == (40 * 2**30, "spec.accelerator.memory")


def test_the_label_wins_over_the_table() -> None:
    found = device(a_spec().on(H100), a_node("gpu-1", gpus=8, memory_mib=80000))
    assert found.memory_bytes == 80000 * MIB
    assert found.origin == "label nvidia.com/gpu.memory of node gpu-1"
    assert found.landing.largest == 8


def test_the_table_serves_where_no_node_is() -> None:
    found = device(a_spec().on(H100), a_node(gpus=8, product=L4))
    assert (found.memory_bytes, found.landing.largest) == (81559 * MIB, None)
    assert found.origin == f"table of known GPUs ({H100})"


def test_the_least_of_all_gpus_on_which_a_pod_may_land() -> None:
    small, large = a_node("a", gpus=4, memory_mib=40000), a_node("b", gpus=8, memory_mib=81559)
    assert device(a_spec().on(H100), large, small).memory_bytes == 40000 * MIB
    assert device(a_spec().on(H100, L4), large).memory_bytes == 23034 * MIB
    assert device(a_spec().on(), a_node("a", gpus=1, product=L4), large).product == L4


def test_slices_that_hide_behind_the_whole_gpus_resource_count_by_their_label() -> None:
    product = "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"
    assert device(a_spec().on(), a_node(gpus=7, product=product, memory_mib=4864)).memory_bytes == 4864 * MIB
    assert device(a_spec().on(A100), a_node(gpus=7, product=product, memory_mib=4864)).memory_bytes == 81920 * MIB


def test_a_node_without_the_memory_label_counts_by_its_product() -> None:
    node = a_node(gpus=1, product=L4)
    unlabelled = replace(node, labels={"nvidia.com/gpu.product": L4})
    assert device(a_spec().on(), unlabelled).memory_bytes == 23034 * MIB


@pytest.mark.parametrize("value", ["", "-1", "80 GB", "9" * 30, "NaN", "0x10", "\u0661\u0662"])
def test_a_label_that_is_no_number_is_no_memory(value: str) -> None:
    node = a_node(gpus=1, product="NVIDIA-X900", memory_mib=1, labels={"nvidia.com/gpu.memory": value})
    assert isinstance(resolve_device(a_spec().on().build(), (node,)), UnknownDevice)


def test_the_capability_is_the_least() -> None:
    assert device(a_spec().on(H100, A100)).capability == (8, 0)
    labels = {"nvidia.com/gpu.compute.major": "7", "nvidia.com/gpu.compute.minor": "5"}
    assert device(a_spec().on(H100), a_node(gpus=1, labels=labels)).capability == (7, 5)


def test_unknown_devices_say_why() -> None:
    nowhere = resolve_device(a_spec().on().build(), (a_node(),))
    assert isinstance(nowhere, UnknownDevice)
    assert "set spec.accelerator.memory or spec.accelerator.products" in nowhere.reason
    unknown = resolve_device(a_spec().on("NVIDIA-X900").build(), (a_node(gpus=8),))
    assert isinstance(unknown, UnknownDevice)
    assert "NVIDIA-X900" in unknown.reason
    assert "set spec.accelerator.memory, or write spec.accelerator.products as the label" in unknown.reason
    assert unknown.landing.largest is None
