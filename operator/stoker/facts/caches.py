"""What each layer of a model keeps for a sequence, read from its config.json."""

from __future__ import annotations

from typing import Any, Final

from stoker.facts.lengths import max_length
from stoker.facts.model import CacheKind, FactsError, LayerCache
from stoker.facts.reading import Reader
from stoker.facts.shape import MAX_EXPERTS, MAX_HEADS, MAX_LAYERS, MAX_TOKENS, MAX_WIDTH, Shape

_NAMES: Final = {
    "full_attention": CacheKind.FULL,
    "attention": CacheKind.FULL,
    "sliding_attention": CacheKind.WINDOW,
    "sliding_window": CacheKind.WINDOW,
    "chunked_attention": CacheKind.CHUNK,
    "linear_attention": CacheKind.STATE,
    "mamba": CacheKind.STATE,
    "mamba2": CacheKind.STATE,
    "mlp": CacheKind.NOTHING,
    "moe": CacheKind.NOTHING,
}
_PATTERN_LETTERS: Final = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
_DTYPE_BYTES: Final = {"float32": 4, "bfloat16": 2, "float16": 2}


def layer_names(reader: Reader, shape: Shape) -> tuple[str, ...] | None:
    """Return the kind of every layer by the name that configurations use; None where all attend to everything."""
    for key in ("layer_types", "layers_block_type"):
        if listed := reader.listing(key, MAX_LAYERS):
            return _checked(listed, shape, reader.path(key))
    if pattern := reader.text("hybrid_override_pattern"):
        kinds = [_PATTERN_LETTERS.get(letter, letter) for letter in pattern]
        return _checked(kinds, shape, reader.path("hybrid_override_pattern"))
    return _periodic(reader, shape)


def _checked(names: list[Any], shape: Shape, path: str) -> tuple[str, ...]:
    for name in names:
        if not isinstance(name, str) or name not in _NAMES:
            raise FactsError(f"names layers of the kind {str(name)[:40]!r}, which are not known here", path)
    if len(names) != shape.layers:
        remedy = f"list {shape.layers}"
        raise FactsError(f"is wrong: {len(names)} layer kinds are listed for {shape.layers} layers", path, remedy)
    return tuple(names)


def _periodic(reader: Reader, shape: Shape) -> tuple[str, ...] | None:
    """Layers that alternate with a period; the configurations count it in four ways."""
    count = shape.layers
    if indices := reader.listing("attn_layer_indices", MAX_LAYERS):
        return tuple("attention" if index in indices else "mamba" for index in range(count))
    if period := reader.find("attn_layer_period", maximum=MAX_LAYERS):
        offset = reader.find("attn_layer_offset", minimum=0, maximum=MAX_LAYERS) or 0
        return tuple("attention" if index % period == offset else "mamba" for index in range(count))
    if interval := reader.find("full_attention_interval", maximum=MAX_LAYERS):
        return _every(interval, count, "full_attention", "linear_attention")
    if reader.has("attention_chunk_size"):
        interval = reader.integer("no_rope_layer_interval", maximum=MAX_LAYERS)
        return _every(interval, count, "full_attention", "chunked_attention")
    return _windowed(reader, shape)


def _windowed(reader: Reader, shape: Shape) -> tuple[str, ...] | None:
    if not reader.has("sliding_window") or not reader.flag("use_sliding_window", True):
        return None
    if pattern := reader.find("sliding_window_pattern", "_sliding_window_pattern", maximum=MAX_LAYERS):
        return _every(pattern, shape.layers, "full_attention", "sliding_attention")
    first = reader.find("max_window_layers", minimum=0, maximum=MAX_LAYERS) if reader.has("use_sliding_window") else 0
    return tuple("sliding_attention" if index >= (first or 0) else "full_attention" for index in range(shape.layers))


def _every(period: int, count: int, nth: str, others: str) -> tuple[str, ...]:
    return tuple(nth if (index + 1) % period == 0 else others for index in range(count))


def layer_caches(reader: Reader, shape: Shape, names: tuple[str, ...] | None) -> tuple[LayerCache, ...]:
    """Return what each layer keeps. Raises :class:`FactsError` where a layer's size is not stated."""
    if shape.latent:
        return (_latent_cache(shape),) * shape.layers
    made: dict[str, LayerCache] = {}
    for name in set(names or ("full_attention",)):
        made[name] = _cache(name, reader, shape)
    caches = [made[name] for name in names or ("full_attention",) * shape.layers]
    shared = reader.find("num_kv_shared_layers", minimum=0, maximum=shape.layers) or 0
    return tuple(caches[: shape.layers - shared]) + (LayerCache(CacheKind.NOTHING),) * shared


