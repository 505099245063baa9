"""What vLLM is asked for and cannot do is refused by name and version."""

from typing import Any

import pytest

from stoker.api.faults import Fault
from stoker.engines.vllm import Vllm
from tests.builders.layouts import a_layout
from tests.builders.specs import SpecBuilder, a_spec


def the_fault(builder: SpecBuilder) -> Fault:
    (fault,) = Vllm().faults(builder.build())
    return fault


def allowed(builder: SpecBuilder) -> bool:
    return not Vllm().faults(builder.build())


@pytest.mark.parametrize(
    ("field", "value", "works", "lacks", "says"),
    [
        ("batching.maxQueued", 10, "0.29.0", "0.28.0", "since 0.29"),
        ("quantization.weights", "bitsandbytes", "0.27.1", "0.28.0", "before 0.28"),
        ("quantization.weights", "gguf", "0.23.0", "0.24.0", "before 0.24"),
        ("quantization.weights", "fp8_per_tensor", "0.20.0", "0.19.1", "since 0.20"),
        ("quantization.weights", "mxfp8", "0.19.0", "0.18.1", "since 0.19"),
        ("quantization.kvCache", "nvfp4", "0.20.0", "0.19.1", "since 0.20"),
        ("quantization.kvCache", "float16", "0.18.0", "0.17.1", "since 0.18"),
        ("model.source", "pvc://models/a.gguf", "0.23.0", "0.24.0", "before 0.24"),
    ],
)
def test_a_feature_is_refused_where_the_version_lacks_it(
    field: str, value: object, works: str, lacks: str, says: str
) -> None:
    assert allowed(a_spec().vllm(works).set(field, value))
    fault = the_fault(a_spec().vllm(lacks).set(field, value))
    assert fault.path == f"spec.{field}"
    assert lacks in fault.problem
    assert says in fault.problem
    assert fault.remedy


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("batching.maxQueued", 10),
        ("execution.attentionBackend", "FLASH_ATTN"),
        ("quantization.kvCache", "nvfp4"),
    ],
)
def test_a_feature_of_some_versions_needs_a_known_version(field: str, value: object) -> None:
    unknown = a_spec().vllm(None).set("engine.image", "example.com/vllm:nightly").set(field, value)
    assert "spec.engine.version" in the_fault(unknown).remedy
    assert allowed(unknown.set("engine.version", "0.32.0"))


@pytest.mark.parametrize("value", ["fp4", "q8_0", "turboquant_k8v4", "fp8_inc"])
def test_a_kv_cache_that_cannot_be_planned_is_refused(value: str) -> None:
    fault = the_fault(a_spec().kv(value))
    assert value in fault.problem
    assert "fp8_e4m3" in fault.remedy


def test_an_unknown_quantization_names_those_of_the_version() -> None:
    fault = the_fault(a_spec().vllm("0.32.0").weights("q4_k_m"))
    assert (fault.path, fault.reason) == ("spec.quantization.weights", "UnsupportedByEngine")
    assert "awq" in fault.remedy
    assert "gguf" not in fault.remedy


@pytest.mark.parametrize(("version", "works"), [("0.20.2", False), ("0.21.0", True), ("0.32.0", True)])
def test_the_cpu_stores_an_fp8_cache_since_0_21(version: str, works: bool) -> None:
    assert allowed(a_spec().vllm(version).on_cpu().kv("fp8")) is works


def test_the_cpu_has_fewer_cache_types() -> None:
    assert "KV cache type for the CPU" in the_fault(a_spec().on_cpu().kv("nvfp4")).problem


@pytest.mark.parametrize("version", ["0.12.0", "0.32.0"])
def test_one_file_of_a_repository_is_refused(version: str) -> None:
    fault = the_fault(a_spec().vllm(version).model("hf://acme/model/model.gguf"))
    assert fault.path == "spec.model.source"


