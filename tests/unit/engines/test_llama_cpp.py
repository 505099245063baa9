"""llama.cpp: argument list, environment, and what it cannot do."""

from itertools import pairwise
from typing import Any

import pytest

from stoker.engines.llama_cpp import KV_ELEMENT_BYTES, RENDERED_FLAGS, LlamaCpp
from stoker.plan.types import FractionOf, Placement
from tests.builders.layouts import a_layout
from tests.builders.specs import SpecBuilder, a_spec

ENGINE = LlamaCpp()
CPU = a_spec().llama_cpp().on_cpu()
GPU = a_spec().llama_cpp().on()
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - what an engine in a pod listens on


def args_of(builder: SpecBuilder, **layout: Any) -> tuple[str, ...]:
    spec = builder.build()
    assert ENGINE.faults(spec) == ()
    gpus = 0 if spec.accelerator is None else 1
    return ENGINE.invocation(spec, a_layout(**{"gpus": gpus, "max_sequences": 4, **layout}), "chat").args


def test_on_the_cpu() -> None:
    assert args_of(CPU, max_length=2048, cpu_request_millicores=2500) == (
        "--model", "/models/SmolLM2-135M-Instruct.Q4_1.gguf",
        "--alias", "chat",
        "--host", ANY_ADDRESS, "--port", "8000",
        "--metrics", "--no-slots", "--no-webui",
        "--ctx-size", "8192", "--parallel", "4",
        "--cache-ram", "0",
        "--n-gpu-layers", "0",
        "--threads", "2",
    )  # fmt: skip


def test_on_gpus_the_layers_are_cut_evenly() -> None:
    args = args_of(GPU.pipeline(2), gpus=2, pipeline=2)
    assert _pairs(args) >= {("--n-gpu-layers", "999"), ("--split-mode", "layer"), ("--tensor-split", "1,1")}


def test_on_one_gpu_nothing_is_cut() -> None:
    args = args_of(GPU)
    assert ("--n-gpu-layers", "999") in _pairs(args)
    assert "--split-mode" not in args


def test_split_between_gpu_and_cpu() -> None:
    args = args_of(GPU.set("execution.gpuLayers", 20), placement=Placement.SPLIT, gpu_layers=20)
    assert ("--n-gpu-layers", "20") in _pairs(args)


@pytest.mark.parametrize(
    ("field", "value", "rendered"),
    [
        ("quantization.kvCache", "q8_0", ("--cache-type-k", "q8_0", "--cache-type-v", "q8_0")),
        ("context.prefixCaching", "Enabled", ("--cache-prompt",)),
        ("context.prefixCaching", "Disabled", ("--no-cache-prompt",)),
        ("batching.maxBatchedTokens", 256, ("--batch-size", "256", "--ubatch-size", "256")),
        ("model.names", ["small"], ("--alias", "small")),
        ("model.source", "hf://acme/model-GGUF/m.Q4_K_M.gguf",
         ("--hf-repo", "acme/model-GGUF", "--hf-file", "m.Q4_K_M.gguf")),
    ],
)  # fmt: skip
def test_a_field_becomes_its_option(field: str, value: object, rendered: tuple[str, ...]) -> None:
    args = args_of(CPU.set(field, value))
    start = args.index(rendered[0])
    assert args[start : start + len(rendered)] == rendered
    assert rendered[-1] not in args_of(CPU)


def test_an_unknown_length_lets_every_slot_use_the_whole_context() -> None:
    args = args_of(CPU, max_length=None)
    assert args[args.index("--ctx-size") : args.index("--ctx-size") + 5] == (
        "--ctx-size", "0", "--kv-unified", "--parallel", "4",
    )  # fmt: skip


def test_a_default_gives_way_to_an_argument() -> None:
    for spelling in ("-cram", "--cache-ram", "--cache_ram"):
        args = args_of(CPU.set("engine.args", [spelling, "512"]))
        assert args[-2:] == (spelling, "512")
        assert "0" not in [args[i + 1] for i, a in enumerate(args[:-1]) if a == "--cache-ram"]


