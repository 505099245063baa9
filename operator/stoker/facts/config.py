"""From a model's own ``config.json`` (and the index of its weights) to :class:`~stoker.facts.model.ModelFacts`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from stoker.facts.caches import layer_caches, layer_names, native_dtype
from stoker.facts.lengths import max_length
from stoker.facts.model import Checkpoint, Layer, LayerCache, LayerParameters, ModelFacts
from stoker.facts.parameters import encoder_parameters, layer_parameters, step_width
from stoker.facts.reading import Reader, all_told
from stoker.facts.shape import language_part, read_shape

_MAX_AMOUNT: Final = 10**15


def facts_from_config(config: Mapping[str, Any], index: Mapping[str, Any] | None = None) -> ModelFacts:
    """Return what a config.json says of a model; ``index`` is its model.safetensors.index.json.

    Both are untrusted: every number is checked for type and bounds. Raises
    :class:`~stoker.facts.model.FactsError`, which names the keys, where something is missing, malformed,
    contradictory, or of a kind that planning does not know.
    """
    reader, top = language_part(config)
    dtype_source = reader if reader.has("torch_dtype", "dtype") else top
    all_told(
        lambda: read_shape(reader, top),
        lambda: native_dtype(dtype_source),
        lambda: max_length(reader),
        lambda: _checkpoint(top),
        lambda: _checkpoint(reader),
    )
    shape = read_shape(reader, top)
    names = layer_names(reader, shape)
    caches = layer_caches(reader, shape, names)
    parameters = layer_parameters(reader, shape, names)
    weight_bytes, known_parameters = _from_index(index)
    return ModelFacts(
        model_type=shape.model_type,
        hidden_size=shape.hidden,
        attention_heads=shape.heads,
        kv_heads=None if shape.latent else shape.kv_heads,
        layers=_layers(caches, parameters),
        embedding_parameters=shape.vocabulary * shape.hidden,
        head_parameters=0 if shape.tied else shape.vocabulary * shape.hidden,
        encoder_parameters=encoder_parameters(top),
        step_width=step_width(shape),
        vocabulary_size=shape.vocabulary,
        native_dtype=native_dtype(dtype_source),
        max_length=max_length(reader),
        known_parameters=known_parameters,
        weight_bytes=_loaded_bytes(weight_bytes, dtype_source),
        checkpoint=_checkpoint(top) or _checkpoint(reader),
    )


def _layers(caches: tuple[LayerCache, ...], parameters: tuple[LayerParameters, ...]) -> tuple[Layer, ...]:
    """Equal layers are one object: a model of a hundred layers has two or three kinds of them."""
    made: dict[Layer, Layer] = {}
    layers = (Layer(*pair) for pair in zip(caches, parameters, strict=True))
    return tuple(made.setdefault(layer, layer) for layer in layers)


def _from_index(index: Mapping[str, Any] | None) -> tuple[int | None, int | None]:
    """(bytes of all tensors, number of parameters) of a checkpoint's index."""
    metadata = Reader(index, "model.safetensors.index.json").child("metadata") if index is not None else None
    if metadata is None:
        return None, None
    size = metadata.values.get("total_size")
    whole = int(size) if isinstance(size, float) and size.is_integer() and size < _MAX_AMOUNT else size
    checked = Reader({**metadata.values, "total_size": whole}, metadata.where)
    return checked.find("total_size", maximum=_MAX_AMOUNT), checked.find("total_parameters", maximum=_MAX_AMOUNT)


def _loaded_bytes(weight_bytes: int | None, reader: Reader) -> int | None:
    """A float32 checkpoint is loaded as 16 bits."""
    wide = (reader.text("torch_dtype", "dtype") or "").removeprefix("torch.") in {"float32", "float"}
    return weight_bytes // 2 if weight_bytes is not None and wide else weight_bytes


def _checkpoint(reader: Reader) -> Checkpoint | None:
    """How the repository's weights are quantized."""
    quantization = reader.child("quantization_config") or reader.child("compression_config")
    if quantization is None:
        return None
    algorithm = (quantization.text("quant_algo") or "").upper()
    method = (quantization.text("quant_method") or ("modelopt" if algorithm else "")).lower()
    if not method:
        raise quantization.missing("quant_method")
    if method == "modelopt" and "FP4" in algorithm:
        return Checkpoint("modelopt_fp4")
    return Checkpoint(method, _bits(quantization, method))


def _bits(quantization: Reader, method: str) -> Decimal | None:
    if method == "bitsandbytes":
        return Decimal(8) if quantization.flag("load_in_8bit", False) else Decimal("4.5")
    group = quantization
    if groups := quantization.child("config_groups"):
        first = next(iter(groups.values), None)
        group = (groups.child(first) if first else None) or Reader({})
        group = group.child("weights") or group
    bits = group.find("num_bits", "bits", "w_bit", maximum=32)
    if bits is None:
        return None
    size = group.find("group_size", "q_group_size", minimum=-1, maximum=2**20)
    return Decimal(bits) + (_scale_bits(group, bits) / size if size and size > 0 else Decimal(0))


def _scale_bits(group: Reader, bits: int) -> Decimal:
    """Bits of the scale, and of the zero point of integer methods, that one group of weights shares."""
    if group.text("type") == "float" and bits == 4:
        return Decimal(8)
    symmetric = group.flag("symmetric", group.flag("sym", False))
    return Decimal(16 if symmetric else 16 + bits)
