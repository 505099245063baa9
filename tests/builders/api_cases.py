"""Good and bad InferenceServices, named: what the models and the API server must judge alike."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.builders.pod_cases import BAD_POD, DATA, GOOD_POD, REQUIRED, SPREAD, Bad, env, volume
from tests.builders.specs import LLAMA_8B, SpecBuilder, a_spec
from tests.builders.volume_cases import BAD_VOLUMES, GOOD_VOLUMES

NUMBERS = {"parameterCount": 7_600_000_000, "layers": 28, "attentionHeads": 28, "hiddenSize": 3584}
MLA = {"parameterCount": 671_000_000_000, "layers": 61, "attentionHeads": 128, "hiddenSize": 7168, "kvLoraRank": 512}


def _cpp() -> SpecBuilder:
    return a_spec().llama_cpp()


def _facts(base: Mapping[str, Any], **numbers: object) -> SpecBuilder:
    merged = {**base, **numbers}
    return a_spec().set("model.facts", {"inline": {key: value for key, value in merged.items() if value is not None}})


def _narrowed(selector: str) -> Iterator[tuple[str, str, SpecBuilder]]:
    """Specs whose pods are selected by a label and narrowed by its key: of what, where, the spec."""
    by = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "a", "operator": "Exists"}]}[selector]
    term = {"labelSelector": {selector: by}, "matchLabelKeys": ["a"]}
    yield (
        "an affinity",
        f"affinity.podAffinity.{REQUIRED}[0]",
        a_spec().set(f"pod.affinity.podAffinity.{REQUIRED}", [{"topologyKey": "zone", **term}]),
    )
    yield (
        "a spread",
        "topologySpreadConstraints[0]",
        a_spec().set("pod.topologySpreadConstraints", [{**SPREAD, **term}]),
    )


GOOD: Mapping[str, SpecBuilder] = {
    "smallest": SpecBuilder().model(LLAMA_8B).set("engine.name", "vllm"),
    "revision and credentials": a_spec().set("model.revision", "0e9e39f2").set("model.credentialsSecret", "hf-token"),
    "hub file": _cpp().model("hf://bartowski/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct-Q4_K_M.gguf"),
    "volume root": a_spec().model("pvc://models"),
    "volume path": a_spec().model("pvc://models.team-a/llama/3.1-8b"),
    "names": a_spec().set("model.names", ["llama", "meta-llama/Llama-3.1-8B-Instruct"]),
    "facts from a ConfigMap": a_spec().set("model.facts.configMapName", "llama-config"),
    "facts inline": _facts(NUMBERS, kvHeads=4, headDim=128, vocabularySize=152064, maxContextLength=131072),
    "facts of latent attention": _facts(MLA, ropeHeadDim=64),
    "facts of a sliding window": _facts(NUMBERS, slidingWindow=4096, slidingWindowLayers=14),
    "facts with exact weights": _facts(NUMBERS, parameterCount=None, weightBytes=15_200_000_000),
    "tensor and pipeline": a_spec().tensor(8).pipeline(8),
    "CPU with one rank": a_spec().on_cpu().tensor(1).pipeline(1),
    "CPU without parallelism": a_spec().on_cpu(),
    "llama.cpp": _cpp().set("engine.version", "b11434"),
    "llama.cpp on GPUs": _cpp().on().pipeline(2).set("execution.gpuLayers", 20),
    "vLLM 0.12": a_spec().vllm("0.12.0"),
    "vLLM 0.12 without patch": a_spec().vllm("0.12"),
    "vLLM release candidate": a_spec().vllm("0.33.0-rc1"),
    "vLLM 0.100": a_spec().vllm("0.100.1"),
    "vLLM 1.0": a_spec().vllm("1.0.0"),
    "vLLM with a local part": a_spec().vllm("0.32.0+cpu"),
    "image of the default registry": a_spec().set("engine.image", "vllm:0.32.0"),
    "image by tag and digest": a_spec().set("engine.image", "a.b/c__d/e-f:v1.2_x@sha256:" + "0a" * 32),
    "paths with dots": a_spec().set("pod.volumes", [{**DATA, "mountPath": "/.cache/..x/a.b/", "subPath": ".a/b..c"}]),
    "device folder": a_spec().set("pod.volumes", [{**DATA, "mountPath": "/dev/infiniband"}]),
    "image by digest": a_spec().set("engine.image", "registry.example:5000/vllm@sha256:" + "0" * 64),
    "args": a_spec().set("engine.args", ["--seed", "7", "--override-generation-config", '{"temperature": 0.2}', ""]),
    "accelerator": a_spec().on("NVIDIA-H200").set("accelerator.memory", "141Gi").memory_fraction("0.95"),
    "whole memory": a_spec().memory_fraction("1"),
    "quantization": a_spec().weights("fp8").kv("fp8_e4m3"),
    "llama.cpp quantization": _cpp().kv("q8_0"),
    "context": a_spec().max_length(8192).set("context.prefixCaching", "Enabled"),
    "batching": a_spec().set("batching", {"maxSequences": 128, "maxQueued": 256, "scheduling": "Priority"}),
    "whole prompts": a_spec()
    .max_length(4096)
    .set("batching", {"chunkedPrefill": "Disabled", "maxBatchedTokens": 4096}),
    "graphs": a_spec().set("execution", {"cudaGraphs": "Disabled", "attentionBackend": "FLASH_ATTN"}),
    "speculation": a_spec().set("speculation", {"method": "ngram", "tokens": 4}),
    "lookup": a_spec().set("speculation", {"method": "ngram", "tokens": 4, "promptLookupMin": 2, "promptLookupMax": 4}),
    "resources": a_spec().set("resources", {"cpu": "0.5", "memory": "1.5Gi"}),
    "largest memory": a_spec().set("resources.memory", "999Ti").set("accelerator.memory", "999999.5Gi"),
    **{
        f"cores as {value!r}": a_spec().set("resources.cpu", value)
        for value in (2, 10_000, "10k", "2", "+2", "1.0001", "2000m", "1e1", ".5", "2.", "100000u")
    },
    **{
        f"memory as {value!r}": a_spec().set("resources.memory", value).set("accelerator.memory", value)
        for value in (8_000_000_000, "8e9", "8E9", "8000000000000m", "7.5Gi", "0.001P", "999Ti")
    },
    "millicores": a_spec().set("resources.cpu", "1500m"),
    "stopped": a_spec().replicas(0),
    "warm-up": a_spec().set("warmup", {"requests": 2, "prompts": ["Hello", "Guten Tag"]}),
    "no warm-up": a_spec().set("warmup.requests", 0),
    "rollout": a_spec().set("rollout", {"strategy": "Surge", "restartedAt": "2026-01-31T12:00:00.5+01:00"}),
    "paused": a_spec().set("paused", True),
    "labels": a_spec().set("pod.labels", {"example.com/team": "a", "tier": ""}),
    "annotations": a_spec().set("pod.annotations", {"example.com/note": "any text: {{ }}"}),
    "node selector": a_spec().set("pod.nodeSelector", {"topology.kubernetes.io/zone": "eu-1a"}),
    "plain variable": env(value=""),
    "variable of a Secret": env(valueFrom={"secretKeyRef": {"name": "s", "key": "k", "optional": True}}),
    "variable of a ConfigMap": env(valueFrom={"configMapKeyRef": {"name": "c", "key": "k.txt"}}),
    "empty volume": volume(emptyDir={"medium": "Memory", "sizeLimit": "1Gi"}),
    "claim volume": volume(emptyDir=None, persistentVolumeClaim={"claimName": "c"}, readOnly=True, subPath="a/b"),
    "host path": volume(emptyDir=None, hostPath={"path": "/mnt/models", "type": "Directory"}),
    "tolerations": a_spec().set("pod.tolerations", [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]),
    "spread": a_spec().set(
        "pod.topologySpreadConstraints",
        [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}],
    ),
    "affinity": a_spec().set(
        "pod.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution",
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "gpu", "operator": "In", "values": ["h100"]}]}]},
    ),
    "pod classes": a_spec().set("pod.priorityClassName", "high").set("pod.runtimeClassName", "nvidia"),
    "pod names": a_spec().set("pod.serviceAccountName", "runner").set("pod.schedulerName", "kueue"),
    "pull secrets": a_spec().set("pod.imagePullSecrets", [{"name": "registry"}]),
    "security": a_spec().set("pod.securityContext", {"runAsUser": 1000, "fsGroup": 1000}),
    **GOOD_POD,
    **GOOD_VOLUMES,
    "nulls stand for absent fields": a_spec().set("context", {"maxLength": None}).set("pod", {"env": None}),
}

BAD: Mapping[str, Bad] = {
    # ---- shape -----------------------------------------------------------------------------------------------------
    "no model": Bad(SpecBuilder().set("engine.name", "vllm"), "spec.model", "missing"),
    "no engine": Bad(SpecBuilder().model(LLAMA_8B), "spec.engine", "missing"),
    "unknown field": Bad(a_spec().set("context.maxLen", 1), "spec.context.maxLen", "did you mean maxLength?"),
    "snake case": Bad(a_spec().set("context.max_length", 1), "spec.context.max_length", "did you mean maxLength?"),
    "unknown part": Bad(a_spec().set("scaling", {"maxReplicas": 3}), "spec.scaling", "no such field"),
    "engine of another release": Bad(
        a_spec().set("engine.name", "sglang"), "spec.engine.name", "'vllm' or 'llama.cpp'"
    ),
    "number for text": Bad(a_spec().set("engine.version", 0.32), "spec.engine.version", 'in quotes: "0.32"'),
    "cores with a point": Bad(a_spec().set("resources.cpu", 0.5), "spec.resources.cpu", 'in quotes: "0.5"'),
    **{
        f"cores of {value}": Bad(a_spec().set("resources.cpu", value), "spec.resources.cpu", "number of cores such as")
        for value in (0, -1, 10_001, "-1", "10001", "0.5m", "8 ", "1e", "1e-4", "8Gib", "")
    },
    **{
        f"memory of {value}": Bad(a_spec().set("resources.memory", value), "spec.resources.memory", "at most 999Ti")
        for value in (0, 2**50, "0.5", "1K", "1e16", "1e-3", "Gi")
    },
    "truth for a quantity": Bad(a_spec().set("accelerator.memory", True), "spec.accelerator.memory", "such as 1"),
    "text for number": Bad(a_spec().set("context.maxLength", "8k"), "spec.context.maxLength", "must be an integer"),
    "truth for number": Bad(a_spec().set("replicas", True), "spec.replicas", "must be an integer"),
    "text for truth": Bad(a_spec().set("paused", "yes"), "spec.paused", "must be true or false"),
    "list for object": Bad(a_spec().set("context", [1]), "spec.context", "must be an object"),
    "object for list": Bad(a_spec().set("engine.args", {"a": "b"}), "spec.engine.args", "must be a list"),
    "negative replicas": Bad(a_spec().replicas(-1), "spec.replicas", "at least 0"),
    "too many replicas": Bad(a_spec().replicas(10_001), "spec.replicas", "at most 10000"),
    "no tensor": Bad(a_spec().tensor(0), "spec.parallelism.tensor", "at least 1"),
    "object storage": Bad(a_spec().model("s3://bucket/model"), "spec.model.source", "hf://owner/name"),
    "no owner": Bad(a_spec().model("hf://gpt2"), "spec.model.source", "hf://owner/name"),
    "path upwards": Bad(a_spec().model("pvc://models/../other"), "spec.model.source", "malformed"),
    "quantity": Bad(a_spec().set("resources.memory", "64 GB"), "spec.resources.memory", "such as 80Gi"),
    **{
        f"memory beyond every node: {text}": Bad(
            a_spec().set("resources.memory", text), "spec.resources.memory", "at most 999Ti"
        )
        for text in ("900000000Ti", "1000Ti", "1022977Gi", "1100000000M", f"11{'0' * 14}")
    },
    "zero memory": Bad(a_spec().set("resources.memory", "0"), "spec.resources.memory", "such as 80Gi"),
    "zero cores": Bad(a_spec().set("resources.cpu", "0"), "spec.resources.cpu", "number of cores"),
    "fraction of zero": Bad(a_spec().memory_fraction("0"), "spec.accelerator.memoryFraction", "fraction"),
    "fraction above one": Bad(a_spec().memory_fraction("1.5"), "spec.accelerator.memoryFraction", "fraction"),
    "time stamp": Bad(a_spec().set("rollout.restartedAt", "now"), "spec.rollout.restartedAt", "2026-01-31T12:00:00Z"),
    "empty names": Bad(a_spec().set("model.names", []), "spec.model.names", "at least 1"),
    "too many names": Bad(a_spec().set("model.names", [f"n{i}" for i in range(9)]), "spec.model.names", "8 entries"),
    "name with a space": Bad(a_spec().set("model.names", ["a b"]), "spec.model.names[0]", "malformed"),
    "variable twice": Bad(
        a_spec().set("pod.env", [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
        "spec.pod.env[1].name",
        "twice",
    ),
    "volume twice": Bad(
        a_spec().set("pod.volumes", [DATA, {**DATA, "mountPath": "/d2"}]), "spec.pod.volumes[1].name", "twice"
    ),
    "label value": Bad(a_spec().set("pod.labels", {"a": "b c"}), "spec.pod.labels.a", "at most 63"),
    "toleration": Bad(
        a_spec().set("pod.tolerations", [{"operator": "exists"}]), "spec.pod.tolerations[0].operator", "Exists, Equal"
    ),
    "toleration field": Bad(
        a_spec().set("pod.tolerations", [{"kee": "a"}]), "spec.pod.tolerations[0].kee", "did you mean key?"
    ),
    "spread without key": Bad(
        a_spec().set("pod.topologySpreadConstraints", [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]),
        "spec.pod.topologySpreadConstraints[0].topologyKey",
        "missing",
    ),
    "skew of zero": Bad(
        a_spec().set(
            "pod.topologySpreadConstraints",
            [{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
        ),
        "spec.pod.topologySpreadConstraints[0].maxSkew",
        "out of range",
    ),
    "user as text": Bad(
        a_spec().set("pod.securityContext.runAsUser", "root"), "spec.pod.securityContext.runAsUser", "an integer"
    ),
    "claim without a name": Bad(
        volume(emptyDir=None, persistentVolumeClaim={}),
        "spec.pod.volumes[0].persistentVolumeClaim.claimName",
        "missing",
    ),
    # ---- rules -----------------------------------------------------------------------------------------------------
    "revision of a volume": Bad(
        a_spec().model("pvc://models").set("model.revision", "main"), "spec.model.revision", "hf://"
    ),
    "credentials of a volume": Bad(
        a_spec().model("pvc://models").set("model.credentialsSecret", "s"), "spec.model.credentialsSecret", "hf://"
    ),
    "file that is no GGUF": Bad(a_spec().model("hf://a/b/model.bin"), "spec.model.source", ".gguf file"),
    "name twice": Bad(a_spec().set("model.names", ["a", "a"]), "spec.model.names", "listed twice"),
    "no facts": Bad(a_spec().set("model.facts", {}), "spec.model.facts", "exactly one of configMapName and inline"),
    "two kinds of facts": Bad(
        _facts(NUMBERS).set("model.facts.configMapName", "c"), "spec.model.facts", "exactly one of configMapName"
    ),
    "no size of the weights": Bad(
        _facts(NUMBERS, parameterCount=None), "spec.model.facts.inline.parameterCount", "exactly one of parameterCount"
    ),
    "two sizes of the weights": Bad(
        _facts(NUMBERS, weightBytes=1), "spec.model.facts.inline.parameterCount", "exactly one of parameterCount"
    ),
    "half of latent attention": Bad(_facts(MLA), "spec.model.facts.inline.ropeHeadDim", "set both, or neither"),
    "heads of latent attention": Bad(
        _facts(MLA, ropeHeadDim=64, kvHeads=8), "spec.model.facts.inline.kvHeads", "no key-value heads of its own"
    ),
    "more key-value heads than heads": Bad(
        _facts(NUMBERS, kvHeads=29), "spec.model.facts.inline.kvHeads", "larger than attentionHeads"
    ),
    "half of a window": Bad(
        _facts(NUMBERS, slidingWindow=4096),
        "spec.model.facts.inline.slidingWindowLayers",
        "describe the window together",
    ),
    "more window layers than layers": Bad(
        _facts(NUMBERS, slidingWindow=4096, slidingWindowLayers=29),
        "spec.model.facts.inline.slidingWindowLayers",
        "larger than layers",
    ),
    "vLLM 0.11": Bad(a_spec().vllm("0.11.2"), "spec.engine.version", "0.12.0 or later"),
    "vLLM 0.1": Bad(a_spec().vllm("0.1-2"), "spec.engine.version", "0.12.0 or later"),
    "vLLM by build": Bad(a_spec().vllm("b11434"), "spec.engine.version", "0.12.0 or later"),
    "llama.cpp by version": Bad(_cpp().set("engine.version", "1.2.3"), "spec.engine.version", "a build such as b11434"),
    "longest below shortest": Bad(
        a_spec().set("speculation", {"method": "ngram", "tokens": 4, "promptLookupMin": 5, "promptLookupMax": 4}),
        "spec.speculation.promptLookupMin",
        "larger than promptLookupMax",
    ),
    "prompts that are never sent": Bad(
        a_spec().set("warmup", {"requests": 1, "prompts": ["a", "b"]}),
        "spec.warmup.requests",
        "fewer requests than prompts",
    ),
    "tensor without GPUs": Bad(a_spec().on_cpu().tensor(2), "spec.parallelism", "no accelerator"),
    "pipeline without GPUs": Bad(a_spec().on_cpu().pipeline(2), "spec.parallelism", "no accelerator"),
    "more GPUs than a node has": Bad(a_spec().tensor(16).pipeline(8), "spec.parallelism.pipeline", "more than 64 GPUs"),
    "llama.cpp with tensor": Bad(_cpp().on().tensor(2), "spec.parallelism.tensor", "by layers only"),
    "vLLM with GPU layers": Bad(a_spec().set("execution.gpuLayers", 3), "spec.execution.gpuLayers", "only llama.cpp"),
    "GPU layers without GPUs": Bad(
        _cpp().on_cpu().set("execution.gpuLayers", 3), "spec.execution.gpuLayers", "no accelerator"
    ),
    "graphs without GPUs": Bad(
        a_spec().on_cpu().set("execution.cudaGraphs", "Enabled"), "spec.execution.cudaGraphs", "run on GPUs"
    ),
    "llama.cpp without a file": Bad(_cpp().model("pvc://models"), "spec.model.source", "reads .gguf files"),
    "llama.cpp with a claim named like a file": Bad(
        _cpp().model("pvc://models.gguf"), "spec.model.source", "reads .gguf files"
    ),
    "llama.cpp with a repository named like a file": Bad(
        _cpp().model("hf://acme/model.gguf"), "spec.model.source", "reads .gguf files"
    ),
    "prompt longer than a step": Bad(
        a_spec().max_length(8192).set("batching", {"chunkedPrefill": "Disabled", "maxBatchedTokens": 4096}),
        "spec.batching.maxBatchedTokens",
        "below maxLength",
    ),
    "label of Stoker": Bad(
        a_spec().set("pod.labels", {"serving.stoker.dev/service": "x"}), "spec.pod.labels", "set by Stoker"
    ),
    "label that Stoker sets": Bad(
        a_spec().set("pod.labels", {"app.kubernetes.io/managed-by": "me"}), "spec.pod.labels", "set by Stoker"
    ),
    "label key": Bad(a_spec().set("pod.labels", {"-a": "b"}), "spec.pod.labels", "no valid label key"),
    "annotation of Stoker": Bad(
        a_spec().set("pod.annotations", {"serving.stoker.dev/x": ""}), "spec.pod.annotations", "set by Stoker"
    ),
    "annotation key": Bad(a_spec().set("pod.annotations", {"a/b/c": ""}), "spec.pod.annotations", "no valid label key"),
    "node selector key": Bad(
        a_spec().set("pod.nodeSelector", {"": "b"}), "spec.pod.nodeSelector", "no valid label key"
    ),
    "variable without a value": Bad(env(), "spec.pod.env[0].value", "exactly one of value and valueFrom"),
    "variable with two values": Bad(
        env(value="1", valueFrom={"fieldRef": {"fieldPath": "status.podIP"}}),
        "spec.pod.env[0].value",
        "exactly one of",
    ),
    "variable of nothing": Bad(env(valueFrom={}), "spec.pod.env[0].valueFrom", "exactly one source"),
    "variable of two things": Bad(
        env(
            valueFrom={"fieldRef": {"fieldPath": "status.podIP"}, "resourceFieldRef": {"resource": "limits.memory"}},
        ),
        "spec.pod.env[0].valueFrom",
        "exactly one source",
    ),
    **BAD_POD,
    **BAD_VOLUMES,
    "key of the engine": Bad(env(name="VLLM_API_KEY", value="x"), "spec.pod.env[0].name", "set by Stoker"),
    "devices": Bad(env(name="CUDA_VISIBLE_DEVICES", value="0"), "spec.pod.env[0].name", "set by Stoker"),
    "argument as a variable": Bad(env(name="LLAMA_ARG_HOST", value="::"), "spec.pod.env[0].name", "set by Stoker"),
    "volume without a source": Bad(volume(emptyDir=None), "spec.pod.volumes[0]", "exactly one volume source"),
    "volume with two sources": Bad(volume(configMap={"name": "c"}), "spec.pod.volumes[0]", "exactly one volume source"),
    # a Deployment goes with it, its pods do not
    **{
        f"{what} by {selector}": Bad(spec, f"spec.pod.{path}.matchLabelKeys", f"the labelSelector of {what}")
        for selector in ("matchLabels", "matchExpressions")
        for what, path, spec in _narrowed(selector)
    },
    "volume of no image": Bad(volume(emptyDir=None, image={}), "spec.pod.volumes[0].image.reference", "missing"),
    "volume of Stoker": Bad(volume(name="stoker-state"), "spec.pod.volumes[0].name", "Stoker's own"),
    **{
        f"path {path}": Bad(volume(mountPath=path), "spec.pod.volumes[0].mountPath", "absolute path")
        for path in ("/", "//tmp", "/./tmp", "/etc/../models", "/data/..", "/a\nb", "/a:b")
    },
    **{
        f"path {path}": Bad(volume(mountPath=path), "spec.pod.volumes[0].mountPath", "the container's own")
        for path in ("/dev", "/proc/", "/sys")
    },
    **{
        f"sub path {path}": Bad(volume(subPath=path), "spec.pod.volumes[0].subPath", "does not begin with a slash")
        for path in ("..", "a/../../b", "/a")
    },
    **{
        f"image {image}": Bad(a_spec().set("engine.image", image), "spec.engine.image", "write an image reference")
        for image in ("Vllm/Vllm:1", "a::b", "a/b@sha256", "a//b", "a/b:", "a/b:v0.32.0+cpu", "registry.example:x/a")
    },
    "path of Stoker": Bad(volume(mountPath="/dev/shm/x"), "spec.pod.volumes[0].mountPath", "volumes of its own"),
    "projected sources beyond what is looked at": Bad(
        a_spec().set(
            "pod.volumes",
            [
                {"name": f"v{i}", "mountPath": f"/v{i}", "projected": {"sources": [{"secret": {"name": "s"}}] * 26}}
                for i in range(5)
            ],
        ),
        "spec.pod.volumes",
        "more than 128 sources",
    ),
    "path twice": Bad(
        a_spec().set("pod.volumes", [DATA, {**DATA, "name": "d2"}]), "spec.pod.volumes", "same mountPath"
    ),
}
