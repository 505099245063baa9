"""llama.cpp's server, builds b9093 and later: on the CPU, on GPUs, or with its layers split between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final

from stoker.agent.config import EngineMetrics
from stoker.api.engine import Accelerator, Batching, Context, EngineName, Execution, Quantization
from stoker.api.faults import Fault
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.api.types import ClaimSource, Switch, model_source
from stoker.engines import arguments, environment
from stoker.engines.interface import MODEL_MOUNT, EnvVar, Invocation
from stoker.engines.llama_arguments import OWNERS, PREFIXES, VARIABLES, read_arguments
from stoker.engines.llama_memory import counted
from stoker.engines.llama_table import OLDEST, llama_options
from stoker.engines.progress import longest_prefill_seconds
from stoker.engines.versions import Build, image_tag, parse_build
from stoker.plan.types import EngineTraits, FractionOf, Layout, Placement

DEFAULT_VERSION = "b11434"
"""The build that this release of Stoker was made for."""
REPOSITORY = "ghcr.io/ggml-org/llama.cpp"
COMMAND: Final = ("/app/llama-server",)
"""Where the makers' images have the program; it is not on their PATH."""
PORT: Final = 8000
USER_ID, GROUP_ID = 65532, 65532
"""The makers' images name no user; any will do, since all that is written lies on volumes."""
ALL_LAYERS: Final = 999
"""More layers than any model has: all of them go to the GPU."""
BATCH_TOKENS, STEP_TOKENS = 2048, 512
"""llama.cpp's own choice of the tokens of a batch, and of the part of it that is computed at once."""
DEFAULT_SEQUENCES: Final = 4
"""Slots unless told otherwise."""
MOST_CONTEXT: Final = 2**31 - 1
"""The largest context: llama.cpp reads it as a signed number of 32 bits."""
CELLS_PER_BLOCK: Final = 256
"""The context of a slot is rounded up to this many tokens."""

KV_ELEMENT_BYTES: Final[Mapping[str, Decimal]] = {
    "f32": Decimal(4),
    "f16": Decimal(2),
    "bf16": Decimal(2),
    "q8_0": Decimal(34) / 32,
    "q5_1": Decimal(24) / 32,
    "q5_0": Decimal(22) / 32,
    "q4_1": Decimal(20) / 32,
    "q4_0": Decimal(18) / 32,
    "iq4_nl": Decimal(18) / 32,
}
"""Bytes per element of each type of the KV cache: blocks of 32 elements with their scales."""

METRICS: Final = EngineMetrics(
    running="llamacpp:requests_processing",
    waiting="llamacpp:requests_deferred",
    prompt_tokens="llamacpp:prompt_tokens_total",
    generation_tokens="llamacpp:tokens_predicted_total",
    steps="llamacpp:n_decode_total",
    requests_accepted=("llamacpp:n_decode_total", "llamacpp:prompt_tokens_total"),
)
"""Series of llama-server; it has no histograms and no usage of the KV cache."""

RENDERED_FLAGS: Final = (
    "--model", "--hf-repo", "--hf-file", "--alias", "--host", "--port", "--metrics", "--no-slots", "--no-webui",
    "--ctx-size", "--parallel", "--kv-unified", "--cache-type-k", "--cache-type-v", "--cache-prompt",
    "--no-cache-prompt", "--cache-ram",
    "--batch-size", "--ubatch-size", "--n-gpu-layers", "--split-mode", "--tensor-split", "--threads",
)  # fmt: skip
"""Every option that is ever rendered. Another program that stands in for llama-server must take them."""
UNSUPPORTED: Final = "UnsupportedByEngine"


