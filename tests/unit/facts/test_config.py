"""config.json: the many names of one thing, and what strangers put into it."""

import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.facts.config import facts_from_config
from stoker.facts.model import CacheKind, Checkpoint, FactsError, ModelFacts
from stoker.facts.reading import MAX_CONFIG_BYTES, parse_json_object
from tests.builders.configs import a_config


def attention(config: dict[str, Any]) -> tuple[int, int]:
    """(key-value heads, head size) of the first layer."""
    cache = facts_from_config(config).layers[0].cache
    return cache.heads, cache.values_per_head // 2


ODD_NAMES: dict[str, tuple[dict[str, Any], tuple[int, int]]] = {
    "kv heads default to heads": (a_config(num_key_value_heads=None), (4, 32)),
    "explicit head_dim": (a_config(head_dim=80), (2, 80)),
    "head_dim null": (a_config() | {"head_dim": None}, (2, 32)),
    "head_dim 0 is none": (a_config(head_dim=0), (2, 32)),
    "falcon multi query": (
        a_config(model_type="falcon", num_key_value_heads=None, multi_query=True, num_kv_heads=4),
        (1, 32),
    ),
    "falcon new architecture": (
        a_config(
            model_type="falcon",
            num_key_value_heads=None,
            multi_query=True,
            new_decoder_architecture=True,
            num_kv_heads=2,
        ),
        (2, 32),
    ),
    "falcon n_head_kv": (a_config(model_type="falcon", num_key_value_heads=None, n_head_kv=1), (1, 32)),
    "gpt_bigcode": (
        {"model_type": "gpt_bigcode", "n_layer": 2, "n_head": 4, "n_embd": 128, "vocab_size": 9, "multi_query": True},
        (1, 32),
    ),
    "chatglm": (
        {
            "model_type": "chatglm",
            "num_layers": 2,
            "num_attention_heads": 32,
            "hidden_size": 4096,
            "kv_channels": 128,
            "multi_query_attention": True,
            "multi_query_group_num": 2,
            "ffn_hidden_size": 13696,
            "padded_vocab_size": 65024,
            "seq_length": 8192,
        },
        (2, 128),
    ),
    "chatglm without groups": (
        a_config(num_key_value_heads=None, multi_query_attention=False, multi_query_group_num=2),
        (4, 32),
    ),
    "mpt": (
        {
            "model_type": "mpt",
            "n_layers": 2,
            "n_heads": 8,
            "d_model": 512,
            "vocab_size": 9,
            "expansion_ratio": 4,
            "attn_config": {"kv_n_heads": 2},
        },
        (2, 64),
    ),
    "dbrx": (
        {
            "model_type": "dbrx",
            "n_layers": 2,
            "n_heads": 48,
            "d_model": 6144,
            "vocab_size": 100352,
            "max_seq_len": 32768,
            "attn_config": {"kv_n_heads": 8},
            "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
        },
        (8, 128),
    ),
    "nested text_config": ({"model_type": "llava", "text_config": a_config(), "vision_config": {}}, (2, 32)),
    "nested llm_config": ({"model_type": "internvl", "llm_config": a_config()}, (2, 32)),
    "gemma3 text_config that leaves out its heads": (
        {
            "model_type": "gemma3",
            "text_config": {
                "model_type": "gemma3_text",
                "hidden_size": 2560,
                "intermediate_size": 10240,
                "num_hidden_layers": 34,
                "sliding_window": 1024,
            },
        },
        (4, 256),
    ),
}


@pytest.mark.parametrize(("config", "expected"), ODD_NAMES.values(), ids=ODD_NAMES)
def test_attention_under_its_many_names(config: dict[str, Any], expected: tuple[int, int]) -> None:
    assert attention(config) == expected


def kinds(**changes: Any) -> list[CacheKind]:
    return [layer.cache.kind for layer in facts_from_config(a_config(**changes)).layers]


