"""The options: llama.cpp's spelling, how the value is read, and which parameter of the library it sets.

Spellings and defaults as in the table of ``tools/server/README.md`` in llama.cpp. As there, an underscore in a long
option counts as a dash, ``--option=value`` does not exist, and of two occurrences the last one counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

REFUSED_ENVIRONMENT = ("LLAMA_ARG_", "LLAMA_API_KEY")
"""llama.cpp reads variables that begin so; this program does not, and refuses to start rather than ignore them."""

DEFAULT_PORT = 8080
AUTOMATIC_SLOTS = -1


class UsageError(ValueError):
    """The command line asks for something that this program does not do. The text is one line for a person."""


@dataclass(frozen=True, slots=True)
class EnumMember:
    """A value that only the library can name: a member of one of its enumerations."""

    enumeration: str
    member: str


Value = str | int | float | bool | tuple[str, ...] | tuple[float, ...] | EnumMember
Reader = Callable[[str], Value]


@dataclass(frozen=True, slots=True)
class Option:
    """One option. ``parameter`` is a dotted path below ``xllamacpp.CommonParams``.

    With ``read`` the option takes one value; without, it is a switch that sets ``value``.
    """

    spellings: tuple[str, ...]
    parameter: str
    read: Reader | None = None
    value: Value = True
    help: str = ""


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A parsed command line: parameter path to value, defaults of the program included."""

    parameters: Mapping[str, Value] = field(default_factory=dict)
    wants: str | None = None
    """``help`` or ``version`` when that was asked for."""


def _whole(least: int, most: int = 2**31 - 1) -> Reader:
    def read(text: str) -> Value:
        try:
            number = int(text, 10)
        except ValueError:
            raise UsageError(f"{text!r} is not a whole number") from None
        if not least <= number <= most:
            raise UsageError(f"{number} is not between {least} and {most}")
        return number

    return read


def _fraction(least: float, most: float) -> Reader:
    def read(text: str) -> Value:
        try:
            number = float(text)
        except ValueError:
            raise UsageError(f"{text!r} is not a number") from None
        if not least <= number <= most:
            raise UsageError(f"{text} is not between {least} and {most}")
        return number

    return read


def _text(text: str) -> Value:
    if not text:
        raise UsageError("the value is empty")
    return text


def _names(text: str) -> Value:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError(f"{text!r} holds an empty name")
    return names


def _shares(text: str) -> Value:
    share = _fraction(0.0, 1e6)
    return tuple(float(str(share(part))) for part in text.split(","))


def _one_of(choices: Mapping[str, Value]) -> Reader:
    def read(text: str) -> Value:
        if text not in choices:
            raise UsageError(f"{text!r} is not one of {', '.join(choices)}")
        return choices[text]

    return read


def _members(enumeration: str, prefix: str, names: Mapping[str, str]) -> Reader:
    return _one_of({name: EnumMember(enumeration, prefix + member) for name, member in names.items()})


def _layers(text: str) -> Value:
    named = {"auto": -1, "all": -2}
    return named[text] if text in named else _whole(0)(text)


