"""What arguments of ``vllm serve`` do to memory (read from vLLM 0.12, 0.20 and 0.32).

``--swap-space`` has no row: since vLLM 0.8 nothing is swapped. Batch, length, KV cache and speculation have fields, and
their options are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.engines.arguments import ENV_PATH, Argument
from stoker.engines.moves import (
    GIB,
    Row,
    Values,
    above_zero,
    changes,
    frees,
    gibibytes,
    last_words,
    number,
    takes,
    uncounted,
)
from stoker.engines.versions import Version
from stoker.engines.vllm_arguments import read_arguments
from stoker.engines.vllm_table import vllm_options
from stoker.plan.types import UNBOUNDED, Concerns, EngineTraits, Uncounted, Windows

_LARGEST_GRAPH: Final = 512
"""Sequences of the largest CUDA graph unless told otherwise."""
_ALL_GRAPHS_BYTES: Final = 2 * GIB
"""More than the layout counts for the graphs of any model: what smaller ones can leave free at most."""
_STATES: Final = Concerns.BOUNDED_LAYERS
_ENCODERS: Final = Concerns.ENCODERS
_GRAPH_KEYS: Final = ("cudagraph_capture_sizes", "max_cudagraph_capture_size")
_OTHER_MODEL: Final = "changes the model that the facts describe"
_MORE_WINDOWS: Final = "makes layers with a window keep whole sequences, unless the connector knows better"
_STATE_FORMAT: Final = "changes what the layers with states keep"


_ROWS: Final[Mapping[str, Row]] = {
    "--enable-lora": takes("adds slots for adapters"),
    "--kv-cache-dtype-skip-layers": takes("keeps the KV cache of some layers in 16 bits"),
    "--hf-overrides": changes(_OTHER_MODEL),
    "--hf-config-path": changes(_OTHER_MODEL),
    "--model-class-overrides": changes(_OTHER_MODEL),
    "--worker-cls": changes("replaces the code that takes memory"),
    "--load-format": Row(
        "changes how the weights lie in memory",
        frees_bytes=UNBOUNDED,
        acts=lambda values: bool({"bitsandbytes", "gguf"} & set(values)),
    ),
    "--offload-group-size": frees(
        "keeps layers in the memory of the container (hold them with spec.resources.memory)", acts=above_zero
    ),
    "--enable-dbo": takes("computes two batches at once"),
    "--ubatch-size": takes("computes several batches at once", acts=above_zero),
    "--performance-mode": takes(
        "captures more and larger CUDA graphs", acts=lambda values: values[:1] != ("balanced",)
    ),
    "--use-fp64-gumbel": takes("samples in 64 bits"),
    "--engram-config": takes("adds tables to the model"),
    "--kv-transfer-config": takes("adds the buffers of a connector"),
    "--kv-offloading-size": takes(_MORE_WINDOWS, _STATES, above_zero),
    "--kv-events-config": takes(_MORE_WINDOWS, _STATES),
    "--disable-sliding-window": changes("changes windows and length", _STATES),
    "--mamba-cache-dtype": changes(_STATE_FORMAT, _STATES),
    "--mamba-ssm-cache-dtype": changes(_STATE_FORMAT, _STATES),
    "--mamba-block-size": changes(_STATE_FORMAT, _STATES),
    "--mamba-cache-mode": changes(_STATE_FORMAT, _STATES),
    "--use-replayssm": changes(_STATE_FORMAT, _STATES),
    "--enable-mamba-shared-prefix-checkpoint": takes(_STATE_FORMAT, _STATES),
    "--enable-eplb": takes("adds copies of experts", Concerns.EXPERTS),
    "--enable-return-routed-experts": takes("records the experts of each token", Concerns.EXPERTS),
    "--language-model-only": Row("leaves the encoders out", frees_bytes=UNBOUNDED, concerns=_ENCODERS),
    "--mm-encoder-only": Row("leaves all but the encoders out", frees_bytes=UNBOUNDED, concerns=_ENCODERS),
    "--limit-mm-per-prompt": changes("changes how much the encoders compute at once", _ENCODERS),
    "--skip-mm-profiling": takes("leaves out what the encoders compute", _ENCODERS),
    "--mm-encoder-tp-mode": takes("holds the encoders on each GPU", _ENCODERS, lambda values: values[:1] == ("data",)),
    "--enable-multimodal-encoder-data-parallel": takes("holds the encoders on each GPU", _ENCODERS),
    "--mm-ipc-gpu-memory-gb": takes("keeps images on the GPU", _ENCODERS, above_zero),
    "--mm-processor-device": takes("prepares images on the GPU", _ENCODERS, lambda values: values[:1] != ("cpu",)),
    "--ec-transfer-config": takes("adds the buffers of a connector", _ENCODERS),
}
"""Options whose memory the layout cannot know."""


def counted(spec: InferenceServiceSpec, version: Version | None, traits: EngineTraits) -> EngineTraits:
    """Return ``traits`` with what ``engine.args`` and ``pod.env`` do to memory."""
    given = last_words(read_arguments(spec.engine.args or (), vllm_options(), version), is_off)
    on_gpu = spec.accelerator is not None
    return replace(
        traits,
        block_tokens=_block_tokens(given, traits.block_tokens),
        captures_graphs=not _is_eager(given),
        windows=Windows.WHOLE_IF_MIXED if "--disable-hybrid-kv-cache-manager" in given else Windows.BOUNDED,
        default_batched_tokens=_steps(given, traits.default_batched_tokens),
        offloaded_weight_bytes=_gibibytes(given, "--cpu-offload-gb"),
        shared_cache_bytes=_gibibytes(given, "--kv-offloading-size"),
        uncounted=(
            *uncounted(given, _ROWS, on_gpu=on_gpu),
            *_offloading(given, on_gpu=on_gpu),
            *_graphs(given, on_gpu=on_gpu),
            *_variables(spec),
        ),
    )


def is_off(argument: Argument, option: str) -> bool:
    """Return whether an argument switches its option off: ``--no-``, since 0.33 the opposite of enable or disable."""
    head = argument.text.replace("_", "-")
    opposite = "--disable-" if option.startswith("--enable-") else "--enable-"
    return head.startswith("--no-") or (not option.startswith(opposite) and head.startswith(opposite))


def _block_tokens(given: Mapping[str, Argument], usual: int) -> int:
    argument = given.get("--block-size")
    stated = number(argument.values) if argument else None
    return int(stated) if stated is not None and 1 <= stated <= 2**20 else usual


def _is_eager(given: Mapping[str, Argument]) -> bool:
    level = given.get("--optimization-level")
    return "--enforce-eager" in given or (level is not None and level.values == ("0",) and not level.keys)


def _steps(given: Mapping[str, Argument], usual: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    mode = given.get("--performance-mode")
    doubled = mode is not None and mode.values == ("throughput",)
    return tuple((least, 2 * tokens) for least, tokens in usual) if doubled else usual


def _gibibytes(given: Mapping[str, Argument], option: str) -> int:
    return gibibytes(given[option].values) if option in given else 0


def _offloading(given: Mapping[str, Argument], *, on_gpu: bool) -> Iterator[Uncounted]:
    """Yield weights that leave the GPU: whole tensors, until the stated size is reached."""
    size = _gibibytes(given, "--cpu-offload-gb")
    row = Row("moves weights into the memory of the container", frees_bytes=size, gpu_only=True, acts=above_zero)
    yield from uncounted(given, {"--cpu-offload-gb": row}, on_gpu=on_gpu)


def _graphs(given: Mapping[str, Argument], *, on_gpu: bool) -> Iterator[Uncounted]:
    """Yield CUDA graphs of other sizes than those that the layout counts."""
    if _is_eager(given):
        return
    for option in ("--cudagraph-capture-sizes", "--cuda-graph-sizes", "--max-cudagraph-capture-size"):
        yield from uncounted(
            given, {option: _graph_row(given[option].values)} if option in given else {}, on_gpu=on_gpu
        )
    argument = given.get("--compilation-config")
    if argument is not None and (sizes := _graph_sizes(argument)) is not None:
        yield from uncounted(given, {"--compilation-config": _graph_row(sizes)}, on_gpu=on_gpu)


def _graph_row(sizes: Values) -> Row:
    larger = any((size := number((text,))) is None or size > _LARGEST_GRAPH for text in sizes)
    return Row("captures other CUDA graphs", takes=larger, frees_bytes=_ALL_GRAPHS_BYTES, gpu_only=True)


def _graph_sizes(argument: Argument) -> Values | None:
    """Return the sizes that ``--compilation-config`` sets, dotted or inside its JSON; None where it sets none."""
    if argument.keys:
        found: object = {argument.keys[0]: argument.values[0] if argument.values else ""}
    else:
        try:
            found = json.loads(argument.values[0]) if argument.values else None
        except (ValueError, RecursionError):
            return None
    values = [found[key] for key in _GRAPH_KEYS if found.get(key) is not None] if isinstance(found, dict) else []
    flat = [
        item for value in values for item in (value if isinstance(value, list) else str(value).strip("[]").split(","))
    ]
    return tuple(str(item).strip() for item in flat) if values else None


def _variables(spec: InferenceServiceSpec) -> Iterator[Uncounted]:
    for variable in (spec.pod.env if spec.pod else None) or ():
        if variable.name == "VLLM_MLA_DISABLE" and variable.value not in ("", "0"):
            reason = f"{ENV_PATH}: VLLM_MLA_DISABLE makes latent attention keep whole heads"
            yield Uncounted(reason, takes=True, concerns=Concerns.LATENT_LAYERS)
