"""Faults that other systems of this field shipped, each by the number under which it was reported: what is rendered."""

from typing import Any

import pytest

from stoker.plan.snapshot import NodeView, Snapshot
from stoker.plan.types import Verdict
from stoker.reconcile.first_apply import first_apply
from stoker.reconcile.planning import Plan, make_plan
from stoker.reconcile.settings import Settings
from tests.builders.specs import H100, LLAMA_8B, SpecBuilder, a_spec
from tests.builders.views import a_node

GGUF_ON_HUB = "hf://bartowski/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct-Q8_0.gguf"
EVERY_VERSION = ("0.12.0", "0.18.0", "0.25.0", "0.32.0", "0.33.0")


def plan_of(spec: SpecBuilder, *nodes: NodeView) -> tuple[Plan, Snapshot]:
    snapshot = Snapshot(service=spec.manifest(), now="1970-01-01T00:00:00Z", nodes=nodes)
    return make_plan(spec.build(), snapshot), snapshot


def children(spec: SpecBuilder, *nodes: NodeView) -> dict[str, dict[str, Any]]:
    plan, snapshot = plan_of(spec, *nodes)
    assert plan.faults == (), plan.faults
    return {child["kind"]: child for child in first_apply(plan, snapshot, Settings())}


def pod_of(spec: SpecBuilder, *nodes: NodeView) -> dict[str, Any]:
    found: dict[str, Any] = children(spec, *nodes)["Deployment"]["spec"]["template"]["spec"]
    return found


def environment(spec: SpecBuilder) -> dict[str, Any]:
    (engine,) = pod_of(spec)["containers"]
    names = [variable["name"] for variable in engine["env"]]
    assert len(names) == len(set(names))
    return {variable["name"]: variable.get("value") for variable in engine["env"]}


# ---- environment ---------------------------------------------------------------------------------------------------
MIRROR = {
    "HF_ENDPOINT": "https://mirror.example.com",
    "HTTPS_PROXY": "http://proxy.example.com:3128",
    "HTTP_PROXY": "http://proxy.example.com:3128",
    "https_proxy": "http://proxy.example.com:3128",
    "NO_PROXY": "10.0.0.0/8,.svc",
    "HF_HUB_DISABLE_XET": "1",
    "REQUESTS_CA_BUNDLE": "/etc/certs/ca.pem",
}


@pytest.mark.parametrize("spec", [a_spec().on(H100), a_spec().llama_cpp(source=GGUF_ON_HUB).on_cpu()])
def test_kserve_5326_a_mirror_and_a_proxy_reach_the_engine_alone(spec: SpecBuilder) -> None:
    proxied = spec.set("pod.env", [{"name": name, "value": value} for name, value in MIRROR.items()])
    found = environment(proxied)
    assert {name: found.get(name) for name in MIRROR} == MIRROR
    assert "HF_HUB_OFFLINE" not in found
    (agent,) = pod_of(proxied)["initContainers"]
    assert not {variable["name"] for variable in agent["env"]} & set(MIRROR)


def test_kserve_5326_a_proxy_of_any_address_and_port_is_let_out() -> None:
    policy = children(a_spec().on(H100))["NetworkPolicy"]["spec"]
    assert any("ports" not in rule and {"namespaceSelector": {}} in rule["to"] for rule in policy["egress"])
    assert any(
        block.get("ipBlock", {}).get("cidr") == "0.0.0.0/0" for rule in policy["egress"] for block in rule.get("to", ())
    )


@pytest.mark.parametrize("version", EVERY_VERSION)
@pytest.mark.parametrize(
    "args",
    [
        ["--kv-transfer-config", '{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}'],
        ["--kv_transfer_config.kv_connector", "LMCacheConnectorV1"],
        ["--kv-events-config", '{"enable_kv_cache_events":true}'],
    ],
)
def test_vllm_51875_hashes_that_leave_the_pod_are_those_of_every_pod(version: str, args: list[str]) -> None:
    spec = a_spec().vllm(version).on(H100).max_length(8192).set("engine.args", args)
    assert environment(spec)["PYTHONHASHSEED"] == "0"
    own = spec.set("pod.env", [{"name": "PYTHONHASHSEED", "value": "7"}])
    assert environment(own)["PYTHONHASHSEED"] == "7"