def test_an_image_older_than_the_oldest_is_refused() -> None:
    fault = the_fault(a_spec().vllm(None).set("engine.image", "docker.io/vllm/vllm-openai:v0.11.2"))
    assert (fault.path, fault.reason) == ("spec.engine.image", "UnsupportedVersion")


@pytest.mark.parametrize(
    ("image", "contradicts"),
    [
        ("vllm/vllm-openai:v0.31.0", True),
        ("docker.io/vllm/vllm-openai-cpu:v0.31.0", True),
        ("vllm/vllm-openai:v0.32.0", False),
        ("vllm/vllm-openai:v0.32.0-cu129", False),
        ("vllm/vllm-openai:latest", False),
        ("example.com/vllm:1.4.2", False),
    ],
)
def test_the_maker_s_image_and_the_version_agree(image: str, contradicts: bool) -> None:
    faults = Vllm().faults(a_spec().vllm("0.32.0").set("engine.image", image).build())
    assert bool(faults) is contradicts


@pytest.mark.parametrize(
    "name",
    [
        "VLLM_ATTENTION_BACKEND", "VLLM_CPU_KVCACHE_SPACE", "VLLM_KEEP_ALIVE_ON_ENGINE_DEATH", "VLLM_USE_RUST_FRONTEND",
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING", "VLLM_ALLOW_INSECURE_SERIALIZATION",
    ],
)  # fmt: skip
def test_variables_with_an_owner_are_refused(name: str) -> None:
    env = [{"name": "FINE", "value": "1"}, {"name": name, "value": "1"}]
    fault = the_fault(a_spec().set("pod.env", env))
    assert fault.path == "spec.pod.env[1].name"
    assert name in fault.problem


def test_all_faults_are_told_at_once_one_a_field() -> None:
    builder = a_spec().vllm("0.12.0").kv("q8_0").weights("nope").set("batching.maxQueued", 3)
    builder = builder.set("engine.args", ["--port", "1", "--bogus"])
    paths = [fault.path for fault in Vllm().faults(builder.build())]
    assert paths == [
        "spec.quantization.weights",
        "spec.quantization.kvCache",
        "spec.batching.maxQueued",
        "spec.engine.args[0]",
        "spec.engine.args[2]",
    ]


@pytest.mark.parametrize(
    ("graphs", "args", "refused"),
    [
        (None, ["--enforce-eager"], False),
        (None, ["-O0"], False),
        (None, ["--compilation-config", '{"mode": 0}'], False),
        (None, ["--compilation-config", '{"cudagraph_mode": "NONE"}'], True),
        (None, ["--compilation-config.cudagraph_mode", "NONE"], True),
        (None, ["-cc.cudagraph_mode=NONE"], True),
        ("Disabled", ["--enforce-eager"], True),
        ("Enabled", ["-O0"], True),
        ("Enabled", ["--compilation-config", '{"mode": 0}'], True),
        (None, ["--attention-config", '{"backend": "FLASHINFER"}'], True),
        (None, ["--attention-config", '{"flash_attn_version": 3}'], False),
        (None, ["--attention-config", "no json"], False),
    ],
)
def test_one_argument_has_one_owner(graphs: str | None, args: list[str], refused: bool) -> None:
    faults = Vllm().faults(a_spec().set("execution.cudaGraphs", graphs).set("engine.args", args).build())
    assert bool(faults) is refused
    if refused:
        assert "spec.execution" in faults[0].remedy


def test_a_field_that_is_set_takes_no_owner_away() -> None:
    fault = the_fault(a_spec().set("execution.cudaGraphs", "Enabled").set("engine.args", ["--port", "1"]))
    assert fault.path == "spec.engine.args[0]"


def test_a_spec_without_faults_is_rendered_for_every_layout() -> None:
    changes: list[dict[str, Any]] = [{"max_length": None}, {"max_queued": None}, {"weight_bytes": None}]
    for change in changes:
        assert Vllm().invocation(a_spec().build(), a_layout(**change), "chat").args
