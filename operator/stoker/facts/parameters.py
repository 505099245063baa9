"""How many parameters each part of a model has, computed from its dimensions."""

from __future__ import annotations

from typing import Final

from stoker.facts.model import LayerParameters
from stoker.facts.reading import Reader
from stoker.facts.shape import MAX_HEADS, MAX_LAYERS, MAX_WIDTH, Shape

_GATED_ATTENTION: Final = ("qwen3_next", "qwen3_5")
"""Model types whose query projection also computes a gate of the same size."""


def layer_parameters(reader: Reader, shape: Shape, names: tuple[str, ...] | None) -> tuple[LayerParameters, ...]:
    """Return the parameters of every layer; ``names`` are the kinds of the layers where they differ."""
    made: dict[tuple[str, bool], LayerParameters] = {}
    layers = []
    for index in range(shape.layers):
        key = (names[index] if names else "full_attention", _is_sparse(reader, shape, index))
        if key not in made:
            made[key] = _layer(reader, shape, *key)
        layers.append(made[key])
    return tuple(layers)


def _is_sparse(reader: Reader, shape: Shape, index: int) -> bool:
    """Whether the layer has routed experts; the first layers, or every other one, may be dense."""
    if shape.experts is None:
        return False
    dense_first = reader.find("first_k_dense_replace", minimum=0, maximum=MAX_LAYERS) or 0
    names = ("interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_freq", "expert_layer_period")
    step = (reader.find(*names, maximum=MAX_LAYERS) if not isinstance(reader.values.get(names[2]), list) else 1) or 1
    offset = reader.find("expert_layer_offset", minimum=0, maximum=MAX_LAYERS)
    in_step = index % step == offset if offset is not None else (index + 1) % step == 0
    return index >= dense_first and in_step


def _layer(reader: Reader, shape: Shape, name: str, sparse: bool) -> LayerParameters:
    mixer = _mixer(reader, shape, name)
    has_mlp = not reader.has("hybrid_override_pattern") or name in {"mlp", "moe"}
    mlp = (_experts(shape) if sparse else _dense(shape)) if has_mlp else LayerParameters()
    return LayerParameters(
        divided=mixer.divided + mlp.divided,
        experts=mlp.experts,
        whole=mixer.whole,
        kept=2 * shape.hidden + mlp.kept,
    )


def _mixer(reader: Reader, shape: Shape, name: str) -> LayerParameters:
    if name in {"mlp", "moe"}:
        return LayerParameters()
    if name in {"mamba", "mamba2"}:
        return LayerParameters(divided=_mamba(reader, shape))
    if name == "linear_attention":
        return LayerParameters(divided=_delta(reader, shape))
    return _latent(shape) if shape.latent else _grouped(shape)


def _grouped(shape: Shape) -> LayerParameters:
    """Query, key, value and output projections of grouped-query attention."""
    query = shape.heads * shape.head_dim
    gate = query if shape.model_type.startswith(_GATED_ATTENTION) else 0
    return LayerParameters(divided=shape.hidden * (2 * query + gate + 2 * shape.kv_heads * shape.head_dim))


def _latent(shape: Shape) -> LayerParameters:
    """Multi-head latent attention: down-projections lie whole on every rank, up-projections are divided by head."""
    latent = shape.latent
    assert latent is not None  # noqa: S101 - for the type checker; callers check it
    query = shape.heads * (latent.nope_dim + latent.rope_dim)
    up = latent.kv_rank * shape.heads * (latent.nope_dim + latent.value_dim)
    output = shape.heads * latent.value_dim * shape.hidden
    down = shape.hidden * (latent.kv_rank + latent.rope_dim)
    if latent.query_rank is None:
        return LayerParameters(divided=shape.hidden * query + up + output, whole=down)
    down += shape.hidden * latent.query_rank
    return LayerParameters(divided=latent.query_rank * query + up + output, whole=down)


def _dense(shape: Shape) -> LayerParameters:
    matrices = 3 if shape.gated else 2
    return LayerParameters(divided=matrices * shape.hidden * shape.intermediate)


def _experts(shape: Shape) -> LayerParameters:
    experts = shape.experts
    assert experts is not None  # noqa: S101 - for the type checker; callers check it
    matrices = (3 if shape.gated else 2) * shape.hidden
    return LayerParameters(
        divided=matrices * experts.shared_width,
        experts=matrices * experts.width * experts.count,
        kept=shape.hidden * experts.count,
    )


def _mamba(reader: Reader, shape: Shape) -> int:
    if not reader.has("mamba_num_heads", "mamba_n_heads"):
        inner = shape.hidden * reader.integer("mamba_expand", "expand", maximum=64)
        state = reader.integer("mamba_d_state", "state_size", maximum=MAX_WIDTH)
        return 3 * shape.hidden * inner + inner * (2 * state + shape.hidden // 8)
    heads = reader.integer("mamba_num_heads", "mamba_n_heads", maximum=MAX_HEADS)
    inner = heads * reader.integer("mamba_head_dim", "mamba_d_head", maximum=MAX_WIDTH)
    groups = reader.find("n_groups", "mamba_n_groups", maximum=MAX_HEADS) or 1
    state = groups * reader.integer("ssm_state_size", "mamba_d_state", "state_size", maximum=MAX_WIDTH)
    return shape.hidden * (3 * inner + 2 * state + heads)


def _delta(reader: Reader, shape: Shape) -> int:
    key_heads = reader.integer("linear_num_key_heads", maximum=MAX_HEADS)
    keys = key_heads * reader.integer("linear_key_head_dim", maximum=MAX_WIDTH)
    value_heads = reader.integer("linear_num_value_heads", maximum=MAX_HEADS)
    values = value_heads * reader.integer("linear_value_head_dim", maximum=MAX_WIDTH)
    return shape.hidden * (2 * keys + 3 * values + 2 * value_heads)


def encoder_parameters(top: Reader) -> int:
    """Return the parameters of a vision tower, as a plain transformer of its dimensions; 0 where none is described."""
    tower = top.child("vision_config")
    if tower is None:
        return 0
    width = tower.find("hidden_size", "embed_dim", maximum=MAX_WIDTH) or 0
    depth = tower.find("num_hidden_layers", "depth", maximum=MAX_LAYERS) or 0
    inner = tower.find("intermediate_size", maximum=MAX_WIDTH) or 4 * width
    return depth * (4 * width * width + 2 * width * inner)


def step_width(shape: Shape) -> int:
    """Return how many values the widest part of a layer holds per token: what the MLP computes in between."""
    parts = 3 if shape.gated else 2
    if shape.experts is None:
        return parts * shape.intermediate
    routed = shape.experts.per_token * shape.experts.width + shape.experts.shared_width
    return parts * max(shape.intermediate, routed)