def test_vllm_51875_hashes_that_stay_in_the_pod_stay_random() -> None:
    """A known seed lets a caller choose keys that collide, and buys nothing where nobody compares hashes."""
    assert "PYTHONHASHSEED" not in environment(a_spec().on(H100))


# ---- combinations that are known to be bad ------------------------------------------------------------------------
def refused(spec: SpecBuilder) -> list[str]:
    return [f"{fault.path} {fault.reason}: {fault.problem}; {fault.remedy}" for fault in plan_of(spec)[0].faults]


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_kaito_2121_more_than_three_stages_run_where_no_ray_is(version: str) -> None:
    staged = a_spec().vllm(version).on(H100).pipeline(4).max_length(8192)
    assert refused(staged) == []
    (ray,) = refused(staged.set("engine.args", ["--distributed-executor-backend", "ray"]))
    assert ray.startswith("spec.engine.args[0] OwnedArgument")


@pytest.mark.parametrize(
    ("version", "known_bad"), [("0.12.0", True), ("0.13.0", False), ("0.20.0", False), ("0.32.0", False)]
)
def test_kaito_2121_what_a_version_ends_with_is_refused_by_its_name(version: str, known_bad: bool) -> None:
    staged = a_spec().vllm(version).on(H100).pipeline(2).max_length(8192).set("engine.args", ["--async-scheduling"])
    told = refused(staged)
    assert bool(told) is known_bad
    if known_bad:
        assert told[0].startswith("spec.engine.args[0] KnownBadCombination: ")
        assert "vLLM 0.12.0" in told[0]
        assert "spec.parallelism.pipeline" in told[0]


@pytest.mark.parametrize("version", [*EVERY_VERSION, None])
@pytest.mark.parametrize("args", [["--async-scheduling"], ["--async_scheduling"], ["--async-sched"]])
def test_kaito_2279_drafts_by_lookup_beside_asynchronous_scheduling_are_refused(
    version: str | None, args: list[str]
) -> None:
    spec = a_spec().vllm(version).on(H100).max_length(8192).set("engine.args", args)
    spec = spec if version else spec.set("engine.image", "example.com/vllm:nightly")
    assert refused(spec) == []
    (told,) = refused(spec.set("speculation", {"method": "ngram", "tokens": 4}))
    assert "KnownBadCombination" in told
    assert "spec.speculation" in told
    off = spec.set("speculation", {"method": "ngram", "tokens": 4}).set("engine.args", ["--no-async-scheduling"])
    assert refused(off) == []


@pytest.mark.parametrize(
    ("version", "pipeline", "args", "known_bad"),
    [
        ("0.17.0", 2, ["--kv-offloading-size", "8"], True),
        ("0.31.0", 4, ["--kv_offloading_size=8"], True),
        ("0.17.0", 2, ["--kv-transfer-config", '{"kv_connector":"OffloadingConnector"}'], True),
        ("0.17.0", 2, ["--kv-transfer-config.kv_connector", "LMCacheConnectorV1"], True),
        ("0.17.0", 2, ["--kv-transfer-config", '{"kv_connector":"NixlConnector"}'], False),
        ("0.17.0", 2, ["--kv-offloading-size", "0"], False),
        ("0.17.0", 1, ["--kv-offloading-size", "8"], False),
        ("0.32.0", 2, ["--kv-offloading-size", "8"], False),
        ("0.17.0", 2, ["--cpu-offload-gb", "8"], False),
    ],
)
def test_kaito_1911_a_cache_that_leaves_the_gpus_of_several_stages_is_refused(
    version: str, pipeline: int, args: list[str], known_bad: bool
) -> None:
    told = refused(a_spec().vllm(version).on(H100).pipeline(pipeline).max_length(8192).set("engine.args", args))
    assert bool(told) is known_bad
    if known_bad:
        assert told[0].startswith("spec.engine.args[0] KnownBadCombination: ")
        assert f"vLLM {version}" in told[0]