class LlamaCpp:
    """llama.cpp behind the interface of engines."""

    name: str = EngineName.LLAMA_CPP.value

    def default_image(self, spec: InferenceServiceSpec) -> str:
        """Return the makers' image of the build, for the CPU or with CUDA."""
        kind = "server" if spec.accelerator is None else "server-cuda"
        return f"{REPOSITORY}:{kind}-{spec.engine.version or DEFAULT_VERSION}"

    def version(self, spec: InferenceServiceSpec) -> str | None:
        """Return the build: the field, else the image's tag, else the default; None where a tag does not tell."""
        if spec.engine.version is not None:
            return spec.engine.version
        if spec.engine.image is None:
            return DEFAULT_VERSION
        build = parse_build(image_tag(spec.engine.image) or "")
        return None if build is None else f"b{build}"

    def traits(self, spec: InferenceServiceSpec) -> EngineTraits:
        """Return what planning must know."""
        batched = (spec.batching or Batching()).max_batched_tokens
        usual = EngineTraits(
            name=self.name,
            version=self.version(spec),
            fraction_of=FractionOf.UNUSED,
            default_memory_fraction=Decimal("0.9"),
            default_max_sequences=DEFAULT_SEQUENCES,
            kv_element_bytes=KV_ELEMENT_BYTES,
            default_kv_dtype="f16",
            has_queue_limit=False,
            supports_pipeline=True,
            supports_tensor=False,
            context_is_shared=False,
            block_tokens=CELLS_PER_BLOCK,
            default_batched_tokens=((0, batched or STEP_TOKENS),),
            shares_memory=False,
            splits_layers=True,
            host_overhead_bytes=2**29,
        )
        return counted(spec, _build(self.version(spec)), usual)

    def faults(self, spec: InferenceServiceSpec) -> Sequence[Fault]:
        """Return what llama.cpp cannot do, at most one fault a field."""
        found: dict[str, Fault] = {}
        for check in _CHECKS:
            for fault in check(spec, _build(self.version(spec))):
                found.setdefault(fault.path, fault)
        return tuple(found.values())

    def invocation(self, spec: InferenceServiceSpec, layout: Layout, service_name: str) -> Invocation:
        """Return how llama-server is started."""
        on_volume = isinstance(model_source(spec.model.source), ClaimSource)
        batched = (spec.batching or Batching()).max_batched_tokens
        return Invocation(
            image=spec.engine.image or self.default_image(spec),
            command=COMMAND,
            args=server_args(spec, layout, service_name),
            env=tuple(_variables(spec)),
            port=PORT,
            health_path="/health",
            metrics=METRICS,
            writable_paths=environment.WRITABLE,
            user_id=USER_ID,
            group_id=GROUP_ID,
            model_path=MODEL_MOUNT if on_volume else None,
            longest_prefill_seconds=longest_prefill_seconds(layout, batched or BATCH_TOKENS, 30),
        )


def server_args(spec: InferenceServiceSpec, layout: Layout, service_name: str) -> tuple[str, ...]:
    """Return the arguments of llama-server, ``engine.args`` last."""
    parts = (
        _model(spec),
        ("--alias", (spec.model.names or (service_name,))[0]),
        ("--host", "0.0.0.0", "--port", str(PORT)),  # noqa: S104 - in a pod, behind a NetworkPolicy
        # The page of slots shows what others asked for; the web page is not part of an API.
        ("--metrics", "--no-slots", "--no-webui"),
        _context(layout),
        _kv_cache(spec),
        _batches(spec),
        _placement(layout),
        spec.engine.args or (),
    )
    return tuple(argument for part in parts for argument in part)


def _model(spec: InferenceServiceSpec) -> Iterator[str]:
    source = model_source(spec.model.source)
    if isinstance(source, ClaimSource):
        yield from ("--model", f"{MODEL_MOUNT}/{source.path}")
    else:
        yield from ("--hf-repo", source.repository, "--hf-file", source.file or "")


def _context(layout: Layout) -> Iterator[str]:
    """Yield slots and context: llama.cpp divides the context between the slots.

    Where the longest sequence is unknown each slot may use the whole context that the model was trained with.
    """
    if layout.max_length is None:
        yield from ("--ctx-size", "0", "--kv-unified")
    else:
        yield from ("--ctx-size", str(layout.max_length * layout.max_sequences))
    yield from ("--parallel", str(layout.max_sequences))


def _kv_cache(spec: InferenceServiceSpec) -> Iterator[str]:
    dtype = (spec.quantization or Quantization()).kv_cache
    if dtype is not None:
        yield from ("--cache-type-k", dtype, "--cache-type-v", dtype)
    caching = (spec.context or Context()).prefix_caching
    if caching is not None:
        yield "--cache-prompt" if caching == Switch.ENABLED else "--no-cache-prompt"
    given = read_arguments(spec.engine.args or (), None)
    if not any("--cache-ram" in argument.options for argument in given):
        # By itself llama.cpp keeps up to 8 GiB of idle prompts in memory, whatever the container's limit.
        yield from ("--cache-ram", "0")


def _batches(spec: InferenceServiceSpec) -> Iterator[str]:
    tokens = (spec.batching or Batching()).max_batched_tokens
    if tokens is not None:
        yield from ("--batch-size", str(tokens), "--ubatch-size", str(tokens))


def _placement(layout: Layout) -> Iterator[str]:
    layers = 0 if layout.placement == Placement.CPU else layout.gpu_layers
    yield from ("--n-gpu-layers", str(ALL_LAYERS if layers is None else layers))
    if layout.gpus_per_pod > 1:
        yield from ("--split-mode", "layer", "--tensor-split", ",".join(["1"] * layout.gpus_per_pod))
    yield from ("--threads", str(environment.cores(layout)))


