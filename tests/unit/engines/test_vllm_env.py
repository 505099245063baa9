"""The environment of vLLM's container."""

from typing import Any

import pytest

from stoker.engines.interface import EnvVar, Invocation
from stoker.engines.vllm import Vllm
from tests.builders.layouts import GIB, a_layout
from tests.builders.specs import SpecBuilder, a_spec


def invocation_of(builder: SpecBuilder, **layout: Any) -> Invocation:
    spec = builder.build()
    return Vllm().invocation(spec, a_layout(**{"gpus": 0 if spec.accelerator is None else 1, **layout}), "chat")


def env_of(builder: SpecBuilder, **layout: Any) -> dict[str, str | None]:
    variables = invocation_of(builder, **layout).env
    names = [variable.name for variable in variables]
    assert len(names) == len(set(names))
    return {variable.name: variable.value for variable in variables}


def test_everything_that_is_written_lies_on_volumes() -> None:
    invocation = invocation_of(a_spec())
    mounts = [path.mount_path for path in invocation.writable_paths]
    assert mounts == ["/cache", "/tmp"]
    homes = ("HOME", "HF_HOME", "VLLM_CACHE_ROOT", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME")
    variables = env_of(a_spec())
    for name in (*homes, "XDG_CONFIG_HOME", "NUMBA_CACHE_DIR", "CUDA_CACHE_PATH"):
        assert str(variables[name]).startswith("/cache"), name


def test_the_user_has_a_name_without_a_passwd_file() -> None:
    variables = env_of(a_spec())
    assert variables["USER"] == variables["LOGNAME"] == "vllm"
    assert (invocation_of(a_spec()).user_id, invocation_of(a_spec()).group_id) == (2000, 0)


@pytest.mark.parametrize("spec", [a_spec(), a_spec().on_cpu()])
def test_N13_the_devices_are_the_device_plugin_s_to_choose(spec: SpecBuilder) -> None:
    assert "CUDA_VISIBLE_DEVICES" not in env_of(spec)


def test_a_cpu_engine_sees_no_gpu() -> None:
    assert env_of(a_spec().on_cpu())["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert "NVIDIA_VISIBLE_DEVICES" not in env_of(a_spec())


@pytest.mark.parametrize(("version", "told"), [("0.13.0", False), ("0.14.0", True), ("0.32.0", True)])
def test_the_engine_waits_for_itself_as_long_as_the_startup_budget(version: str, told: bool) -> None:
    variables = env_of(a_spec().vllm(version), startup_budget_seconds=1234)
    assert variables.get("VLLM_ENGINE_READY_TIMEOUT_S") == ("1234" if told else None)


@pytest.mark.parametrize(("weight_bytes", "told"), [(None, "900"), (GIB // 8, None), (400 * GIB, "3600")])
def test_the_engine_waits_for_a_step_as_long_as_the_agent_does(weight_bytes: int | None, told: str | None) -> None:
    """Of its own, a core that is busy with one prefill for five minutes ends itself."""
    invocation = invocation_of(a_spec().on_cpu(), weight_bytes=weight_bytes)
    variables = {variable.name: variable.value for variable in invocation.env}
    assert variables.get("VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS") == told
    assert told in (None, str(invocation.longest_prefill_seconds))


def test_a_model_on_a_volume_needs_no_hub() -> None:
    assert env_of(a_spec().model("pvc://models/llama"))["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in env_of(a_spec())


def test_the_hub_s_token_comes_from_its_secret_and_stands_nowhere_else() -> None:
    invocation = invocation_of(a_spec().set("model.credentialsSecret", "hub"))
    assert EnvVar("HF_TOKEN", secret_name="hub", secret_key="HF_TOKEN") in invocation.env
    assert "HF_TOKEN" not in env_of(a_spec())
    assert not any("hub" in argument for argument in invocation.args)


@pytest.mark.parametrize(
    ("gpus", "millicores", "threads"), [(1, 4000, "4"), (4, 10_000, "2"), (8, 2000, "1"), (0, 3500, "3"), (0, 500, "1")]
)
def test_threads_are_counted_from_the_container_not_from_the_node(gpus: int, millicores: int, threads: str) -> None:
    spec = a_spec() if gpus else a_spec().on_cpu()
    variables = env_of(spec, gpus=gpus, cpu_request_millicores=millicores)
    assert variables["OMP_NUM_THREADS"] == threads
    assert variables.get("VLLM_CPU_OMP_THREADS_BIND") == (None if gpus else "nobind")


@pytest.mark.parametrize(
    ("version", "bytes_", "space"),
    [("0.19.1", 5 * GIB + 1, "5"), ("0.12.0", 2 * GIB, "2"), ("0.20.0", 5 * GIB, None), ("0.32.0", 5 * GIB, None)],
)
def test_an_older_cpu_engine_is_told_its_kv_cache_in_gib(version: str, bytes_: int, space: str | None) -> None:
    variables = env_of(a_spec().vllm(version).on_cpu(), kv_cache_bytes=bytes_)
    assert variables.get("VLLM_CPU_KVCACHE_SPACE") == space


def test_nothing_is_reported_home() -> None:
    variables = env_of(a_spec())
    assert variables["VLLM_NO_USAGE_STATS"] == variables["HF_HUB_DISABLE_TELEMETRY"] == "1"


@pytest.mark.parametrize(
    ("spec", "image"),
    [
        (a_spec().vllm("0.32.0"), "docker.io/vllm/vllm-openai:v0.32.0"),
        (a_spec().vllm(None), "docker.io/vllm/vllm-openai:v0.32.0"),
        (a_spec().vllm("0.32.0").on_cpu(), "docker.io/vllm/vllm-openai-cpu:v0.32.0"),
        (a_spec().vllm("0.32"), "docker.io/vllm/vllm-openai:v0.32.0"),
        (a_spec().vllm("0.33.0rc1"), "docker.io/vllm/vllm-openai:v0.33.0rc1"),
        (a_spec().vllm("0.32.0+cpu").on_cpu(), "docker.io/vllm/vllm-openai-cpu:v0.32.0"),
        (a_spec().vllm("0.12.0").on_cpu(), "public.ecr.aws/q9t5s3a7/vllm-cpu-release-repo:v0.12.0"),
        (a_spec().set("engine.image", "example.com/mine:1"), "example.com/mine:1"),
    ],
)
def test_the_image_follows_the_version_and_the_device(spec: SpecBuilder, image: str) -> None:
    assert invocation_of(spec).image == image


@pytest.mark.parametrize(
    ("version", "image", "told"),
    [
        ("0.20.1", None, "0.20.1"),
        (None, None, "0.32.0"),
        (None, "docker.io/vllm/vllm-openai:v0.19.1-cu129", "0.19.1"),
        (None, "docker.io/vllm/vllm-openai:latest", None),
        ("0.20.1", "example.com/mine@sha256:" + "0" * 64, "0.20.1"),
    ],
)
def test_the_version_is_the_field_s_then_the_tag_s(version: str | None, image: str | None, told: str | None) -> None:
    spec = a_spec().vllm(version).set("engine.image", image).build()
    assert Vllm().version(spec) == Vllm().traits(spec).version == told


def test_traits_follow_version_and_device() -> None:
    gpu, cpu = Vllm().traits(a_spec().vllm("0.32.0").build()), Vllm().traits(a_spec().vllm("0.19.1").on_cpu().build())
    assert (gpu.has_queue_limit, cpu.has_queue_limit) == (True, False)
    assert (gpu.default_max_sequences, cpu.default_max_sequences) == (256, 128)
    assert (gpu.block_tokens, cpu.block_tokens) == (16, 128)
    assert (gpu.kv_cache_step_bytes, cpu.kv_cache_step_bytes) == (1, GIB)
    assert gpu.kv_element_bytes["fp8"] == 1
    assert gpu.kv_element_bytes["auto"] == 2
    assert dict(cpu.kv_element_bytes) == {"auto": 2}
