"""Which options of ``vllm serve`` and which variables are not the user's to set, and what sets them instead."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from stoker.api.faults import Fault, join
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.engines.arguments import ACCESS, ARGS_PATH, CODE, ENDS, LATER, STOKER, Argument, Owner, by_field

FIELDS: Final[Mapping[str, str]] = {
    "--model": "spec.model.source",
    "--revision": "spec.model.revision",
    "--code-revision": "spec.model.revision",
    "--tokenizer-revision": "spec.model.revision",
    "--served-model-name": "spec.model.names",
    "--hf-token": "spec.model.credentialsSecret",
    "--tensor-parallel-size": "spec.parallelism.tensor",
    "--pipeline-parallel-size": "spec.parallelism.pipeline",
    "--gpu-memory-utilization": "spec.accelerator.memoryFraction",
    "--kv-cache-memory-bytes": "spec.accelerator.memoryFraction",
    "--num-gpu-blocks-override": "spec.accelerator.memoryFraction",
    "--quantization": "spec.quantization.weights",
    "--quantization-config": "spec.quantization.weights",
    "--kv-cache-dtype": "spec.quantization.kvCache",
    "--max-model-len": "spec.context.maxLength",
    "--enable-prefix-caching": "spec.context.prefixCaching",
    "--max-num-seqs": "spec.batching.maxSequences",
    "--max-num-batched-tokens": "spec.batching.maxBatchedTokens",
    "--enable-chunked-prefill": "spec.batching.chunkedPrefill",
    "--max-num-queued-reqs": "spec.batching.maxQueued",
    "--scheduling-policy": "spec.batching.scheduling",
    "--attention-backend": "spec.execution.attentionBackend",
    "--speculative-config": "spec.speculation",
    "--spec-method": "spec.speculation",
    "--spec-model": "spec.speculation",
    "--spec-tokens": "spec.speculation",
}
"""Which field of the spec an option comes from."""
_STOKER: Final = (
    "--host", "--port", "--uds", "--root-path", "--middleware", "--config", "--disable-log-stats",
    "--disable-fastapi-docs", "--ssl-keyfile", "--ssl-certfile", "--ssl-ca-certs",
    "--ssl-cert-reqs", "--ssl-ciphers", "--enable-ssl-refresh",
    "--shutdown-timeout", "--download-dir", "--grpc", "--grpc-port", "--headless", "--nnodes", "--node-rank",
    "--master-addr", "--master-port", "--distributed-executor-backend", "--device-ids",
)  # fmt: skip
_LATER: Final = (
    "--data-parallel-size", "--data-parallel-size-local", "--data-parallel-start-rank", "--data-parallel-rank",
    "--data-parallel-address", "--data-parallel-rpc-port", "--data-parallel-backend", "--data-parallel-hybrid-lb",
    "--data-parallel-external-lb", "--data-parallel-multi-port-external-lb", "--data-parallel-supervisor-port",
    "--enable-expert-parallel", "--decode-context-parallel-size", "--prefill-context-parallel-size",
    "--enable-elastic-ep", "--api-server-count",
)  # fmt: skip
_CODE: Final = ("--trust-remote-code", "--tool-parser-plugin", "--reasoning-parser-plugin")
_TASK = Owner("makes another server than one that generates text, which is all that Stoker runs yet", "remove it")

OWNERS: Final[Mapping[str, Owner]] = {
    **{option: by_field(path) for option, path in FIELDS.items()},
    **dict.fromkeys(_STOKER, STOKER),
    **dict.fromkeys(_LATER, LATER),
    **dict.fromkeys(_CODE, CODE),
    **dict.fromkeys(("--task", "--runner", "--convert", "--tokens-only"), _TASK),
    **dict.fromkeys(("--help",), ENDS),
    "--api-key": ACCESS,
}
"""Owners of options, whatever the spec says."""

_KEYS: Final = {
    ("--compilation-config", "cudagraph_mode"): "spec.execution.cudaGraphs",
    ("--attention-config", "backend"): "spec.execution.attentionBackend",
}
_WIDE_TYPES: Final = ("float", "float32")
_BESIDE_GRAPHS: Final = ("--compilation-config", "--enforce-eager", "--optimization-level")

VARIABLES: Final[Mapping[str, Owner]] = {
    "CUDA_VISIBLE_DEVICES": Owner("is set by the device plugin, and breaks MIG slices otherwise", "remove it"),
    "VLLM_PORT": Owner("moves the engine's internal ports", "remove it"),
    "VLLM_HOST_IP": STOKER,
    "VLLM_API_KEY": ACCESS,
    "VLLM_SERVER_DEV_MODE": Owner("opens paths that stop and change the engine, to everybody", "remove it"),
    "VLLM_KEEP_ALIVE_ON_ENGINE_DEATH": Owner("keeps a dead engine from being restarted", "remove it"),
    "VLLM_ALLOW_RUNTIME_LORA_UPDATING": Owner("lets every caller load adapters from anywhere", "remove it"),
    "VLLM_ALLOW_INSECURE_SERIALIZATION": Owner("lets callers run code in the engine", "remove it"),
    "VLLM_USE_RUST_FRONTEND": Owner("starts another server, whose options Stoker does not know", "remove it"),
    "VLLM_ENGINE_READY_TIMEOUT_S": STOKER,
    "VLLM_CPU_KVCACHE_SPACE": Owner(
        "is computed from spec.resources.memory", "set spec.resources.memory and remove it"
    ),
    "VLLM_ATTENTION_BACKEND": by_field("spec.execution.attentionBackend"),
}
"""Owners of variables, besides those that the schema refuses for every engine."""


def owners(spec: InferenceServiceSpec) -> Mapping[str, Owner]:
    """Return the owners of options for this spec: an option that a field already renders cannot be given again."""
    if spec.execution is None or spec.execution.cuda_graphs is None:
        return OWNERS
    return {**OWNERS, **dict.fromkeys(_BESIDE_GRAPHS, by_field("spec.execution.cudaGraphs"))}


def owned_keys(arguments: Sequence[Argument]) -> Iterator[Fault]:
    """Yield a fault for every key of a JSON option that a field owns, dotted or inside the JSON."""
    for argument in arguments:
        for (option, key), path in _KEYS.items():
            if option in argument.options and key in _keys(argument):
                problem = f"{key} of {option} is what {path} sets"
                remedy = f"set {path} and remove it"
                yield Fault(join(ARGS_PATH, argument.index), problem, remedy, "OwnedArgument")


def wide_types(arguments: Sequence[Argument]) -> Iterator[Fault]:
    """Yield a fault for every ``--dtype`` of 32 bits: the layout counts 16, as engines load what is not quantized."""
    for argument in arguments:
        if "--dtype" in argument.options and argument.values[:1] and argument.values[0] in _WIDE_TYPES:
            problem = f"--dtype {argument.values[0]} takes twice the memory that the layout counts"
            remedy = "write bfloat16 or float16, or remove it"
            yield Fault(join(ARGS_PATH, argument.index), problem, remedy, "OwnedArgument")


def _keys(argument: Argument) -> frozenset[str]:
    if argument.keys:
        return frozenset(argument.keys[:1])
    try:
        value = json.loads(argument.values[0]) if argument.values else None
    except (ValueError, RecursionError):
        return frozenset()
    return frozenset(value) if isinstance(value, dict) else frozenset()
