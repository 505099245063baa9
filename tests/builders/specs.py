"""InferenceServices as a person would write them: `a_spec().vllm().tensor(4).on("NVIDIA-H100-80GB-HBM3").build()`.

Every step returns a new builder, and every object goes through the parser that users' manifests go through.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Self

from stoker.api.inferenceservice import API_VERSION, KIND, InferenceService, InferenceServiceSpec
from stoker.api.parse import parse_inference_service

LLAMA_8B = "hf://meta-llama/Llama-3.1-8B-Instruct"
SMOLLM_GGUF = "pvc://models/SmolLM2-135M-Instruct.Q4_1.gguf"
H100 = "NVIDIA-H100-80GB-HBM3"
GGUF_70B = "pvc://models/llama-70b.Q4_K_M.gguf"
NUMBERS_70B = {
    "parameterCount": 70_553_706_496,
    "layers": 80,
    "attentionHeads": 64,
    "kvHeads": 8,
    "hiddenSize": 8192,
    "vocabularySize": 128256,
    "maxContextLength": 131072,
}


@dataclass(frozen=True, slots=True)
class SpecBuilder:
    """Builds the spec of an InferenceService; `raw` gives the JSON, `build` the parsed spec."""

    spec: Mapping[str, Any] = field(default_factory=dict)

    def set(self, path: str, value: object) -> Self:
        """Set any field by its dotted JSON path; None removes it: `set("context.maxLength", 8192)`."""
        spec: dict[str, Any] = deepcopy(dict(self.spec))
        *parents, name = path.split(".")
        target = spec
        for parent in parents:
            target = target.setdefault(parent, {})
        if value is None:
            target.pop(name, None)
        else:
            target[name] = value
        return replace(self, spec=spec)

    def model(self, source: str) -> Self:
        """Serve the model at `source`."""
        return self.set("model.source", source)

    def vllm(self, version: str | None = "0.32.0") -> Self:
        """Serve with vLLM."""
        return self.set("engine.name", "vllm").set("engine.version", version)

    def llama_cpp(self, version: str | None = None, source: str = SMOLLM_GGUF) -> Self:
        """Serve a GGUF file with llama.cpp."""
        return self.set("engine", {"name": "llama.cpp"}).set("engine.version", version).model(source)

    def tensor(self, size: int) -> Self:
        """Share each layer between `size` GPUs."""
        return self.set("parallelism.tensor", size)

    def pipeline(self, stages: int) -> Self:
        """Cut the layers into `stages`."""
        return self.set("parallelism.pipeline", stages)

    def on(self, *products: str, memory: str | None = None) -> Self:
        """Run on GPUs: of these products, or on any."""
        accelerator: dict[str, Any] = {"products": list(products)} if products else {}
        return self.set("accelerator", accelerator).set("accelerator.memory", memory)

    def on_cpu(self, memory: str | None = "8Gi", cpu: str | None = "4") -> Self:
        """Run on the CPU, within `memory`."""
        return self.set("accelerator", None).set("resources.memory", memory).set("resources.cpu", cpu)

    def max_length(self, tokens: int) -> Self:
        """Take sequences of at most `tokens`."""
        return self.set("context.maxLength", tokens)

    def kv(self, dtype: str) -> Self:
        """Store the KV cache as `dtype`."""
        return self.set("quantization.kvCache", dtype)

    def weights(self, method: str) -> Self:
        """Store the weights quantized by `method`."""
        return self.set("quantization.weights", method)

    def memory_fraction(self, fraction: str) -> Self:
        """Give the engine this fraction of each GPU."""
        return self.set("accelerator.memoryFraction", fraction)

    def replicas(self, count: int) -> Self:
        """Run `count` replicas."""
        return self.set("replicas", count)

    def facts(self, **numbers: int) -> Self:
        """Give the model's numbers inline, by their JSON names."""
        return self.set("model.facts", {"inline": numbers})

    def raw(self) -> dict[str, Any]:
        """Return the spec as JSON."""
        return deepcopy(dict(self.spec))

    def manifest(self, name: str = "chat", namespace: str = "team-a") -> dict[str, Any]:
        """Return the whole object as JSON, as a person would apply it."""
        metadata = {"name": name, "namespace": namespace}
        return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": self.raw()}

    def service(self, name: str = "chat", namespace: str = "team-a") -> InferenceService:
        """Return the parsed object; fails on a spec that has faults."""
        parsed = parse_inference_service(self.manifest(name, namespace))
        assert isinstance(parsed, InferenceService), parsed
        return parsed

    def build(self) -> InferenceServiceSpec:
        """Return the parsed spec; fails on a spec that has faults."""
        return self.service().spec


def a_spec() -> SpecBuilder:
    """A small but whole service: Llama-3.1-8B, vLLM, any GPU."""
    return SpecBuilder().model(LLAMA_8B).vllm().on()