_KV_TYPE = _members(
    "ggml_type",
    "GGML_TYPE_",
    {name: name.upper() for name in ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")},
)
_SPLIT_MODE = _members(
    "llama_split_mode",
    "LLAMA_SPLIT_MODE_",
    {name: name.upper() for name in ("none", "layer", "row", "tensor")},
)
_FLASH_ATTENTION = _members(
    "llama_flash_attn_type",
    "LLAMA_FLASH_ATTN_TYPE_",
    {"on": "ENABLED", "off": "DISABLED", "auto": "AUTO"},
)
_LOAD_MODE = _members(
    "llama_load_mode",
    "LLAMA_LOAD_MODE_",
    {"auto": "AUTO", "none": "NONE", "mmap": "MMAP", "mlock": "MLOCK", "mmap+mlock": "MMAP_MLOCK", "dio": "DIRECT_IO"},
)
_POOLING = _members(
    "llama_pooling_type",
    "LLAMA_POOLING_TYPE_",
    {name: name.upper() for name in ("none", "mean", "cls", "last", "rank")},
)
_SPECULATION = _members(
    "common_speculative_type",
    "COMMON_SPECULATIVE_TYPE_",
    {
        name: name.upper().replace("-", "_")
        for name in ("none", "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod")
    },
)
_ON_OFF = _one_of({"on": True, "off": False})


def _switch(parameter: str, on: Sequence[str], off: Sequence[str], text: str) -> Iterator[Option]:
    if on:
        yield Option(tuple(on), parameter, value=True, help=text)
    if off:
        yield Option(tuple(off), parameter, value=False, help=f"not: {text}")


def _ngram(kind: str) -> Iterator[Option]:
    place = f"speculative.{kind.replace('-', '_')}"
    yield Option((f"--spec-{kind}-size-n",), f"{place}.size_n", _whole(1, 1024), help="length of the n-gram looked up")
    yield Option((f"--spec-{kind}-size-m",), f"{place}.size_m", _whole(1, 1024), help="tokens drafted after a hit")
    yield Option((f"--spec-{kind}-min-hits",), f"{place}.min_hits", _whole(1), help="hits before a draft is made")


OPTIONS: tuple[Option, ...] = (
    Option(("-m", "--model"), "model.path", _text, help="the GGUF file"),
    Option(("-a", "--alias"), "model_alias", _names, help="names of the model in the API, with commas"),
    Option(("--host",), "hostnames", _names, help="addresses to listen on, with commas (127.0.0.1)"),
    Option(("--port",), "port", _whole(1, 65535), help=f"port to listen on ({DEFAULT_PORT})"),
    Option(("-c", "--ctx-size"), "n_ctx", _whole(0), help="tokens of context, all slots together; 0: as trained"),
    Option(("-np", "--parallel"), "n_parallel", _whole(AUTOMATIC_SLOTS, 1024), help="slots; -1: four with one cache"),
    *_switch("kv_unified", ["-kvu", "--kv-unified"], ["-no-kvu", "--no-kv-unified"], "one cache shared by all slots"),
    Option(("-b", "--batch-size"), "n_batch", _whole(1), help="tokens decoded together, at most"),
    Option(("-ub", "--ubatch-size"), "n_ubatch", _whole(1), help="tokens computed together, at most"),
    *_switch("cont_batching", ["-cb", "--cont-batching"], ["-nocb", "--no-cont-batching"], "continuous batching"),
    Option(("-n", "--predict", "--n-predict"), "n_predict", _whole(-1), help="tokens of an answer, at most; -1: any"),
    Option(("-t", "--threads"), "cpuparams.n_threads", _whole(-1, 512), help="threads that generate"),
    Option(("-tb", "--threads-batch"), "cpuparams_batch.n_threads", _whole(-1, 512), help="threads that read prompts"),
    Option(("--threads-http",), "n_threads_http", _whole(-1, 1024), help="threads that answer HTTP"),
    Option(("-ngl", "--gpu-layers", "--n-gpu-layers"), "n_gpu_layers", _layers, help="layers on a GPU, auto or all"),
    Option(("-sm", "--split-mode"), "split_mode", _SPLIT_MODE, help="how the model is split over GPUs"),
    Option(("-ts", "--tensor-split"), "tensor_split", _shares, help="share of each GPU, with commas"),
    Option(("-mg", "--main-gpu"), "main_gpu", _whole(0), help="the GPU that is used where the model is not split"),
    Option(("-fa", "--flash-attn"), "flash_attn_type", _FLASH_ATTENTION, help="on, off or auto"),
    Option(("-ctk", "--cache-type-k"), "cache_type_k", _KV_TYPE, help="type of the keys in the cache"),
    Option(("-ctv", "--cache-type-v"), "cache_type_v", _KV_TYPE, help="type of the values in the cache"),
    *_switch("swa_full", ["--swa-full"], [], "full cache for sliding-window layers"),
    *_switch("cache_prompt", ["--cache-prompt"], ["--no-cache-prompt"], "reuse of common prefixes of prompts"),
    Option(("--cache-reuse",), "n_cache_reuse", _whole(0), help="least chunk reused by shifting the cache"),
    Option(("-cram", "--cache-ram"), "cache_ram_mib", _whole(-1), help="MiB for idle prompts; -1: no limit, 0: off"),
    *_switch("ctx_shift", ["--context-shift"], ["--no-context-shift"], "drop old tokens when the context is full"),
    Option(("-lm", "--load-mode"), "load_mode", _LOAD_MODE, help="how the file is read"),
    Option(("-fit", "--fit"), "fit_params", _ON_OFF, help="on or off: make unset options fit the memory"),
    *_switch("warmup", ["--warmup"], ["--no-warmup"], "one empty run before the model counts as loaded"),
    *_switch("endpoint_metrics", ["--metrics"], [], "serve /metrics"),
    *_switch("endpoint_slots", ["--slots"], ["--no-slots"], "serve /slots"),
    *_switch("endpoint_props", ["--props"], [], "allow POST /props"),
    *_switch("ui", ["--ui", "--webui"], ["--no-ui", "--no-webui"], "serve the web page"),
    *_switch("use_jinja", ["--jinja"], ["--no-jinja"], "chat templates in Jinja"),
    Option(("--chat-template",), "chat_template", _text, help="a chat template in place of the model's"),
    *_switch("embedding", ["--embedding", "--embeddings"], [], "serve embeddings only"),
    Option(("--pooling",), "pooling_type", _POOLING, help="how embeddings are pooled"),
    Option(("-to", "--timeout"), "timeout_read,timeout_write", _whole(1), help="seconds of silence on a connection"),
    Option(("-sps", "--slot-prompt-similarity"), "slot_prompt_similarity", _fraction(0.0, 1.0), help="0 to 1"),
    Option(("-s", "--seed"), "sampling.seed", _whole(0, 2**32 - 1), help="seed where a request names none"),
    Option(("--temp", "--temperature"), "sampling.temp", _fraction(0.0, 100.0), help="where a request names none"),
    Option(("--top-k",), "sampling.top_k", _whole(0), help="where a request names none"),
    Option(("--top-p",), "sampling.top_p", _fraction(0.0, 1.0), help="where a request names none"),
    Option(("--min-p",), "sampling.min_p", _fraction(0.0, 1.0), help="where a request names none"),
    Option(("--spec-type",), "speculative.types", _SPECULATION, help="speculative decoding by n-grams"),
    Option(("--spec-draft-n-max",), "speculative.draft.n_max", _whole(1, 1024), help="tokens of a draft, at most"),
    Option(("--spec-draft-n-min",), "speculative.draft.n_min", _whole(0, 1024), help="tokens of a draft, at least"),
    *_ngram("ngram-simple"),
    *_ngram("ngram-map-k"),
    *_ngram("ngram-map-k4v"),
    Option(("--spec-ngram-mod-n-match",), "speculative.ngram_mod.n_match", _whole(1, 1024), help="tokens looked up"),
    Option(("--spec-ngram-mod-n-max",), "speculative.ngram_mod.n_max", _whole(1, 1024), help="tokens drafted, at most"),
    Option(
        ("--spec-ngram-mod-n-min",), "speculative.ngram_mod.n_min", _whole(0, 1024), help="tokens drafted, at least"
    ),
    *_switch("log_json", ["--log-jsonl"], ["--no-log-jsonl"], "one JSON object per line of log"),
    Option(("-lv", "--verbosity", "--log-verbosity"), "verbosity", _whole(0, 5), help="1 errors, 2 warnings, 3 info"),
)

BY_SPELLING: Mapping[str, Option] = {spelling: option for option in OPTIONS for spelling in option.spellings}

_ASKS = {"-h": "help", "--help": "help", "--usage": "help", "--version": "version"}

_REASONS = {
    **dict.fromkeys(
        ("-hf", "-hfr", "--hf-repo", "-hff", "--hf-file", "-hft", "--hf-token"), "this build downloads nothing"
    ),
    **dict.fromkeys(("-mu", "--model-url", "-dr", "--docker-repo"), "this build downloads nothing"),
    **dict.fromkeys(("--api-key", "--api-key-file"), "keys are checked in front of the engine, not by it"),
    **dict.fromkeys(("--ssl-key-file", "--ssl-cert-file"), "TLS ends in front of the engine"),
    **dict.fromkeys(("--tools", "-ag", "--agent", "--ui-mcp-proxy"), "tools on the server are not served"),
}


def parse(argv: Sequence[str], environment: Mapping[str, str]) -> CommandLine:
    """Read a command line (without the program's name).

    Raises :class:`UsageError`, whose text names the option, for anything not in :data:`OPTIONS`, for values that
    the option cannot take, and for environment variables that llama.cpp would read and this program does not.
    """
    _refuse_environment(environment)
    given: dict[str, Value] = {}
    rest = iter(argv)
    for word in rest:
        name = _canonical(word)
        if name in _ASKS:
            return CommandLine(wants=_ASKS[name])
        option = _find(name, word)
        value = option.value if option.read is None else _read(option.read, name, rest)
        given.update(dict.fromkeys(option.parameter.split(","), value))
    return CommandLine(_with_defaults(given))


def _canonical(word: str) -> str:
    return word.replace("_", "-") if word.startswith("--") else word


def _find(name: str, word: str) -> Option:
    option = BY_SPELLING.get(name)
    if option is None:
        reason = _REASONS.get(name, "it is not an option of this llama-server; --help lists them")
        raise UsageError(f"{word}: refused: {reason}")
    return option


def _read(read: Reader, name: str, rest: Iterator[str]) -> Value:
    text = next(rest, None)
    if text is None:
        raise UsageError(f"{name}: a value must follow")
    try:
        return read(text)
    except UsageError as problem:
        raise UsageError(f"{name}: {problem}") from None


def _refuse_environment(environment: Mapping[str, str]) -> None:
    for name in sorted(environment):
        if name.startswith(REFUSED_ENVIRONMENT):
            raise UsageError(f"{name}: refused: this llama-server takes its options from the command line alone")


def _with_defaults(given: Mapping[str, Value]) -> dict[str, Value]:
    if "model.path" not in given:
        raise UsageError("--model: missing: name the GGUF file to serve")
    values: dict[str, Value] = {
        "hostnames": ("127.0.0.1",),
        "port": DEFAULT_PORT,
        "n_parallel": AUTOMATIC_SLOTS,
        **given,
    }
    if "cpuparams.n_threads" in values:  # the library copies them only in its own parser
        values.setdefault("cpuparams_batch.n_threads", values["cpuparams.n_threads"])
    return values


def help_text() -> str:
    """Return the options as a table."""
    lines = ["usage: llama-server --model FILE [option...]", ""]
    for option in OPTIONS:
        left = ", ".join(option.spellings) + (" VALUE" if option.read else "")
        lines.append(f"  {left:<44} {option.help}")
    return "\n".join(lines)
