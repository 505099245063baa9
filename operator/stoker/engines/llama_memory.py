"""What arguments of ``llama-server`` do to memory (read from llama.cpp b11434).

``--fit`` has no row: it moves only what no argument sets, and Stoker sets all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.engines.arguments import ENV_PATH, Argument
from stoker.engines.llama_arguments import read_arguments
from stoker.engines.moves import Row, Values, above_zero, changes, frees, last_words, number, takes, uncounted
from stoker.engines.versions import Build
from stoker.plan.types import UNBOUNDED, Concerns, EngineTraits, Uncounted, Windows

_MIB: Final = 2**20
_INTO_CONTAINER: Final = "keeps weights in the memory of the container (hold them with spec.resources.memory)"
_OFF: Final = frozenset({"off", "disabled", "false", "0"})
_KV_OFFLOAD: Final = "--kv-offload"
_KV_OFF: Final = ("--no-kv-offload", "-nkvo")


def _drafts(values: Values) -> bool:
    """Whether speculation needs a model or layers of its own: all kinds but those that look up what was said."""
    kinds = [kind for value in values for kind in value.split(",")]
    return any(kind != "none" and not kind.startswith("ngram") for kind in kinds)


_DRAFT: Final = takes("loads a second model")
_PROJECTOR: Final = takes("loads a projector for images or sound")
_ADAPTER: Final = takes("loads an adapter")
_ROWS: Final[Mapping[str, Row]] = {
    "--model-draft": _DRAFT,
    "--hf-repo-draft": _DRAFT,
    "--spec-type": takes("drafts with a model or with layers of its own", acts=_drafts),
    "--mmproj": _PROJECTOR,
    "--mmproj-url": _PROJECTOR,
    "--model-vocoder": takes("loads a second model"),
    "--hf-repo-v": takes("loads a second model"),
    "--lora": _ADAPTER,
    "--lora-scaled": _ADAPTER,
    "--control-vector": _ADAPTER,
    "--control-vector-scaled": _ADAPTER,
    "--override-kv": changes("changes the model that the facts describe"),
    "--override-tensor": changes("places tensors by their names"),
    "--cpu-moe": frees(_INTO_CONTAINER, Concerns.UNTOLD_EXPERTS),
    "--n-cpu-moe": frees(_INTO_CONTAINER, Concerns.UNTOLD_EXPERTS, above_zero),
    "--n-cpu-ffn": frees(_INTO_CONTAINER, acts=above_zero),
    "--flash-attn": takes("keeps the scores of each step", acts=lambda values: values[:1] != () and values[0] in _OFF),
    "--cache-ram": takes("keeps prompts without a limit", acts=lambda values: (number(values) or 0) < 0),
}
"""Options whose memory the layout cannot know."""


def counted(spec: InferenceServiceSpec, build: Build | None, traits: EngineTraits) -> EngineTraits:
    """Return ``traits`` with what ``engine.args`` and ``pod.env`` do to memory."""
    arguments = read_arguments(spec.engine.args or (), build)
    given = last_words(arguments, _is_off)
    on_gpu = spec.accelerator is not None
    return replace(
        traits,
        windows=Windows.WHOLE if "--swa-full" in given else Windows.BOUNDED,
        expert_layers_in_container=_expert_layers(given),
        kv_in_container=on_gpu and _keeps_kv_in_container(arguments),
        host_overhead_bytes=traits.host_overhead_bytes + _prompt_cache_bytes(given),
        uncounted=(*uncounted(given, _ROWS, on_gpu=on_gpu), *_variables(spec, on_gpu=on_gpu)),
    )


def _is_off(argument: Argument, option: str) -> bool:
    return argument.text.replace("_", "-").startswith("--no-")


def _keeps_kv_in_container(arguments: tuple[Argument, ...]) -> bool:
    said = [argument.text.replace("_", "-") for argument in arguments if _KV_OFFLOAD in argument.options]
    return bool(said) and said[-1] in _KV_OFF


def _expert_layers(given: Mapping[str, Argument]) -> int:
    """Return of how many layers, from the first, the experts stay in the container."""
    if "--cpu-moe" in given:
        return UNBOUNDED
    stated = number(given["--n-cpu-moe"].values) if "--n-cpu-moe" in given else None
    return max(int(stated), 0) if stated is not None else 0


def _prompt_cache_bytes(given: Mapping[str, Argument]) -> int:
    """Return what idle prompts may take of the container: ``--cache-ram`` counts in MiB."""
    stated = number(given["--cache-ram"].values) if "--cache-ram" in given else None
    return int(stated) * _MIB if stated is not None and stated > 0 else 0


def _variables(spec: InferenceServiceSpec, *, on_gpu: bool) -> Iterator[Uncounted]:
    for variable in (spec.pod.env if spec.pod else None) or ():
        if variable.name == "GGML_CUDA_ENABLE_UNIFIED_MEMORY" and on_gpu:
            reason = f"{ENV_PATH}: {variable.name} lets the GPU use the memory of the container"
            yield Uncounted(reason, frees_bytes=UNBOUNDED)
