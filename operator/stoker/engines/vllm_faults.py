"""What vLLM at a service's version cannot do, as an ordered list of small checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from stoker.api.engine import Batching, Execution, Quantization
from stoker.api.faults import Fault
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.api.types import ClaimSource, model_source
from stoker.engines import arguments
from stoker.engines.spans import Span
from stoker.engines.versions import Version
from stoker.engines.vllm_arguments import read_arguments
from stoker.engines.vllm_known_bad import known_bad
from stoker.engines.vllm_owners import VARIABLES, owned_keys, owners, wide_types
from stoker.engines.vllm_table import quantization_methods, vllm_options
from stoker.engines.vllm_values import ATTENTION_VARIABLE, GGUF, kv_dtype_spans, on_gpu
from stoker.engines.vllm_version import version_faults, version_of

UNSUPPORTED: Final = "UnsupportedByEngine"
_SET_VERSION: Final = "set spec.engine.version to the version of vLLM in the image"


def faults(spec: InferenceServiceSpec) -> tuple[Fault, ...]:
    """Return everything that is wrong, in the order of the checks, at most one fault a field."""
    found: dict[str, Fault] = {}
    for check in _CHECKS:
        for fault in check(spec):
            found.setdefault(fault.path, fault)
    return tuple(found.values())


def _queue(spec: InferenceServiceSpec) -> Iterator[Fault]:
    span = vllm_options().options["--max-num-queued-reqs"].span
    if (spec.batching or Batching()).max_queued is not None and not span.covers(version_of(spec)):
        yield _missing(spec, "spec.batching.maxQueued", "a limit of its queue", span, "remove it")


def _attention(spec: InferenceServiceSpec) -> Iterator[Fault]:
    wanted = (spec.execution or Execution()).attention_backend
    version = version_of(spec)
    spans = (vllm_options().options["--attention-backend"].span, ATTENTION_VARIABLE)
    if wanted is not None and not any(span.covers(version) for span in spans):
        problem = (
            "vLLM is told its attention backend in one way before 0.13 and in another since, and nothing tells which"
        )
        yield Fault("spec.execution.attentionBackend", problem, _SET_VERSION, UNSUPPORTED)


def _weights(spec: InferenceServiceSpec) -> Iterator[Fault]:
    wanted = (spec.quantization or Quantization()).weights
    if wanted is not None:
        yield from _choice(spec, "spec.quantization.weights", "quantization method", wanted, quantization_methods())


def _kv_cache(spec: InferenceServiceSpec) -> Iterator[Fault]:
    wanted = (spec.quantization or Quantization()).kv_cache
    if wanted is not None:
        kind = "KV cache type" if on_gpu(spec) else "KV cache type for the CPU"
        yield from _choice(spec, "spec.quantization.kvCache", kind, wanted, kv_dtype_spans(spec))


def _source(spec: InferenceServiceSpec) -> Iterator[Fault]:
    source = model_source(spec.model.source)
    if not spec.model.source.endswith(".gguf"):
        return
    if not isinstance(source, ClaimSource):
        remedy = "name the repository alone, or set engine.name to llama.cpp"
        yield Fault("spec.model.source", "vLLM loads whole repositories, not one file of them", remedy, UNSUPPORTED)
    elif not GGUF.covers(version_of(spec)):
        yield _missing(spec, "spec.model.source", "a reader of .gguf files", GGUF, "set engine.name to llama.cpp")


def _args(spec: InferenceServiceSpec) -> Iterator[Fault]:
    version = version_of(spec)
    given = read_arguments(spec.engine.args or (), vllm_options(), version)
    yield from arguments.owned(given, owners(spec))
    yield from owned_keys(given)
    yield from wide_types(given)
    yield from known_bad(spec, given, version)
    yield from arguments.malformed(given)
    yield from arguments.unknown(given, vllm_options(), f"vLLM {version}")


def _env(spec: InferenceServiceSpec) -> Iterator[Fault]:
    names = [variable.name for variable in (spec.pod.env if spec.pod else None) or ()]
    return arguments.owned_variables(names, VARIABLES, {})


def _choice(
    spec: InferenceServiceSpec, path: str, kind: str, wanted: str, known: Mapping[str, Span]
) -> Iterator[Fault]:
    version = version_of(spec)
    if wanted in known and known[wanted].covers(version):
        return
    if wanted in known:
        yield _missing(spec, path, f"{kind} {wanted}", known[wanted], _one_of(known, version))
    else:
        yield Fault(path, f"{wanted} is no {kind} that Stoker knows of vLLM", _one_of(known, version), UNSUPPORTED)


def _one_of(known: Mapping[str, Span], version: Version | None) -> str:
    return f"use one of {', '.join(name for name, span in sorted(known.items()) if span.covers(version))}"


def _missing(spec: InferenceServiceSpec, path: str, what: str, span: Span, remedy: str) -> Fault:
    version = version_of(spec)
    if version is None:
        problem = f"vLLM has {what} only {span}, and the image does not tell its version"
        return Fault(path, problem, f"{_SET_VERSION}, or {remedy}", UNSUPPORTED)
    return Fault(path, f"vLLM {version} has no {what.removeprefix('a ')}; it exists {span}", remedy, UNSUPPORTED)


_CHECKS: Final[Sequence[Callable[[InferenceServiceSpec], Iterator[Fault]]]] = (
    version_faults,
    _source,
    _weights,
    _kv_cache,
    _queue,
    _attention,
    _args,
    _env,
)