def _variables(spec: InferenceServiceSpec) -> Iterator[EnvVar]:
    yield from environment.home("llama")
    yield from environment.hub(spec)
    yield EnvVar("LLAMA_CACHE", f"{environment.CACHE}/llama.cpp")
    yield from environment.devices(spec)


# ---- what it cannot do ---------------------------------------------------------------------------------------------
def _build(version: str | None) -> Build | None:
    build = parse_build(version or "")
    return None if build is None else Build(build, 0)


def _old(spec: InferenceServiceSpec, build: Build | None) -> Iterator[Fault]:
    if build is not None and build < OLDEST:
        path = "spec.engine.version" if spec.engine.version is not None else "spec.engine.image"
        problem = f"llama.cpp {build} is older than {OLDEST}, the oldest that is supported"
        yield Fault(path, problem, f"use {OLDEST} or later", "UnsupportedVersion")


def _names(spec: InferenceServiceSpec, _: Build | None) -> Iterator[Fault]:
    if len(spec.model.names or ()) > 1:
        remedy = "keep one name; llama.cpp answers requests for any"
        yield Fault("spec.model.names", "llama.cpp lists one name only", remedy, UNSUPPORTED)


def _revision(spec: InferenceServiceSpec, _: Build | None) -> Iterator[Fault]:
    if spec.model.revision is not None:
        remedy = "remove it, or put the file on a volume (pvc://)"
        yield Fault("spec.model.revision", "llama.cpp downloads the newest revision only", remedy, UNSUPPORTED)


def _fields(spec: InferenceServiceSpec, _: Build | None) -> Iterator[Fault]:
    """Yield a fault for each field that has no meaning for llama.cpp."""
    batching, execution = spec.batching or Batching(), spec.execution or Execution()
    accelerator = spec.accelerator or Accelerator()
    given: dict[str, tuple[object, str]] = {
        "quantization.weights": (
            (spec.quantization or Quantization()).weights,
            "reads quantized weights from the file",
        ),
        "accelerator.memoryFraction": (accelerator.memory_fraction, "takes of a GPU what it needs"),
        "batching.chunkedPrefill": (batching.chunked_prefill, "always computes prompts in batches"),
        "batching.maxQueued": (batching.max_queued, "has no limit of its queue"),
        "batching.scheduling": (batching.scheduling, "always takes requests as they come"),
        "execution.cudaGraphs": (execution.cuda_graphs, "chooses CUDA graphs itself"),
        "execution.attentionBackend": (execution.attention_backend, "has no choice of attention backends"),
        "speculation": (spec.speculation, "drafts no tokens under Stoker yet"),
    }
    for field, (value, problem) in given.items():
        if value is not None:
            yield Fault(f"spec.{field}", f"llama.cpp {problem}", "remove it", UNSUPPORTED)


def _kv_dtype(spec: InferenceServiceSpec, _: Build | None) -> Iterator[Fault]:
    wanted = (spec.quantization or Quantization()).kv_cache
    if wanted is not None and wanted not in KV_ELEMENT_BYTES:
        remedy = f"use one of {', '.join(sorted(KV_ELEMENT_BYTES))}"
        yield Fault("spec.quantization.kvCache", f"llama.cpp has no KV cache type {wanted}", remedy, UNSUPPORTED)


def _context_size(spec: InferenceServiceSpec, _: Build | None) -> Iterator[Fault]:
    slots = (spec.batching or Batching()).max_sequences or DEFAULT_SEQUENCES
    length = (spec.context or Context()).max_length or 0
    if slots * length > MOST_CONTEXT:
        problem = (
            f"llama.cpp divides one context between {slots} slots, and {slots} x {length} tokens are more than it takes"
        )
        yield Fault("spec.context.maxLength", problem, "lower maxLength or batching.maxSequences", UNSUPPORTED)


def _args(spec: InferenceServiceSpec, build: Build | None) -> Iterator[Fault]:
    given = read_arguments(spec.engine.args or (), build)
    yield from arguments.owned(given, OWNERS)
    yield from arguments.malformed(given)
    yield from arguments.unknown(given, llama_options(), f"llama.cpp {build}")


def _env(spec: InferenceServiceSpec, _: Build | None) -> Iterator[Fault]:
    names = [variable.name for variable in (spec.pod.env if spec.pod else None) or ()]
    return arguments.owned_variables(names, VARIABLES, PREFIXES)


_CHECKS: Final[Sequence[Callable[[InferenceServiceSpec, Build | None], Iterator[Fault]]]] = (
    _old,
    _names,
    _revision,
    _fields,
    _kv_dtype,
    _context_size,
    _args,
    _env,
)