def _latent_cache(shape: Shape) -> LayerCache:
    latent = shape.latent
    assert latent is not None  # noqa: S101 - for the type checker; callers check it
    index_bytes = latent.index_dim + 4 if latent.index_dim else 0
    values = latent.kv_rank + latent.rope_dim
    return LayerCache(CacheKind.LATENT, 1, values, latent_rank=latent.kv_rank, index_bytes=index_bytes)


def _cache(name: str, reader: Reader, shape: Shape) -> LayerCache:
    kind = _NAMES[name]
    if kind is CacheKind.NOTHING:
        return LayerCache(kind)
    if kind is CacheKind.STATE:
        return LayerCache(kind, state_bytes=_state_bytes(name, reader, shape))
    window = 0
    if kind is CacheKind.WINDOW:
        window = reader.integer("sliding_window", maximum=MAX_TOKENS)
    elif kind is CacheKind.CHUNK:
        window = reader.integer("attention_chunk_size", maximum=MAX_TOKENS)
    if window and window >= (max_length(reader) or MAX_TOKENS):
        kind, window = CacheKind.FULL, 0
    heads, dim = _attention_of(kind, reader, shape)
    return LayerCache(kind, heads, 2 * dim, window)


def _attention_of(kind: CacheKind, reader: Reader, shape: Shape) -> tuple[int, int]:
    """Key-value heads and head size of one kind of layer; some models give the two kinds different ones."""
    prefixes = {CacheKind.FULL: ("num_global_key_value_heads", "global_head_dim")}
    names = prefixes.get(kind, ("swa_num_key_value_heads", "swa_head_dim"))
    heads = reader.find(names[0], maximum=MAX_HEADS) or shape.kv_heads
    return heads, reader.find(names[1], maximum=MAX_WIDTH) or shape.head_dim


def _state_bytes(name: str, reader: Reader, shape: Shape) -> int:
    """Bytes of the convolution's and the recurrence's state of one layer, for one sequence."""
    if name == "linear_attention":
        convolved, recurrent, default = *_delta_state(reader), "float32"
    elif reader.has("mamba_num_heads", "mamba_n_heads"):
        convolved, recurrent, default = *_mamba2_state(reader), native_dtype(reader)
    else:
        convolved, recurrent, default = *_mamba1_state(reader, shape), native_dtype(reader)
    state_dtype = reader.text("mamba_ssm_dtype") or default
    return convolved * _DTYPE_BYTES[native_dtype(reader)] + recurrent * _DTYPE_BYTES.get(state_dtype, 4)


def _delta_state(reader: Reader) -> tuple[int, int]:
    """Gated delta networks: values of the convolution's and of the recurrence's state."""
    key_heads, key_dim, heads, values, kernel = reader.integers(
        (("linear_num_key_heads",), MAX_HEADS),
        (("linear_key_head_dim",), MAX_WIDTH),
        (("linear_num_value_heads",), MAX_HEADS),
        (("linear_value_head_dim",), MAX_WIDTH),
        (("linear_conv_kernel_dim",), MAX_EXPERTS),
    )
    return (2 * key_heads * key_dim + heads * values) * (kernel - 1), heads * values * key_dim


def _mamba2_state(reader: Reader) -> tuple[int, int]:
    heads, head_dim, state, kernel = reader.integers(
        (("mamba_num_heads", "mamba_n_heads"), MAX_HEADS),
        (("mamba_head_dim", "mamba_d_head"), MAX_WIDTH),
        (("ssm_state_size", "mamba_d_state", "state_size"), MAX_WIDTH),
        (("conv_kernel", "mamba_d_conv"), MAX_EXPERTS),
    )
    inner = heads * head_dim
    groups = reader.find("n_groups", "mamba_n_groups", maximum=MAX_HEADS) or 1
    return (inner + 2 * groups * state) * (kernel - 1), inner * state


def _mamba1_state(reader: Reader, shape: Shape) -> tuple[int, int]:
    expand, state, kernel = reader.integers(
        (("mamba_expand", "expand"), 64),
        (("mamba_d_state", "state_size"), MAX_WIDTH),
        (("mamba_d_conv", "conv_kernel"), MAX_EXPERTS),
    )
    inner = shape.hidden * expand
    return inner * (kernel - 1), inner * state


def native_dtype(reader: Reader) -> str:
    """Return the type that an engine computes in: that of the checkpoint, where float32 is loaded as bfloat16."""
    stated = (reader.text("torch_dtype", "dtype") or "bfloat16").removeprefix("torch.")
    return "float16" if stated in {"float16", "half"} else "bfloat16"
