"""What each field of the API changes: the table that the test of N1 reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stoker.plan.snapshot import ReferenceView
from stoker.reconcile.decision import Decision
from tests.builders.snapshots import Life
from tests.builders.specs import SpecBuilder, a_spec
from tests.builders.views import a_node

H100 = "NVIDIA-H100-80GB-HBM3"
POD = "Deployment:spec.template.spec"
ENGINE = f"{POD}.containers[engine]"
ARGS = f"{ENGINE}.args"
AGENT = f"{POD}.initContainers[agent].env[STOKER_AGENT_CONFIG].value"

GPU = a_spec().on(H100).max_length(8192)
CPU = a_spec().on_cpu(memory="16Gi").max_length(2048)
GGUF = a_spec().llama_cpp(source="pvc://models/a.gguf").on("Tesla-T4").max_length(4096)
NUMBERS = {
    "parameterCount": 1_000_000_000,
    "layers": 32,
    "attentionHeads": 32,
    "kvHeads": 8,
    "hiddenSize": 4096,
    "vocabularySize": 32_000,
    "maxContextLength": 131_072,
}
OWN = CPU.facts(**NUMBERS)
TIGHT = a_spec().on().facts(**NUMBERS).max_length(131_072)
"""On a GPU of which the KV cache of one sequence takes the most: a larger cache does not fit."""

CONFIGS = {
    name: ReferenceView(
        "ConfigMap",
        name,
        "spec.model.facts.configMapName",
        exists=True,
        data={
            "config.json": '{"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":2048,'
            f'"intermediate_size":8192,"num_hidden_layers":{layers},"num_attention_heads":32,"num_key_value_heads":8,'
            '"vocab_size":32000,"max_position_embeddings":8192,"torch_dtype":"bfloat16"}'
        },
    )
    for name, layers in (("one", 16), ("other", 32))
}


@dataclass(frozen=True)
class Row:
    """Two specs that differ in one field, and what differs in what comes of them."""

    before: SpecBuilder
    after: SpecBuilder
    check: Callable[["Row"], None]
    path: str = ""
    references: tuple[ReferenceView, ...] = ()
    nodes: tuple[Any, ...] = field(default=(a_node(gpus=8), a_node("t4", gpus=8, product="Tesla-T4")))

    def life(self, spec: SpecBuilder) -> Life:
        """A service with this spec that has not been reconciled yet."""
        return Life(spec, nodes=self.nodes, references=self.references)

    def decide(self, spec: SpecBuilder) -> Decision:
        """The first decision for a spec."""
        return self.life(spec).decide()


# ---- what differs --------------------------------------------------------------------------------------------------
def in_child(row: Row) -> None:
    """The two specs differ at the path of a child."""
    before, after = (find(row.decide(spec), row.path) for spec in (row.before, row.after))
    assert before != after


def refused(row: Row) -> None:
    """The first spec is served, the second is not."""
    assert row.decide(row.before).apply, "the first of the two specs must be served"
    decision = row.decide(row.after)
    assert not decision.apply
    assert decision.create_revision is None


def rolls(row: Row) -> None:
    """Going from one spec to the other makes a new revision, and the Deployment runs it."""
    life = row.life(row.before)
    life.reconcile()
    first = life.template()
    life.spec = row.after
    assert life.reconcile().create_revision is not None
    assert life.template() != first


def freezes(row: Row) -> None:
    """With the second spec a further change makes no revision, with the first it does."""
    for spec, frozen in ((row.before, False), (row.after, True)):
        life = row.life(spec)
        life.set("paused", None).reconcile()
        life.spec = spec.set("context.maxLength", 1024)
        assert (life.reconcile().create_revision is None) is frozen


def find(decision: Decision, path: str) -> Any:
    """The value at a path: `Deployment:spec.template.spec.containers[engine].args`; None where there is none."""
    kind, _, rest = path.partition(":")
    value: Any = next((child for child in decision.apply if child["kind"] == kind), None)
    for step in rest.replace("]", "").replace("[", ".#").split("."):
        value = _step(value, step)
    return value


def _step(value: Any, step: str) -> Any:
    if not step.startswith("#"):
        return value.get(step) if isinstance(value, Mapping) else None
    name = step[1:]
    if not isinstance(value, list):
        return None
    if name.isdigit():
        return value[int(name)] if int(name) < len(value) else None
    return next((item for item in value if name in (item.get("name"), item.get("mountPath"))), None)


# ---- the table -----------------------------------------------------------------------------------------------------
def child(base: SpecBuilder, leaf: str, before: object, after: object, path: str = ARGS, **more: Any) -> Row:
    """A row whose field changes a child."""
    return Row(base.set(leaf, before), base.set(leaf, after), in_child, path, **more)


def verdict(base: SpecBuilder, leaf: str, before: object, after: object, **more: Any) -> Row:
    """A row whose field decides whether the service is refused."""
    return Row(base.set(leaf, before), base.set(leaf, after), refused, **more)


def number(name: str, before: object, after: object, path: str = ENGINE) -> Row:
    """A number of the model that changes what the engine's container is told or given."""
    return child(OWN, f"model.facts.inline.{name}", before, after, path)


