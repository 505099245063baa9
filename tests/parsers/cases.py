"""Argument lists to be judged by the engines' own parsers."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from stoker.engines.interface import Engine
from stoker.engines.llama_cpp import LlamaCpp
from stoker.engines.versions import Version, parse_version
from stoker.engines.vllm import Vllm
from stoker.engines.vllm_table import vllm_options
from stoker.engines.vllm_version import DEFAULT_VERSION
from stoker.plan.types import Placement
from tests.builders.layouts import a_layout
from tests.builders.specs import SpecBuilder, a_spec

GOLDEN = Path(__file__).parent.parent / "golden"

VLLM_FIELDS: Mapping[str, tuple[object, ...]] = {
    "model.names": (["a"], ["a", "b/c:1", "d.e"]),
    "model.revision": ("main", "0e9e39f249a16976918f6564b8830bc894c89659"),
    "quantization.weights": ("fp8", "awq", "compressed-tensors", "mxfp4"),
    "quantization.kvCache": ("auto", "bfloat16", "fp8", "fp8_e4m3", "fp8_e5m2", "float16", "nvfp4", "fp8_ds_mla"),
    "context.prefixCaching": ("Enabled", "Disabled"),
    "batching.maxBatchedTokens": (1, 8192, 100_000_000),
    "batching.chunkedPrefill": ("Enabled", "Disabled"),
    "batching.maxQueued": (1, 1_000_000),
    "batching.scheduling": ("FCFS", "Priority"),
    "execution.cudaGraphs": ("Enabled", "Disabled"),
    "execution.attentionBackend": ("FLASH_ATTN", "FLASHINFER"),
    "speculation": (
        {"method": "ngram", "tokens": 4},
        {"method": "ngram", "tokens": 1, "promptLookupMin": 2, "promptLookupMax": 64},
    ),
    "engine.args": (
        ["--hf-overrides", '{"a": "$(X) \\"quoted\\" \'x\'", "b": {"c": [1, 2]}}'],
        ["--compilation-config.mode", "0", "--seed", "-1"],
        ["--enable-auto-tool-choice", "--tool-call-parser=hermes"],
        ["--disable-access-log-for-endpoints", "/health"],
        ["--allowed-origins", '["*"]', "-O1"],
    ),
}
LAYOUTS: tuple[dict[str, Any], ...] = (
    {},
    {"gpus": 8, "tensor": 4, "pipeline": 2, "max_sequences": 1, "max_queued": 1},
    {"max_length": None, "max_queued": None},
    {"max_length": 100_000_000, "max_sequences": 1_000_000, "max_queued": 2_000_000},
)


def rendered_vllm(version: str) -> dict[str, tuple[str, ...]]:
    """Return argument lists as they are rendered for that version: every field, several layouts, CPU and GPU."""
    cases: dict[str, tuple[str, ...]] = {}
    for device, base in (("gpu", a_spec()), ("cpu", a_spec().on_cpu())):
        for name, builder in _vllm_specs(base.vllm(version), gpu=device == "gpu"):
            cases |= _rendered(Vllm(), f"{device} {name}", builder)
    for index, layout in enumerate(LAYOUTS):
        cases |= _rendered(Vllm(), f"layout {index}", a_spec().vllm(version), **layout)
    return cases


def _vllm_specs(base: SpecBuilder, *, gpu: bool) -> Iterator[tuple[str, SpecBuilder]]:
    for source in ("hf://acme/model", "pvc://claim/some/path", "pvc://claim"):
        yield source, base.model(source)
    for field, values in VLLM_FIELDS.items():
        if gpu or field != "execution.cudaGraphs":
            yield from ((f"{field}={value}", base.set(field, value)) for value in values)


def _rendered(engine: Engine, name: str, builder: SpecBuilder, **layout: Any) -> dict[str, tuple[str, ...]]:
    """Return the arguments of one spec, none where the version refuses it."""
    spec = builder.build()
    if engine.faults(spec):
        return {}
    gpus = 0 if spec.accelerator is None else 1
    return {name: engine.invocation(spec, a_layout(**{"gpus": gpus, **layout}), "chat").args}


def spelled_vllm() -> dict[str, tuple[str, ...]]:
    """Return single options in many spellings, right and wrong ones."""
    cases: list[tuple[str, ...]] = []
    for spelling, options in vllm_options().by_spelling.items():
        value = {"0": (), "?": ("1",)}.get(options[0].takes, ("1",))
        cases.append((spelling, *value))
    named = ("--tensor-parallel-size", "--enable-prefix-caching", "--speculative-config", "--max-num-seqs", "-tp", "-q")
    for head in named:
        cases += [(f"{head}=1",), (f"{head}1",), (f"{head} 1",), (head.replace("-", "_"), "1"), (f"{head[:-1]}", "1")]
    cases += [("--host", "--port"), ("--seed", "1", "2"), ("stray",), ("--",), ("-t", "1"), ("-d", "1"), ("--no-such",)]
    cases += [
        ("--max_num-seqs=3",),
        ("--compilation-config.mode", "0"),
        ("--compilation_config.mode=0",),
        ("-cc.mode", "0"),
        ("-O3",),
        ("-O=3",),
        ("-O", "3"),
        ("-O", "decode"),
        ("-O.mode=0",),
        ("-O.mode", "0"),
        ("-Odecode",),
        ("--compilation-conf.cudagraph_mode=NONE",),
    ]
    return {" ".join(case): case for case in cases}


def golden_vllm(version: Version) -> dict[str, tuple[str, ...]]:
    """Return the arguments of every golden file of vLLM as a parser of that version can judge them.

    A file of that version or an older one is judged as it stands; of a newer one, the manifest is rendered anew for
    that version, unless it asks for what that version lacks.
    """
    cases: dict[str, tuple[str, ...]] = {}
    for case in sorted(file.parent for file in GOLDEN.glob("*/infsvc.yaml")):
        manifest = yaml.safe_load((case / "infsvc.yaml").read_text())
        if manifest["spec"]["engine"]["name"] == "vllm":
            own = parse_version(str(manifest["spec"]["engine"].get("version", DEFAULT_VERSION)))
            assert own is not None
            cases |= _expected(case) if own <= version else _again(case.name, manifest["spec"], version)
    return cases


def golden_llama_cpp() -> dict[str, tuple[str, ...]]:
    """Return the arguments of every golden file of llama.cpp."""
    cases = [file.parent for file in sorted(GOLDEN.glob("llama-cpp*/expected.yaml"))]
    return {name: args for case in cases for name, args in _expected(case).items()}


def _expected(case: Path) -> dict[str, tuple[str, ...]]:
    documents = yaml.safe_load_all((case / "expected.yaml").read_text())
    (container,) = (container for document in documents for container in _engines(document))
    # Kubernetes reads $$ as $.
    return {case.name: tuple(argument.replace("$$", "$") for argument in container["args"])}


def _again(name: str, spec: Mapping[str, Any], version: Version) -> dict[str, tuple[str, ...]]:
    parallelism = spec.get("parallelism", {})
    tensor, pipeline = parallelism.get("tensor", 1), parallelism.get("pipeline", 1)
    builder = SpecBuilder(spec).set("engine.version", str(version)).set("engine.image", None)
    gpus = tensor * pipeline if "accelerator" in spec else 0
    return _rendered(Vllm(), name, builder, gpus=gpus, tensor=tensor, pipeline=pipeline)


def _engines(document: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(document, dict) and document.get("kind") == "Deployment":
        pod = document["spec"]["template"]["spec"]
        yield from (container for container in pod["containers"] if container["name"] == "engine")


def rendered_llama_cpp() -> dict[str, tuple[str, ...]]:
    """Return argument lists of llama-server as they are rendered."""
    cpu, gpu = a_spec().llama_cpp().on_cpu(), a_spec().llama_cpp().on()
    specs = {
        "cpu": cpu,
        "hub": cpu.model("hf://acme/model-GGUF/m.Q4_K_M.gguf"),
        "caching": cpu.set("context.prefixCaching", "Enabled"),
        "no caching": cpu.set("context.prefixCaching", "Disabled"),
        "batches": cpu.set("batching.maxBatchedTokens", 256),
        "args": cpu.set("engine.args", ["--temp", "0.5", "-cram", "256", "--chat-template", "{{ '$x' }}"]),
        "gpu": gpu,
        **{f"kv {dtype}": cpu.kv(dtype) for dtype in LlamaCpp().traits(cpu.build()).kv_element_bytes},
    }
    cases = {n: args for name, builder in specs.items() for n, args in _rendered(LlamaCpp(), name, builder).items()}
    cases |= _rendered(LlamaCpp(), "two gpus", gpu.pipeline(2), gpus=2, pipeline=2)
    cases |= _rendered(LlamaCpp(), "unknown length", cpu, max_length=None)
    return cases | _rendered(LlamaCpp(), "split", gpu, placement=Placement.SPLIT, gpu_layers=7)