FULL, WINDOW, CHUNK, STATE, NOTHING = (
    CacheKind.FULL,
    CacheKind.WINDOW,
    CacheKind.CHUNK,
    CacheKind.STATE,
    CacheKind.NOTHING,
)
MAMBA2 = {"mamba_n_heads": 8, "mamba_d_head": 32, "mamba_d_state": 16, "mamba_n_groups": 1, "mamba_d_conv": 4}
DELTA = {
    "linear_num_key_heads": 2,
    "linear_key_head_dim": 16,
    "linear_num_value_heads": 4,
    "linear_value_head_dim": 16,
    "linear_conv_kernel_dim": 4,
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [FULL, FULL]),
        ({"sliding_window": 512, "model_type": "mistral"}, [WINDOW, WINDOW]),
        ({"sliding_window": 512, "use_sliding_window": False}, [FULL, FULL]),
        ({"sliding_window": 512, "model_type": "qwen2"}, [FULL, FULL]),
        ({"sliding_window": 512, "use_sliding_window": True, "max_window_layers": 1}, [FULL, WINDOW]),
        ({"sliding_window": 512, "sliding_window_pattern": 2}, [WINDOW, FULL]),
        ({"sliding_window": 512, "layer_types": ["full_attention", "sliding_attention"]}, [FULL, WINDOW]),
        ({"sliding_window": 4096}, [FULL, FULL]),
        ({"model_type": "gemma2"}, [FULL, FULL]),
        ({"model_type": "gemma2", "max_position_embeddings": 8192}, [WINDOW, FULL]),
        ({"attention_chunk_size": 128, "no_rope_layer_interval": 2}, [CHUNK, FULL]),
        ({"full_attention_interval": 2, **DELTA}, [STATE, FULL]),
        ({"attn_layer_indices": [1], **MAMBA2}, [STATE, FULL]),
        ({"attn_layer_period": 2, "attn_layer_offset": 0, **MAMBA2}, [FULL, STATE]),
        ({"layer_types": ["mamba", "attention"], **MAMBA2}, [STATE, FULL]),
        ({"hybrid_override_pattern": "*-"}, [FULL, NOTHING]),
        ({"num_kv_shared_layers": 1}, [FULL, NOTHING]),
    ],
)
def test_kinds_of_layers(changes: dict[str, Any], expected: list[CacheKind]) -> None:
    assert kinds(**changes) == expected


def test_the_two_kinds_of_layers_may_differ_in_heads() -> None:
    config = a_config(sliding_window=512, sliding_window_pattern=2, global_head_dim=64, num_global_key_value_heads=1)
    window, full = (layer.cache for layer in facts_from_config(config).layers)
    assert (window.heads, window.values_per_head, full.heads, full.values_per_head) == (2, 64, 1, 128)


def test_state_of_mamba2_and_of_gated_delta_networks() -> None:
    mamba = facts_from_config(a_config(layer_types=["mamba", "attention"], **MAMBA2)).layers[0].cache
    assert mamba.state_bytes == 2 * ((256 + 2 * 16) * 3 + 256 * 16)
    delta = facts_from_config(a_config(full_attention_interval=2, **DELTA)).layers[0].cache
    assert delta.state_bytes == 2 * (2 * 32 + 64) * 3 + 4 * 64 * 16
    stated = a_config(full_attention_interval=2, mamba_ssm_dtype="bfloat16", **DELTA)
    assert facts_from_config(stated).layers[0].cache.state_bytes == 2 * (2 * 32 + 64) * 3 + 2 * 64 * 16


def test_sparse_attention_keeps_an_index_beside_the_latent() -> None:
    config = a_config(kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128, index_head_dim=128)
    assert facts_from_config(config).layers[0].cache.index_bytes == 132


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 4096),
        ({"max_position_embeddings": None}, None),
        ({"n_positions": 1024}, 1024),
        ({"model_max_length": 131072}, 131072),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, 8192),
        ({"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 4096}}, 16384),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 4096),
        ({"rope_scaling": {"rope_type": "linear", "factor": 8.0}, "model_type": "gemma3_text"}, 4096),
        ({"rope_scaling": {"mrope_section": [16, 24, 24], "type": "mrope"}}, 4096),
    ],
)
def test_the_longest_sequence(changes: dict[str, Any], expected: int | None) -> None:
    assert facts_from_config(a_config(**changes)).max_length == expected


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, Checkpoint("fp8")),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, Checkpoint("awq", Decimal("4.15625"))),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}, Checkpoint("gptq", Decimal("4.125"))),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, Checkpoint("gptq", Decimal(8))),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, Checkpoint("bitsandbytes", Decimal("4.5"))),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, Checkpoint("bitsandbytes", Decimal(8))),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 16, "type": "float"}}},
            },
            Checkpoint("compressed-tensors", Decimal("4.5")),
        ),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": {"num_bits": 8}}}},
            Checkpoint("compressed-tensors", Decimal(8)),
        ),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, Checkpoint("modelopt_fp4")),
        ({"quant_algo": "FP8"}, Checkpoint("modelopt")),
    ],
)
def test_quantized_checkpoints(quantization: dict[str, Any], expected: Checkpoint) -> None:
    assert facts_from_config(a_config(quantization_config=quantization)).checkpoint == expected