def cache(name: str, before: object, after: object) -> Row:
    """A number of the model that makes the KV cache of one sequence too large for the GPU."""
    return verdict(TIGHT, f"model.facts.inline.{name}", before, after, nodes=(a_node(gpus=8, product="NVIDIA-L4"),))


def env(before: Mapping[str, Any], after: Mapping[str, Any]) -> Row:
    """A variable of the user."""
    variables = [[{"name": "A", **it}] if "name" not in it else [dict(it)] for it in (before, after)]
    return Row(GPU.set("pod.env", variables[0]), GPU.set("pod.env", variables[1]), in_child, f"{ENGINE}.env")


def selector(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Row:
    """A reference of a variable of the user."""
    base = {"name": "n", "key": "k"}
    return env({"valueFrom": {kind: {**base, **before}}}, {"valueFrom": {kind: {**base, **after}}})


MLA = {**{name: value for name, value in NUMBERS.items() if name != "kvHeads"}, "kvLoraRank": 512, "ropeHeadDim": 64}
WINDOW = {**NUMBERS, "layers": 24, "kvHeads": 16, "slidingWindow": 4096, "slidingWindowLayers": 12}

ROWS: Mapping[str, Row] = {
    "model.source": child(GPU, "model.source", "hf://Qwen/Qwen2.5-7B-Instruct", "hf://Qwen/Qwen3-8B"),
    "model.revision": child(GPU, "model.revision", "main", "0123abc"),
    "model.names[]": child(GPU, "model.names", ["a"], ["b"]),
    "model.credentialsSecret": child(GPU, "model.credentialsSecret", "a", "b", f"{ENGINE}.env"),
    "model.facts.configMapName": child(
        CPU.model("hf://acme/x"),
        "model.facts.configMapName",
        "one",
        "other",
        ENGINE,
        references=tuple(CONFIGS.values()),
    ),
    "model.facts.inline.parameterCount": number("parameterCount", 1_000_000_000, 2_000_000_000),
    "model.facts.inline.weightBytes": Row(
        CPU.facts(**{k: v for k, v in NUMBERS.items() if k != "parameterCount"}, weightBytes=2**31),
        CPU.facts(**{k: v for k, v in NUMBERS.items() if k != "parameterCount"}, weightBytes=2**32),
        in_child,
        ENGINE,
    ),
    "model.facts.inline.layers": cache("layers", 16, 64),
    "model.facts.inline.attentionHeads": verdict(
        TIGHT.facts(**NUMBERS | {"kvHeads": 4, "headDim": 128}).max_length(1024).tensor(8),
        "model.facts.inline.attentionHeads",
        32,
        36,
    ),
    "model.facts.inline.kvHeads": cache("kvHeads", 4, 32),
    "model.facts.inline.headDim": cache("headDim", 64, 512),
    "model.facts.inline.hiddenSize": number("hiddenSize", 2048, 4096),
    "model.facts.inline.vocabularySize": number("vocabularySize", 32_000, 4_000_000),
    "model.facts.inline.kvLoraRank": Row(
        TIGHT.facts(**MLA),
        TIGHT.facts(**MLA | {"kvLoraRank": 8192}),
        refused,
        nodes=(a_node(gpus=8, product="NVIDIA-L4"),),
    ),
    "model.facts.inline.ropeHeadDim": Row(
        TIGHT.facts(**MLA),
        TIGHT.facts(**MLA | {"ropeHeadDim": 8192}),
        refused,
        nodes=(a_node(gpus=8, product="NVIDIA-L4"),),
    ),
    "model.facts.inline.slidingWindow": Row(
        TIGHT.facts(**WINDOW),
        TIGHT.facts(**WINDOW | {"slidingWindow": 131_072}),
        refused,
        nodes=(a_node(gpus=8, product="NVIDIA-L4"),),
    ),
    "model.facts.inline.slidingWindowLayers": Row(
        TIGHT.facts(**WINDOW),
        TIGHT.facts(**WINDOW | {"slidingWindowLayers": 1}),
        refused,
        nodes=(a_node(gpus=8, product="NVIDIA-L4"),),
    ),
    "model.facts.inline.maxContextLength": Row(
        TIGHT.facts(**NUMBERS | {"maxContextLength": 8192}).set("context", None),
        TIGHT.facts(**NUMBERS | {"maxContextLength": 4096}).set("context", None),
        in_child,
        ARGS,
    ),
    "engine.name": Row(
        GGUF.on_cpu(memory="4Gi"),
        GGUF.on_cpu(memory="4Gi").set("engine.name", "vllm").model("pvc://models/a"),
        in_child,
        f"{ENGINE}.command",
    ),
    "engine.version": child(GPU, "engine.version", "0.32.0", "0.28.0"),
    "engine.image": child(GPU, "engine.image", "example.com/a:v0.32.0", "example.com/b:v0.32.0", f"{ENGINE}.image"),
    "engine.args[]": child(GPU, "engine.args", ["--seed", "1"], ["--seed", "2"]),
    "parallelism.tensor": child(GPU, "parallelism.tensor", 1, 2, f"{ENGINE}.resources"),
    "parallelism.pipeline": child(GPU, "parallelism.pipeline", 1, 2, f"{ENGINE}.resources"),
    "accelerator.products[]": child(GPU, "accelerator.products", [H100], ["NVIDIA-H200"], f"{POD}.affinity"),
    "accelerator.memory": verdict(GPU, "accelerator.memory", "80Gi", "16Gi"),
    "accelerator.memoryFraction": child(GPU, "accelerator.memoryFraction", "0.8", "0.9"),
    "quantization.weights": child(GPU, "quantization.weights", None, "fp8"),
    "quantization.kvCache": child(GPU, "quantization.kvCache", None, "fp8"),
    "context.maxLength": child(GPU, "context.maxLength", 4096, 8192),
    "context.prefixCaching": child(GPU, "context.prefixCaching", "Enabled", "Disabled"),
    "batching.maxSequences": child(GPU, "batching.maxSequences", 8, 16),
    "batching.maxBatchedTokens": child(GPU, "batching.maxBatchedTokens", 8192, 16_384),
    "batching.chunkedPrefill": child(
        GPU.set("batching.maxBatchedTokens", 8192), "batching.chunkedPrefill", "Enabled", "Disabled"
    ),
    "batching.maxQueued": child(GPU, "batching.maxQueued", 8, 16),
    "batching.scheduling": child(GPU, "batching.scheduling", "FCFS", "Priority"),
    "execution.cudaGraphs": child(GPU, "execution.cudaGraphs", "Enabled", "Disabled"),
    "execution.attentionBackend": child(GPU, "execution.attentionBackend", "FLASH_ATTN", "FLASHINFER"),
    "execution.gpuLayers": child(GGUF, "execution.gpuLayers", 4, 8),
    "speculation.method": child(GPU, "speculation", None, {"method": "ngram", "tokens": 2}),
    "speculation.tokens": child(GPU.set("speculation", {"method": "ngram"}), "speculation.tokens", 2, 3),
    "speculation.promptLookupMin": child(
        GPU.set("speculation", {"method": "ngram", "tokens": 2, "promptLookupMax": 4}),
        "speculation.promptLookupMin",
        1,
        2,
    ),
    "speculation.promptLookupMax": child(
        GPU.set("speculation", {"method": "ngram", "tokens": 2}), "speculation.promptLookupMax", 4, 6
    ),
    "resources.cpu": child(GPU, "resources.cpu", "4", "8", f"{ENGINE}.resources.requests.cpu"),
    "resources.memory": child(GPU, "resources.memory", "32Gi", "64Gi", f"{ENGINE}.resources.limits.memory"),
    "replicas": child(GPU, "replicas", 1, 2, "Deployment:spec.replicas"),
    "warmup.requests": child(GPU, "warmup.requests", 1, 2, AGENT),
    "warmup.prompts[]": child(GPU, "warmup.prompts", ["a"], ["b"], AGENT),
    "rollout.strategy": child(GPU, "rollout.strategy", "Surge", "Recreate", "Deployment:spec.strategy"),
    "rollout.restartedAt": Row(
        GPU.set("rollout.restartedAt", "2026-01-01T00:00:00Z"),
        GPU.set("rollout.restartedAt", "2026-01-02T00:00:00Z"),
        rolls,
    ),
    "paused": Row(GPU.set("paused", False), GPU.set("paused", True), freezes),
    "pod.labels{}": child(GPU, "pod.labels", {"a": "1"}, {"a": "2"}, "Deployment:spec.template.metadata.labels.a"),
    "pod.annotations{}": child(
        GPU, "pod.annotations", {"a": "1"}, {"a": "2"}, "Deployment:spec.template.metadata.annotations.a"
    ),
    "pod.env[].name": env({"name": "A", "value": "1"}, {"name": "B", "value": "1"}),
    "pod.env[].value": env({"value": "1"}, {"value": "2"}),
    "pod.env[].valueFrom.secretKeyRef.name": selector("secretKeyRef", {"name": "a"}, {"name": "b"}),
    "pod.env[].valueFrom.secretKeyRef.key": selector("secretKeyRef", {"key": "a"}, {"key": "b"}),
    "pod.env[].valueFrom.secretKeyRef.optional": selector("secretKeyRef", {"optional": False}, {"optional": True}),
    "pod.env[].valueFrom.configMapKeyRef.name": selector("configMapKeyRef", {"name": "a"}, {"name": "b"}),
    "pod.env[].valueFrom.configMapKeyRef.key": selector("configMapKeyRef", {"key": "a"}, {"key": "b"}),
    "pod.env[].valueFrom.configMapKeyRef.optional": selector(
        "configMapKeyRef", {"optional": False}, {"optional": True}
    ),
    "pod.env[].valueFrom.fieldRef.apiVersion": env(
        {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP", "apiVersion": "v1"}}},
    ),
    "pod.env[].valueFrom.fieldRef.fieldPath": env(
        {"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
    ),
    "pod.env[].valueFrom.resourceFieldRef.resource": env(
        {"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}},
    ),
    "pod.env[].valueFrom.resourceFieldRef.divisor": env(
        {"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1"}}},
        {"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
    ),
    "pod.nodeSelector{}": child(GPU, "pod.nodeSelector", {"a": "1"}, {"a": "2"}, f"{POD}.nodeSelector.a"),
    "pod.priorityClassName": child(GPU, "pod.priorityClassName", "a", "b", f"{POD}.priorityClassName"),
    "pod.runtimeClassName": child(GPU, "pod.runtimeClassName", "a", "b", f"{POD}.runtimeClassName"),
    "pod.schedulerName": child(GPU, "pod.schedulerName", "a", "b", f"{POD}.schedulerName"),
    "pod.serviceAccountName": child(GPU, "pod.serviceAccountName", "a", "b", f"{POD}.serviceAccountName"),
    "pod.imagePullSecrets[].name": child(
        GPU, "pod.imagePullSecrets", [{"name": "a"}], [{"name": "b"}], f"{POD}.imagePullSecrets"
    ),
    "pod.hostAliases[].ip": child(
        GPU,
        "pod.hostAliases",
        [{"ip": "10.0.0.1", "hostnames": ["a"]}],
        [{"ip": "10.0.0.2", "hostnames": ["a"]}],
        f"{POD}.hostAliases",
    ),
    "pod.hostAliases[].hostnames[]": child(
        GPU,
        "pod.hostAliases",
        [{"ip": "10.0.0.1", "hostnames": ["a"]}],
        [{"ip": "10.0.0.1", "hostnames": ["b"]}],
        f"{POD}.hostAliases",
    ),
}
"""Field -> what it changes."""

EMBEDDED: Mapping[str, str] = {
    "pod.affinity": f"{POD}.affinity",
    "pod.tolerations[]": f"{POD}.tolerations[0]",
    "pod.topologySpreadConstraints[]": f"{POD}.topologySpreadConstraints[0]",
    "pod.securityContext": f"{POD}.securityContext",
    "pod.volumes[].name": f"{ENGINE}.volumeMounts[/at].name",
    "pod.volumes[].mountPath": f"{ENGINE}.volumeMounts",
    "pod.volumes[].readOnly": f"{ENGINE}.volumeMounts[/at].readOnly",
    "pod.volumes[].subPath": f"{ENGINE}.volumeMounts[/at].subPath",
    "pod.volumes[]": f"{POD}.volumes[vol]",
}
"""Objects of Kubernetes -> where they arrive as they were written. The longest prefix counts."""