def test_all_that_is_rendered_is_declared() -> None:
    builders: list[tuple[SpecBuilder, dict[str, Any]]] = [
        (CPU, {}),
        (CPU, {"max_length": None}),
        (CPU.kv("q8_0").set("context.prefixCaching", "Enabled").set("batching.maxBatchedTokens", 64), {}),
        (CPU.set("context.prefixCaching", "Disabled").model("hf://a/b/c.gguf"), {}),
        (GPU.pipeline(2), {"gpus": 2}),
    ]
    seen = {arg for builder, layout in builders for arg in args_of(builder, **layout) if arg.startswith("--")}
    assert seen == set(RENDERED_FLAGS)


def test_environment() -> None:
    spec = CPU.model("hf://acme/m/f.gguf").set("model.credentialsSecret", "hub").build()
    invocation = ENGINE.invocation(spec, a_layout(0), "chat")
    variables = {variable.name: variable.value for variable in invocation.env}
    assert variables["HOME"] == "/cache"
    assert variables["LLAMA_CACHE"].startswith("/cache/")  # type: ignore[union-attr]
    assert variables["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert [v.secret_key for v in invocation.env if v.name == "HF_TOKEN"] == ["HF_TOKEN"]
    assert not any(name.startswith("LLAMA_ARG_") for name in variables)
    assert invocation.command == ("/app/llama-server",)
    assert invocation.model_path is None


@pytest.mark.parametrize(
    ("spec", "image", "version"),
    [
        (CPU, "ghcr.io/ggml-org/llama.cpp:server-b11434", "b11434"),
        (GPU, "ghcr.io/ggml-org/llama.cpp:server-cuda-b11434", "b11434"),
        (CPU.set("engine.version", "b10000"), "ghcr.io/ggml-org/llama.cpp:server-b10000", "b10000"),
        (CPU.set("engine.image", "example.com/l:server-b9999"), "example.com/l:server-b9999", "b9999"),
        (CPU.set("engine.image", "ghcr.io/stoker-dev/llama-cpp:0.1.0"), "ghcr.io/stoker-dev/llama-cpp:0.1.0", None),
    ],
)
def test_image_and_version(spec: SpecBuilder, image: str, version: str | None) -> None:
    assert ENGINE.invocation(spec.build(), a_layout(0), "chat").image == image
    assert ENGINE.version(spec.build()) == version


def test_traits() -> None:
    traits = ENGINE.traits(CPU.build())
    assert traits.fraction_of is FractionOf.UNUSED
    assert traits.default_max_sequences == 4
    assert not (traits.has_queue_limit or traits.supports_tensor or traits.context_is_shared or traits.shares_memory)
    assert traits.supports_pipeline
    assert traits.splits_layers
    assert traits.kv_element_bytes == KV_ELEMENT_BYTES
    assert str(traits.kv_element_bytes["q8_0"]) == "1.0625"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        (GPU, ("quantization.weights", "awq")),
        (GPU, ("quantization.kvCache", "fp8")),
        (GPU, ("accelerator.memoryFraction", "0.5")),
        (GPU, ("batching.chunkedPrefill", "Enabled")),
        (GPU, ("batching.maxQueued", 9)),
        (GPU, ("batching.scheduling", "FCFS")),
        (GPU, ("execution.cudaGraphs", "Enabled")),
        (GPU, ("execution.attentionBackend", "FLASH_ATTN")),
        (GPU, ("speculation", {"method": "ngram", "tokens": 3})),
        (GPU, ("model.names", ["a", "b"])),
        (GPU.model("hf://a/b/c.gguf"), ("model.revision", "main")),
        (GPU, ("engine.version", "b9000")),
        (GPU.set("batching.maxSequences", 256), ("context.maxLength", 10_000_000)),
    ],
)
def test_N1_a_field_without_meaning_is_refused(spec: SpecBuilder, field: tuple[str, object]) -> None:
    (fault,) = ENGINE.faults(spec.set(*field).build())
    assert fault.path == f"spec.{field[0]}"
    assert "llama.cpp" in fault.problem
    assert fault.remedy


def test_variables_with_an_owner_are_refused() -> None:
    (fault,) = ENGINE.faults(CPU.set("pod.env", [{"name": "LLAMA_CACHE", "value": "x"}]).build())
    assert fault.path == "spec.pod.env[0].name"


def _pairs(args: tuple[str, ...]) -> set[tuple[str, str]]:
    return set(pairwise(args))