def test_the_quantization_of_a_nested_model_stands_outside() -> None:
    config = {"model_type": "llava", "text_config": a_config(), "quantization_config": {"quant_method": "awq"}}
    assert facts_from_config(config).checkpoint == Checkpoint("awq")


def test_the_index_gives_the_size_of_the_weights() -> None:
    found = facts_from_config(a_config(), {"metadata": {"total_size": 1000, "total_parameters": 500}, "weight_map": {}})
    assert (found.weight_bytes, found.parameter_count) == (1000, 500)
    assert facts_from_config(a_config(), {"metadata": {"total_size": 1000.0}}).weight_bytes == 1000
    assert facts_from_config(a_config(torch_dtype="float32"), {"metadata": {"total_size": 1000}}).weight_bytes == 500
    assert facts_from_config(a_config(), {"weight_map": {}}).weight_bytes is None


def test_tied_embeddings_weigh_once() -> None:
    assert facts_from_config(a_config(tie_word_embeddings=True)).head_parameters == 0
    assert facts_from_config(a_config()).head_parameters == 128000


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "missing": (a_config(num_hidden_layers=None), "num_hidden_layers is missing"),
    "string": (a_config(num_hidden_layers="32"), "num_hidden_layers is a string, not an integer"),
    "bool": (a_config(num_hidden_layers=True), "num_hidden_layers is true or false, not an integer"),
    "negative": (a_config(num_hidden_layers=-1), "num_hidden_layers is -1, outside 1 to 1024"),
    "zero": (a_config(hidden_size=0), "hidden_size is 0, outside 1 to 1048576"),
    "huge": (a_config(hidden_size=10**400), "hidden_size is a number of more than 20 digits, outside 1 to 1048576"),
    "fraction": (a_config(vocab_size=1000.5), "vocab_size is a fractional number, not an integer"),
    "infinite": (a_config(vocab_size=math.inf), "vocab_size is a fractional number, not an integer"),
    "list": (a_config(num_attention_heads=[1]), "num_attention_heads is a list, not an integer"),
    "heads that cannot be": (
        a_config(num_key_value_heads=3),
        "num_key_value_heads is wrong: 3 key-value heads do not divide 4",
    ),
    "more kv heads than heads": (a_config(num_key_value_heads=8), "8 key-value heads do not divide 4"),
    "no head size": (a_config(hidden_size=130), "4 heads do not divide the hidden size 130"),
    "layers of another kind": (
        a_config(layer_types=["full_attention", "rwkv"]),
        "layer_types names layers of the kind 'rwkv', which are not known",
    ),
    "layers of no kind": (a_config(layer_types=["full_attention", None]), "layers of the kind 'None'"),
    "too few kinds": (
        a_config(layer_types=["full_attention"]),
        "layer_types is wrong: 1 layer kinds are listed for 2 layers",
    ),
    "window without a size": (a_config(layer_types=["sliding_attention"] * 2), "sliding_window is missing"),
    "state without a size": (a_config(layer_types=["mamba"] * 2), "mamba_expand is missing"),
    "encoder-decoder": (a_config(is_encoder_decoder=True), "is_encoder_decoder is true"),
    "unknown attention": (a_config(compress_ratios=[1, 2]), "compress_ratios describes"),
    "cross attention": (a_config(cross_attention_layers=[3]), "cross attention"),
    "text_config no object": ({"text_config": 3}, "text_config is an integer, not an object"),
    "nested fault": ({"text_config": a_config(hidden_size="x")}, "text_config.hidden_size is a string"),
    "flag": (a_config(sliding_window=2, use_sliding_window="no"), "use_sliding_window is a string, not true or false"),
    "quantization no object": (a_config(quantization_config=[]), "quantization_config is a list, not an object"),
    "quantization no method": (a_config(quantization_config={"bits": 4}), "quantization_config.quant_method is"),
    "scaling": (a_config(rope_scaling={"type": "linear", "factor": -2}), "rope_scaling.factor is no number above 0"),
    "dtype": (a_config(torch_dtype=16), "torch_dtype is an integer, not a short string"),
}


@pytest.mark.parametrize(("config", "message"), BAD.values(), ids=BAD)
def test_a_bad_config_is_one_clear_sentence(config: dict[str, Any], message: str) -> None:
    with pytest.raises(FactsError) as caught:
        facts_from_config(config)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("config", [config for config, _ in BAD.values()], ids=BAD)