@pytest.mark.parametrize("args", [["--data-parallel-size", "2", "--kv-offloading-size", "8"], ["-dp", "2"]])
def test_kaito_1911_several_engines_in_one_pod_are_refused_with_or_without_offloading(args: list[str]) -> None:
    assert any("OwnedArgument" in told for told in refused(a_spec().on(H100).max_length(8192).set("engine.args", args)))


# ---- explicit parallelism ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("tensor", "pipeline"), [(1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (1, 3)])
@pytest.mark.parametrize("model", [LLAMA_8B, "hf://acme/novel"])
def test_kaito_1956_the_stated_parallelism_is_what_runs(model: str, tensor: int, pipeline: int) -> None:
    """Neither a model that would fit one GPU nor one that nobody knows changes what the spec says."""
    spec = a_spec().model(model).on(H100).tensor(tensor).pipeline(pipeline).max_length(4096)
    (engine,) = pod_of(spec, a_node(gpus=8))["containers"]
    assert engine["resources"]["limits"]["nvidia.com/gpu"] == str(tensor * pipeline)
    args = engine["args"]
    assert args[args.index("--tensor-parallel-size") + 1] == str(tensor)
    assert args[args.index("--pipeline-parallel-size") + 1] == str(pipeline)


def test_kaito_1956_a_stated_parallelism_that_is_too_small_is_told_and_never_raised() -> None:
    plan, _ = plan_of(a_spec().model("hf://meta-llama/Llama-3.1-70B-Instruct").on(H100).tensor(1).max_length(4096))
    assert (plan.layout.verdict, plan.layout.gpus_per_pod) == (Verdict.TOO_SMALL, 1)
    (fault,) = plan.faults
    assert (fault.reason, "spec.parallelism.tensor 2" in fault.remedy) == ("DoesNotFit", True)


# ---- what else was reported ----------------------------------------------------------------------------------------
def test_vllm_34199_no_service_of_the_namespace_reaches_the_environment() -> None:
    assert pod_of(a_spec().on(H100))["enableServiceLinks"] is False


def test_nim_177_no_runtime_class_unless_asked_for() -> None:
    assert "runtimeClassName" not in pod_of(a_spec().on(H100))
    assert pod_of(a_spec().on(H100).set("pod.runtimeClassName", "nvidia"))["runtimeClassName"] == "nvidia"


def test_llm_d_model_service_72_no_label_holds_what_a_user_wrote_of_the_model() -> None:
    spec = a_spec().on(H100).set("model.names", ["meta-llama/Llama-3.1:8b"])
    for child in children(spec).values():
        labels = [
            child["metadata"]["labels"],
            child.get("spec", {}).get("template", {}).get("metadata", {}).get("labels", {}),
        ]
        assert not any("llama" in value.lower() for found in labels for value in found.values())


def test_ome_391_labels_and_annotations_of_the_pod_stay_with_the_pod() -> None:
    spec = a_spec().on(H100).set("pod.annotations", {"a.example.com/x": "1"}).set("pod.labels", {"team": "a"})
    for kind, child in children(spec).items():
        assert "a.example.com/x" not in child["metadata"].get("annotations", {}), kind
        assert "team" not in child["metadata"]["labels"], kind
    assert children(spec)["Deployment"]["spec"]["template"]["metadata"]["annotations"]["a.example.com/x"] == "1"


def test_kaito_1838_memory_is_of_one_gpu_however_many_the_node_has() -> None:
    spec = a_spec().on(H100).max_length(8192)
    one, eight = (plan_of(spec, a_node(gpus=count))[0].layout for count in (1, 8))
    assert one.ranks == eight.ranks


def test_production_stack_899_shared_memory_is_in_the_limit_of_the_container() -> None:
    layout = plan_of(a_spec().on(H100).tensor(4).max_length(8192))[0].layout
    pod = pod_of(a_spec().on(H100).tensor(4).max_length(8192))
    (shm,) = [volume for volume in pod["volumes"] if volume.get("emptyDir", {}).get("medium") == "Memory"]
    assert shm["emptyDir"]["sizeLimit"] == f"{layout.shm_bytes // 2**30}Gi"
    assert layout.memory_request_bytes >= layout.shm_bytes + 8 * 2**30
