"""Every spelling of an argument of ``llama-server``, and who owns each option.

llama.cpp looks options up as they are written, underscores in long ones taken for dashes. There are no abbreviations,
no ``--option=value`` and no values glued to options; the items after an option are its values whatever they look like.
Each option can also be a variable, LLAMA_ARG_*: the schema refuses those as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from stoker.engines.arguments import ACCESS, ENDS, LATER, STOKER, Argument, Owner, by_field
from stoker.engines.llama_table import NEWEST, OLDEST, accepts, llama_options
from stoker.engines.options import Option
from stoker.engines.versions import Build

FIELDS: Final[Mapping[str, str]] = {
    "--model": "spec.model.source",
    "--model-url": "spec.model.source",
    "--docker-repo": "spec.model.source",
    "--hf-repo": "spec.model.source",
    "--hf-file": "spec.model.source",
    "--hf-token": "spec.model.credentialsSecret",
    "--alias": "spec.model.names",
    "--ctx-size": "spec.context.maxLength",
    "--kv-unified": "spec.context.maxLength",
    "--kv-unified-per-slot": "spec.context.maxLength",
    "--cache-prompt": "spec.context.prefixCaching",
    "--parallel": "spec.batching.maxSequences",
    "--batch-size": "spec.batching.maxBatchedTokens",
    "--ubatch-size": "spec.batching.maxBatchedTokens",
    "--cache-type-k": "spec.quantization.kvCache",
    "--cache-type-v": "spec.quantization.kvCache",
    "--n-gpu-layers": "spec.execution.gpuLayers",
    "--split-mode": "spec.parallelism.pipeline",
    "--tensor-split": "spec.parallelism.pipeline",
    "--main-gpu": "spec.parallelism.pipeline",
    "--threads": "spec.resources.cpu",
    "--threads-batch": "spec.resources.cpu",
}
"""Which field of the spec an option comes from."""
_STOKER: Final = (
    "--host", "--port", "--reuse-port", "--path", "--api-prefix", "--metrics", "--slots", "--props", "--webui",
    "--ssl-key-file", "--ssl-cert-file", "--device", "--log-disable", "--log-file", "--sleep-idle-seconds",
)  # fmt: skip
_ROUTER: Final = ("--models-dir", "--models-preset", "--models-max", "--models-autoload", "--rpc")
_TOOLS: Final = (
    "--tools",
    "--tools-runtime",
    "--mcp-servers-config",
    "--mcp-servers-json",
    "--agent",
    "--webui-mcp-proxy",
)
_TASK: Final = ("--embeddings", "--reranking", "--pooling")
_ENDS: Final = ("--help", "--usage", "--version", "--license", "--cache-list", "--list-devices", "--completion-bash")
_PRESETS: Final = (
    "--embd-gemma-default", "--fim-qwen-1.5b-default", "--fim-qwen-3b-default", "--fim-qwen-7b-default",
    "--fim-qwen-7b-spec", "--fim-qwen-14b-spec", "--fim-qwen-30b-default", "--gpt-oss-20b-default",
    "--gpt-oss-120b-default", "--vision-gemma-4b-default", "--vision-gemma-12b-default",
)  # fmt: skip

OWNERS: Final[Mapping[str, Owner]] = {
    **{option: by_field(path) for option, path in FIELDS.items()},
    **dict.fromkeys(_STOKER, STOKER),
    **dict.fromkeys(_ROUTER, LATER),
    **dict.fromkeys(_TOOLS, Owner("lets callers run programs in the container", "remove it")),
    **dict.fromkeys(
        _TASK, Owner("makes another server than one that generates text, all that Stoker runs yet", "remove it")
    ),
    **dict.fromkeys(_ENDS, ENDS),
    **dict.fromkeys(
        _PRESETS,
        Owner(
            "serves another model, at another port and with a context of its own", "set spec.model.source and remove it"
        ),
    ),
    **dict.fromkeys(("--api-key", "--api-key-file"), ACCESS),
}
"""Owners of options."""

VARIABLES: Final[Mapping[str, Owner]] = {
    "CUDA_VISIBLE_DEVICES": Owner("is set by the device plugin, and breaks MIG slices otherwise", "remove it"),
    "LLAMA_API_KEY": ACCESS,
    "LLAMA_CACHE": STOKER,
}
"""Owners of variables."""
PREFIXES: Final[Mapping[str, Owner]] = {
    "LLAMA_ARG_": Owner("passes an option around its owner", "use spec.engine.args")
}


def read_arguments(args: Sequence[str], build: Build | None) -> tuple[Argument, ...]:
    """Return what the items of ``engine.args`` mean to llama-server. Nothing is refused here."""
    return tuple(_scan(args, build))


def _scan(args: Sequence[str], build: Build | None) -> Iterator[Argument]:
    index = 0
    while index < len(args):
        argument = _read(args, index, build)
        yield argument
        index += 1 + len(argument.values)


def _read(args: Sequence[str], index: int, build: Build | None) -> Argument:
    text = args[index]
    spelling = text.replace("_", "-") if text.startswith("--") else text
    options = llama_options().by_spelling.get(spelling, ())
    if not options:
        return _unknown(index, text, build)
    takes = int(options[0].takes)
    values = tuple(args[index + 1 : index + 1 + takes])
    problem = "needs a value" if len(values) < takes else None
    accepted = accepts(options[0], spelling, build)
    names = tuple(option.name for option in options)
    return Argument(index, text, names, accepted, (), values, problem, "write option and value as two items")


def _unknown(index: int, text: str, build: Build | None) -> Argument:
    """Return an item that is no option as it stands; what it looks like still counts for its owner."""
    head = text.partition("=")[0].split(maxsplit=1)
    spelling = head[0].replace("_", "-") if head else ""
    options = tuple(option.name for option in llama_options().by_spelling.get(spelling, ()) or _glued(spelling))
    if options:
        problem = "holds an option and its value in one item"
        return Argument(index, text, options, False, (), (), problem, "write option and value as two items")
    known = build is not None and OLDEST <= build <= NEWEST
    if text.startswith("-") or not known:
        return Argument(index, text, (), False if known else None)
    return Argument(index, text, (), False, (), (), "is no option, and no value of one", "remove it")


def _glued(text: str) -> tuple[Option, ...]:
    """Return the short option to which a number is glued: nothing to llama.cpp, but it is plain what was meant."""
    name = text.rstrip("0123456789.,")
    return llama_options().by_spelling.get(name, ()) if name != text and not name.startswith("--") else ()
