"""The dimensions of a model, read from its config.json under the many names that they go by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from stoker.facts.model import FactsError
from stoker.facts.reading import Reader, all_told

MAX_LAYERS: Final = 1024
MAX_HEADS: Final = 4096
MAX_WIDTH: Final = 2**20
MAX_VOCABULARY: Final = 2**24
MAX_EXPERTS: Final = 2**16
MAX_TOKENS: Final = 2**31 - 1

_TEXT_PARTS: Final = ("text_config", "llm_config", "language_config")
_UNKNOWN_KINDS: Final = {
    "linear_attn_config": "linear attention of a kind that is not known here",
    "compress_ratios": "compressed attention of a kind that is not known here",
    "block_configs": "layers that differ from each other",
    "cross_attention_layers": "cross attention",
}
_TIED_BY_DEFAULT: Final = frozenset(
    [
        "gemma",
        "gemma2",
        "gemma3_text",
        "gemma3n_text",
        "gemma4_text",
        "falcon",
        "mpt",
        "cohere",
        "cohere2",
        "gpt2",
        "gpt_bigcode",
        "opt",
        "bloom",
    ]
)
_PLAIN_MLP: Final = frozenset(
    [
        "falcon",
        "mpt",
        "phi",
        "gpt_neox",
        "gpt_neo",
        "gpt2",
        "gpt_bigcode",
        "gptj",
        "opt",
        "bloom",
        "starcoder2",
        "nemotron",
        "nemotron_h",
        "codegen",
    ]
)
"""Model types whose MLP has no gate: two matrices in place of three."""
_CLASS_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "gemma": {"head_dim": 256},
    "gemma2": {"head_dim": 256, "sliding_window": 4096, "sliding_window_pattern": 2},
    "gemma3_text": {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
        "sliding_window": 4096,
        "sliding_window_pattern": 6,
        "max_position_embeddings": 131072,
    },
    "cohere2": {"sliding_window": 4096, "sliding_window_pattern": 4},
    "gpt_oss": {"sliding_window": 128, "sliding_window_pattern": 2, "head_dim": 64},
    "llama4_text": {"head_dim": 128, "attention_chunk_size": 8192, "no_rope_layer_interval": 4},
    "qwen3": {"head_dim": 128},
    "qwen3_next": {"full_attention_interval": 4, "head_dim": 256},
}
"""What the configuration class of a model type fills in where config.json is silent."""
_CLASS_DEFAULTS_BY_PREFIX: Final[Mapping[str, Mapping[str, Any]]] = {
    "qwen2": {"use_sliding_window": False},
    "qwen3": {"use_sliding_window": False},
}


@dataclass(frozen=True, slots=True)
class LatentShape:
    """Multi-head latent attention: ranks of the compressed query and cache, and the parts of a head."""

    kv_rank: int
    rope_dim: int
    nope_dim: int
    value_dim: int
    query_rank: int | None
    index_dim: int


@dataclass(frozen=True, slots=True)
class ExpertShape:
    """Routed experts: how many, how many per token, how wide, and the width that every token passes through."""

    count: int
    per_token: int
    width: int
    shared_width: int


@dataclass(frozen=True, slots=True)
class Shape:
    """The dimensions that all layers of a model share."""

    model_type: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    intermediate: int
    tied: bool
    gated: bool
    latent: LatentShape | None
    experts: ExpertShape | None


def language_part(config: Mapping[str, Any]) -> tuple[Reader, Reader]:
    """Return (the part of a config.json that describes the language model, the whole of it).

    Raises :class:`FactsError` for kinds of models that planning does not know.
    """
    top = Reader(config)
    part = next((found for key in _TEXT_PARTS if (found := top.child(key))), top)
    model_type = part.text("model_type") or top.text("model_type") or ""
    family = next((d for p, d in _CLASS_DEFAULTS_BY_PREFIX.items() if model_type.startswith(p)), {})
    defaults = {**family, **_CLASS_DEFAULTS.get(model_type, {})}
    present = {key: value for key, value in part.values.items() if value is not None}
    reader = Reader({**defaults, **present, "model_type": model_type}, part.where)
    _refuse_unknown_kinds(reader, top)
    return reader, top


def _refuse_unknown_kinds(reader: Reader, top: Reader) -> None:
    if reader.flag("is_encoder_decoder", False) or top.flag("is_encoder_decoder", False):
        problem = "is true, and the memory of an encoder-decoder model is not known here"
        raise FactsError(problem, (reader if reader.has("is_encoder_decoder") else top).path("is_encoder_decoder"))
    for key, kind in _UNKNOWN_KINDS.items():
        if reader.has(key):
            raise FactsError(f"describes {kind}", reader.path(key))


def read_shape(reader: Reader, top: Reader) -> Shape:
    """Read the dimensions. Raises :class:`FactsError` where one is missing, malformed or contradicts another."""
    all_told(
        lambda: _heads(reader),
        lambda: _hidden(reader),
        lambda: _layers(reader),
        lambda: _vocabulary(reader, top),
        lambda: _latent(reader),
        lambda: _intermediate(reader, 1, _experts(reader)),
    )
    heads, hidden, latent, experts = _heads(reader), _hidden(reader), _latent(reader), _experts(reader)
    model_type = reader.text("model_type") or ""
    return Shape(
        model_type=model_type,
        layers=_layers(reader),
        hidden=hidden,
        heads=heads,
        kv_heads=heads if latent else _kv_heads(reader, heads),
        head_dim=0 if latent else _head_dim(reader, hidden, heads),
        vocabulary=_vocabulary(reader, top),
        intermediate=_intermediate(reader, hidden, experts),
        tied=_tied(reader, top, model_type),
        gated=model_type not in _PLAIN_MLP,
        latent=latent,
        experts=experts,
    )


def _heads(reader: Reader) -> int:
    return reader.integer("num_attention_heads", "n_head", "n_heads", maximum=MAX_HEADS)


def _hidden(reader: Reader) -> int:
    return reader.integer("hidden_size", "n_embd", "d_model", maximum=MAX_WIDTH)


def _layers(reader: Reader) -> int:
    return reader.integer("num_hidden_layers", "n_layer", "n_layers", "num_layers", maximum=MAX_LAYERS)


def _kv_heads(reader: Reader, heads: int) -> int:
    kv_heads = _stated_kv_heads(reader) or heads
    if kv_heads > heads or heads % kv_heads:
        problem = f"is wrong: {kv_heads} key-value heads do not divide {heads} attention heads"
        raise FactsError(problem, reader.name_of(*_KV_HEADS), f"write a divisor of {heads}")
    return kv_heads


_KV_HEADS: Final = (
    "n_head_kv", "num_kv_heads", "num_key_value_heads", "multi_query_group_num", "num_attention_groups", "attn_config",
)  # fmt: skip


def _stated_kv_heads(reader: Reader) -> int | None:
    attention = reader.child("attn_config")
    if attention is not None and (found := attention.find("kv_n_heads", maximum=MAX_HEADS)):
        return found
    if reader.flag("multi_query", False) and not reader.flag("new_decoder_architecture", False):
        return 1
    if reader.has("multi_query_attention") and not reader.flag("multi_query_attention", False):
        return None
    return reader.find(*_KV_HEADS[:-1], maximum=MAX_HEADS)


def _head_dim(reader: Reader, hidden: int, heads: int) -> int:
    names = ("head_dim", "attention_head_dim", "kv_channels", "hidden_size_per_head")
    stated = reader.find(*names, minimum=0, maximum=MAX_WIDTH)
    if stated:
        return stated
    if hidden % heads:
        raise reader.missing("head_dim", f", and {heads} heads do not divide the hidden size {hidden}")
    return hidden // heads


def _latent(reader: Reader) -> LatentShape | None:
    rank = reader.find("kv_lora_rank", maximum=MAX_WIDTH)
    if rank is None:
        return None
    nope = reader.find("qk_nope_head_dim", maximum=MAX_WIDTH) or 128
    return LatentShape(
        kv_rank=rank,
        rope_dim=reader.integer("qk_rope_head_dim", maximum=MAX_WIDTH),
        nope_dim=nope,
        value_dim=reader.find("v_head_dim", maximum=MAX_WIDTH) or nope,
        query_rank=reader.find("q_lora_rank", maximum=MAX_WIDTH),
        index_dim=reader.find("index_head_dim", maximum=MAX_WIDTH) or 0,
    )


def _experts(reader: Reader) -> ExpertShape | None:
    ffn = reader.child("ffn_config") or Reader({})
    names = ("num_local_experts", "num_experts", "n_routed_experts")
    count = reader.find(*names, minimum=0, maximum=MAX_EXPERTS) or ffn.find("moe_num_experts", maximum=MAX_EXPERTS)
    if not count or count == 1:
        return None
    per_token = reader.find("num_experts_per_tok", "num_experts_per_token", maximum=MAX_EXPERTS)
    width = reader.find("moe_intermediate_size", maximum=MAX_WIDTH) or ffn.find("ffn_hidden_size", maximum=MAX_WIDTH)
    width = width or reader.integer("intermediate_size", maximum=MAX_WIDTH)
    return ExpertShape(
        count=count,
        per_token=per_token or ffn.find("moe_top_k", maximum=MAX_EXPERTS) or 1,
        width=width,
        shared_width=_shared_width(reader, width),
    )


def _shared_width(reader: Reader, width: int) -> int:
    stated = reader.find("shared_expert_intermediate_size", "shared_intermediate_size", minimum=0, maximum=MAX_WIDTH)
    if stated is not None:
        return stated
    if reader.text("model_type") == "llama4_text":
        return width
    return width * (reader.find("n_shared_experts", minimum=0, maximum=64) or 0)


def _intermediate(reader: Reader, hidden: int, experts: ExpertShape | None) -> int:
    names = ("intermediate_size_mlp", "intermediate_size", "ffn_hidden_size", "n_inner", "ff_intermediate_size")
    stated = reader.find(*names, maximum=MAX_WIDTH)
    if stated or experts:
        return stated or 0
    ratio = reader.factor("expansion_ratio") or (4.0 if reader.text("model_type") in _PLAIN_MLP else None)
    if ratio is None:
        raise reader.missing("intermediate_size")
    return int(hidden * ratio)


def _vocabulary(reader: Reader, top: Reader) -> int:
    names = ("padded_vocab_size", "vocab_size")
    found = reader.find(*names, maximum=MAX_VOCABULARY) or top.find(*names, maximum=MAX_VOCABULARY)
    if found is None:
        raise reader.missing("vocab_size")
    return found


def _tied(reader: Reader, top: Reader, model_type: str) -> bool:
    source = reader if reader.has("tie_word_embeddings") else top
    return source.flag("tie_word_embeddings", model_type in _TIED_BY_DEFAULT)
