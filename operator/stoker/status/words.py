"""An engine's last words, understood: which field of the spec to change, and the value from the layout.

The sentences are those of vLLM (0.12 to 0.33), llama.cpp and the Hugging Face Hub's client. The first signature that
matches decides, so the more special ones stand in front.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from stoker.plan.units import quantity, shown
from stoker.status import arguments
from stoker.status.case import Case, Diagnosis
from stoker.status.text import bounded, line_of, redacted, said, telling_line, untold


@dataclass(frozen=True, slots=True)
class Signature:
    """A cause, and how it reads. ``explain`` gets the match and returns the message; ``stalled`` as in Diagnosis."""

    reason: str
    pattern: re.Pattern[str]
    explain: Callable[[re.Match[str], Case], str]
    stalled: bool = True

    def policy(self, case: Case) -> Diagnosis | None:
        """The signature as a step of the chain of diagnoses."""
        found = self.pattern.search(case.last_words)
        return Diagnosis(self.reason, bounded(redacted(self.explain(found, case))), self.stalled) if found else None


# ---- memory --------------------------------------------------------------------------------------------------------
def out_of_memory(case: Case) -> Diagnosis | None:
    """The kernel ended the engine at the memory limit of its container."""
    engine = case.engine
    if engine is None or engine.terminated_reason != "OOMKilled":
        return None
    limit = case.layout.memory_request_bytes if case.layout else 0
    has = f" of {quantity(limit)}" if limit else ""
    more = f", such as {quantity(limit * 3 // 2)}" if limit else ""
    load = (
        "" if case.layout and case.layout.gpus_per_pod else ", or lower spec.context.maxLength or batching.maxSequences"
    )
    message = f"the engine needed more than its memory limit{has}; raise spec.resources.memory{more}{load}"
    return Diagnosis("OOMKilled", message, stalled=True)


def _host_memory(found: re.Match[str], case: Case) -> str:
    limit = case.layout.memory_request_bytes if case.layout else 0
    has = f" ({quantity(limit)} now)" if limit else ""
    return f"the engine could not get the memory that it needs; raise spec.resources.memory{has}; {said(found)}"


def _cache_too_small(found: re.Match[str], case: Case) -> str:
    length = case.layout.max_length if case.layout else None
    has = f" of {length} tokens" if length else ""
    at_most = _ESTIMATE.search(case.last_words)
    fits = f"set spec.context.maxLength to {at_most[1]} at most" if at_most else "lower spec.context.maxLength"
    return (
        f"the KV cache is too small for one sequence{has} (spec.context.maxLength){_figures(case)}; {fits}, "
        f"{_room(case)}"
    )


def _figures(case: Case) -> str:
    figures = _NEEDED.search(case.last_words)
    planned = case.layout.kv_tokens if case.layout else None
    parts = [f"it needs {figures[1]} and has {figures[2]}"] if figures else []
    parts += [f"the layout has {planned} tokens"] if planned is not None else []
    return f": {', '.join(parts)}" if parts else ""


def _room(case: Case) -> str:
    """Return how the engine gets more room, with the values of today."""
    layout = case.layout
    if layout is None:
        return "or give the engine more memory"
    if not layout.gpus_per_pod:
        return f"or raise spec.resources.memory ({quantity(layout.memory_request_bytes)})"
    ranks = f"raise spec.parallelism.tensor ({layout.tensor})"
    return f"raise spec.accelerator.memoryFraction ({layout.memory_fraction}), or {ranks}"


def _device_memory(found: re.Match[str], case: Case) -> str:
    layout = case.layout
    if layout is None:
        return "the GPU's memory was not enough; lower spec.batching.maxSequences or spec.context.maxLength"
    weights = layout.weight_bytes_per_rank
    holds = f"; the layout counts {shown(weights)} of weights on each GPU" if weights is not None else ""
    return (
        f"the GPU's memory was not enough{holds}; lower spec.batching.maxSequences ({layout.max_sequences}) or "
        f"spec.accelerator.memoryFraction ({layout.memory_fraction}), raise spec.parallelism.tensor ({layout.tensor}), "
        "or take larger GPUs (spec.accelerator.products)"
    )


def _device_in_use(found: re.Match[str], case: Case) -> str:
    fraction = case.layout.memory_fraction if case.layout else "0.9"
    return (
        f"something else holds memory of the GPU ({found[1]} GiB are free); the engine waits for it to be given back; "
        f"where the GPU is shared, lower spec.accelerator.memoryFraction ({fraction})"
    )


# ---- limits --------------------------------------------------------------------------------------------------------
def _too_long(found: re.Match[str], case: Case) -> str:
    return (
        f"the model takes {found[2]} tokens at most, and {found[1]} are asked; set spec.context.maxLength to {found[2]}"
    )


def _heads(found: re.Match[str], case: Case) -> str:
    return f"the model's {found[1]} attention heads are not divisible by {found[2]}; correct spec.parallelism.tensor"


def _says(hint: str) -> Callable[[re.Match[str], Case], str]:
    """Explain by a hint, followed by what the engine said."""
    return partial(_hinted, hint)


def _hinted(hint: str, found: re.Match[str], case: Case) -> str:
    return f"{hint}; {said(found)}"


# ---- the model -----------------------------------------------------------------------------------------------------
def _gated(found: re.Match[str], case: Case) -> str:
    source, secret = _source(case), case.spec.model.credentials_secret if case.spec else None
    if secret:
        return (
            f"the Hub refuses {source} to the token in Secret {secret} (spec.model.credentialsSecret); accept the "
            "model's terms with that account, or store a token that may read it under the key HF_TOKEN"
        )
    return (
        f"the Hub gives {source} only to those who are allowed; store a token under the key HF_TOKEN of a Secret and "
        "name it in spec.model.credentialsSecret"
    )


def _absent(found: re.Match[str], case: Case) -> str:
    private = ", or name a token for it in spec.model.credentialsSecret if it is private" * _from_hub(case)
    return f"there is no model at {_source(case)}; correct spec.model.source{private}; {said(found)}"


def _no_revision(found: re.Match[str], case: Case) -> str:
    revision = case.spec.model.revision if case.spec else None
    return f"{_source(case)} has no revision {revision or 'of that name'}; correct spec.model.revision"


def _unreachable(found: re.Match[str], case: Case) -> str:
    return f"the Hub could not be reached for {_source(case)}; it is tried again: {line_of(found)}"


def _source(case: Case) -> str:
    return case.spec.model.source if case.spec else "spec.model.source"


def _from_hub(case: Case) -> bool:
    return case.spec is not None and case.spec.model.source.startswith("hf://")


_ESTIMATE = re.compile(r"estimated maximum model length is (\d{1,10})")
_NEEDED = re.compile(
    r"(\d[\d.]{0,10} [GM]iB) KV cache is needed, which is larger than the available KV cache memory "
    r"\((\d[\d.]{0,10} [GM]iB)\)"
)


def _signature(
    reason: str, pattern: str, explain: Callable[[re.Match[str], Case], str], *, stalled: bool = True
) -> Signature:
    return Signature(reason, re.compile(pattern), explain, stalled)


SIGNATURES: tuple[Signature, ...] = (
    _signature(
        "KVCacheTooSmall",
        r"KV cache is needed, which is larger than the available|No available memory for the cache blocks"
        r"|failed to allocate buffer for kv cache|failed to allocate (?:the )?KV cache|No KV cache blocks",
        _cache_too_small,
    ),
    _signature(
        "DeviceMemoryInUse",
        r"Free memory on device [^(\n]{0,40}\((\d[\d.]{0,10})/\d[\d.]{0,10} GiB\) on startup is less than desired",
        _device_in_use,
        stalled=False,
    ),
    _signature(
        "CUDAOutOfMemory",
        r"CUDA out of memory|torch\.(?:cuda\.)?OutOfMemoryError|cudaMalloc failed: out of memory"
        r"|CUDA error: out of memory|unable to allocate CUDA\d{0,2} buffer",
        _device_memory,
    ),
    _signature(
        "OutOfMemory",
        r"insufficient memory \(attempted to allocate|(?:failed|unable) to allocate CPU buffer|std::bad_alloc"
        r"|can't allocate memory|Cannot allocate memory",
        _host_memory,
    ),
    _signature(
        "UnknownArgument",
        r"(?:unrecognized arguments:|error: invalid argument:|unknown (?:argument|option):?|ambiguous option:)"
        r" *([^\n]{1,200})",
        arguments.unknown,
    ),
    _signature(
        "UnknownArgument",
        r"llama-server: (-\S{1,100}): refused: it is not an option",
        arguments.refused,
    ),
    _signature("RefusedArgument", r"llama-server: (-\S{1,100}): refused: ", arguments.refused),
    _signature(
        "InvalidArgument",
        r"error: argument [^\n]{1,120}: [^\n]{1,300}|llama-server: -\S{1,100}: [^\n]{1,300}",
        arguments.bad_value,
    ),
    _signature(
        "ContextTooLong",
        r"max_model_len \((\d{1,10})\) is greater than the derived max_model_len \([^)\n]{0,60}?(\d{1,10})(?:\.0)?[) ]",
        _too_long,
    ),
    _signature(
        "TensorDoesNotDivide",
        r"[Tt]otal number of attention heads \((\d{1,6})\) must be divisible by tensor parallel size \((\d{1,4})\)",
        _heads,
    ),
    # The Hub answers 401 for what does not exist, and speaks of gated repositories then too.
    _signature("ModelNotFound", r"Repository Not Found|RepositoryNotFoundError", _absent),
    _signature(
        "ModelGated",
        r"gated repo|GatedRepoError|is restricted and you are not in the authorized list"
        r"|\b40[13] Client Error|\b40[13] (?:Unauthorized|Forbidden)|status code(?: received)?:? 40[13]\b"
        r"|Invalid credentials in Authorization header|Invalid username or password",
        _gated,
    ),
    _signature(
        "RevisionNotFound", r"Revision Not Found|RevisionNotFoundError|is not a valid git identifier", _no_revision
    ),
    _signature(
        "ModelNotFound",
        r"Entry Not Found for url|(?<!Local)EntryNotFoundError|404 Client Error|status code(?: received)?:? 404\b"
        r"|is not a local folder and is not a valid model identifier"
        r"|Invalid repository ID or local directory|does not appear to have a file named"
        r"|failed to open GGUF file|error loading model: failed to open|gguf_init_from_file: failed to open"
        r"|model file [^\n]{0,300} does not exist|No such file or directory: '/models|(?:no|missing) model file",
        _absent,
    ),
    _signature(
        "HubUnreachable",
        r"LocalEntryNotFoundError|couldn't connect to 'https?://|We couldn't connect to|MaxRetryError|ConnectTimeout"
        r"|Temporary failure in name resolution|Name or service not known|50[0234] Server Error|Read timed out",
        _unreachable,
        stalled=False,
    ),
    _signature(
        "QuantizationUnsupported",
        r"quantization method [^\n]{1,80} is not supported|Unknown quantization method|quantization method"
        r" specified in the model config [^\n]{0,120} does not match|Minimum capability: \d+\. Current capability: \d+",
        _says("the quantization does not go with this model, GPU or version; correct spec.quantization.weights"),
    ),
    _signature(
        "ModelUnsupported",
        r"Model architectures? \[[^\]\n]{0,200}\] (?:are|is) not supported|unknown model architecture"
        r"|does not recognize this architecture|has no vLLM implementation",
        _says("this version of the engine does not know the model's architecture; take a newer spec.engine.version"),
    ),
    _signature(
        "RemoteCodeRefused",
        r"trust_remote_code|contains custom code which must be executed",
        _says("the model needs code from its repository, which is not run; take another spec.model.source"),
    ),
    _signature(
        "ModelBroken",
        r"invalid magic characters|tensor [^\n]{1,120} (?:data )?is not within (?:the )?file bounds"
        r"|MetadataIncompleteBuffer|SafetensorError|failed to read magic|InvalidHeaderDeserialization"
        r"|failed to read key-value pairs|failed to read tensor info",
        _says("the model's files are damaged or incomplete; store them again, or correct spec.model.source"),
    ),
    _signature(
        "NoSpaceLeft",
        r"No space left on device|Insufficient space in /dev/shm",
        _says("a volume of the pod is full; mount a larger one at /cache in spec.pod.volumes, or raise "
              "spec.resources.memory for shared memory"),
    ),
    _signature(
        "DeviceUnusable",
        r"No CUDA GPUs are available|Failed to infer device type|driver version is insufficient|Error 803"
        r"|no CUDA-capable device is detected|NVIDIA driver on your system is too old",
        _says("the engine can use no GPU in this pod; see spec.pod.runtimeClassName, and whether the node's driver is "
              "new enough for spec.engine.image"),
    ),
)  # fmt: skip
"""The causes, in the order in which they are looked for."""


def policies() -> Iterator[Callable[[Case], Diagnosis | None]]:
    """Yield the steps of the chain that read an engine's last words."""
    yield from (signature.policy for signature in SIGNATURES)


def ended(case: Case) -> Diagnosis | None:
    """A container ended badly, and nothing of what it said is known: its most telling line is passed on."""
    for container in case.pod.containers:
        if container.ready or (container.exit_code in (None, 0) and container.waiting_reason != "CrashLoopBackOff"):
            continue
        line = telling_line(container.last_words or "")
        why = f": {line}" if line else f"; {untold(container.last_words or '')}"
        code = "" if container.exit_code is None else f" with exit code {container.exit_code}"
        message = f"the {container.name} ended{code}{why}; look at its log (kubectl logs --previous)"
        loops = container.waiting_reason == "CrashLoopBackOff" or container.restart_count > 1
        return Diagnosis("CrashLoop" if loops else "Crashed", bounded(message), stalled=False)
    return None