def test_every_problem_names_its_key(config: dict[str, Any]) -> None:
    with pytest.raises(FactsError) as caught:
        facts_from_config(config)
    (problem,) = caught.value.problems[:1]
    assert problem.key.split(".")[0] in config or "is missing" in problem.problem
    assert str(caught.value).startswith(f"{problem.key} {problem.problem}")


MISSING: dict[str, tuple[dict[str, Any], list[str]]] = {
    "everything": (
        {"model_type": "llama"},
        ["num_attention_heads", "hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size"],
    ),
    "two of a nested model": (
        {"text_config": a_config(hidden_size=None, num_hidden_layers="2"), "vocab_size": 1},
        ["text_config.hidden_size", "text_config.num_hidden_layers"],
    ),
    "beside the shape": (
        a_config(hidden_size=None, torch_dtype=16, quantization_config={}, rope_scaling={"factor": -1}),
        ["hidden_size", "torch_dtype", "rope_scaling.factor", "quantization_config.quant_method"],
    ),
    "latent attention and experts": (
        a_config(kv_lora_rank=512, num_local_experts=8, num_experts_per_tok="2"),
        ["qk_rope_head_dim", "num_experts_per_tok"],
    ),
    "a state": (
        a_config(layer_types=["mamba"] * 2, mamba_n_heads=8, mamba_d_head=32),
        ["ssm_state_size", "conv_kernel"],
    ),
    "a delta state": (a_config(full_attention_interval=2), list(DELTA)),
}


@pytest.mark.parametrize(("config", "keys"), MISSING.values(), ids=MISSING)
def test_all_that_is_missing_is_told_at_once(config: dict[str, Any], keys: list[str]) -> None:
    with pytest.raises(FactsError) as caught:
        facts_from_config(config)
    assert [problem.key for problem in caught.value.problems] == keys
    assert all(problem.remedy for problem in caught.value.problems)
    assert all(f"{key} is " in str(caught.value) for key in keys)


@pytest.mark.parametrize("metadata", [{"total_size": -1}, {"total_size": "1"}, []])
def test_a_bad_index_is_one_clear_sentence(metadata: object) -> None:
    with pytest.raises(FactsError, match=r"^model\.safetensors\.index\.json\.metadata"):
        facts_from_config(a_config(), {"metadata": metadata})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "config.json is no JSON: expecting value at line 1, column 1"),
        ("{", "config.json is no JSON"),
        ("[1]", "config.json holds a list, not an object"),
        ('{"a": NaN}', "config.json holds NaN, which is no number"),
        ('{"a": -Infinity}', "config.json holds -Infinity, which is no number"),
        ("[" * 100_000, "config.json is no JSON: it is nested too deeply"),
        ('{"a":' * 50 + "1" + "}" * 50, "config.json is nested deeper than 40 levels"),
        ('{"a": ' + "9" * 10_000 + "}", "config.json is no JSON: a number in it is too long"),
        (" " * (MAX_CONFIG_BYTES + 1), "config.json is larger than 1048576 bytes"),
    ],
)
def test_untrusted_text(text: str, message: str) -> None:
    with pytest.raises(FactsError) as caught:
        parse_json_object(text, "config.json")
    assert str(caught.value).startswith(message)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
_FURTHER_KEYS = """head_dim layer_types sliding_window kv_lora_rank qk_rope_head_dim num_local_experts text_config
quantization_config rope_scaling hybrid_override_pattern attn_config vision_config num_kv_shared_layers ffn_config
full_attention_interval attention_chunk_size moe_intermediate_size"""
keys = st.sampled_from([*a_config(), *_FURTHER_KEYS.split()])


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(keys, json_values, max_size=4))
def test_whatever_stands_in_it_facts_or_a_sentence(changes: dict[str, Any]) -> None:
    try:
        found = facts_from_config(a_config() | changes)
    except FactsError as error:
        assert str(error)
        return
    assert isinstance(found, ModelFacts)
    assert found.parameter_count >= 0
    assert all(layer.cache.values_per_head >= 0 for layer in found.layers)


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60) | json_values.map(json.dumps))
def test_whatever_the_text_an_object_or_a_sentence(text: str) -> None:
    try:
        assert isinstance(parse_json_object(text, "config.json"), dict)
    except FactsError as error:
        assert str(error).startswith("config.json ")
