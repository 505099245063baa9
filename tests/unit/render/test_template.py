"""The pod template: what every engine pod must have."""

import json
from typing import Any

import pytest

from stoker.agent.config import AgentConfig
from stoker.engines.vllm import Vllm
from stoker.render.identity import ServiceIdentity
from stoker.render.timing import STOP_MARGIN
from tests.builders.layouts import GIB, a_layout, an_invocation
from tests.builders.specs import a_spec
from tests.builders.templates import CHAT, agent, agent_config, engine, pod, template

# ---- argv and environment (N11, N13) -------------------------------------------------------------------------------
HARD_ARGUMENTS = [
    '{"method":"ngram","num_speculative_tokens":4}',
    """{"a": "it's \\"quoted\\"", "b": "$(HOME) $HOME $$ $(( 1 + 1 ))"}""",
    "--flag=$(POD_IP)",
    "$",
    "$$",
    "a b\tc\nd",
    "*;rm -rf /;`id`",
    "ünïcode ☃",
    "",
]


def _as_kubernetes_expands(text: str, variables: dict[str, str]) -> str:
    """Kubernetes' own rule: `$$` is `$`, `$(NAME)` a known variable, everything else stands."""
    out, i = "", 0
    while i < len(text):
        rest = text[i + 1 :]
        if text[i] == "$" and rest[:1] == "$":
            out, i = out + "$", i + 2
        elif text[i] == "$" and rest[:1] == "(" and ")" in rest:
            name = rest[1 : rest.index(")")]
            out, i = out + variables.get(name, f"$({name})"), i + len(name) + 3
        else:
            out, i = out + text[i], i + 1
    return out


@pytest.mark.parametrize("argument", HARD_ARGUMENTS)
def test_N11_arguments_arrive_byte_for_byte(argument: str) -> None:
    container = engine(invocation=an_invocation("model", "--option", argument))
    variables = {"HOME": "/cache/home", "POD_IP": "10.0.0.7"}
    assert [_as_kubernetes_expands(word, variables) for word in container["args"]] == ["model", "--option", argument]


def test_N11_no_shell_stands_between_the_spec_and_the_engine() -> None:
    for container in (engine(), agent()):
        assert isinstance(container["command"], list)
        assert not any(word in {"sh", "bash", "-c"} for word in container["command"])


def test_N11_prompts_of_the_warm_up_arrive_byte_for_byte() -> None:
    spec = a_spec().set("warmup.prompts", HARD_ARGUMENTS[:-1])
    (variable,) = agent(spec)["env"]
    config = AgentConfig.parse(_as_kubernetes_expands(variable["value"], {"HOME": "/x"}))
    assert list(config.warmup.prompts) == HARD_ARGUMENTS[:-1]


def test_the_users_variable_takes_the_place_of_the_engines() -> None:
    spec = a_spec().set("pod.env", [{"name": "OMP_NUM_THREADS", "value": "8"}])
    env = engine(spec)["env"]
    assert [variable for variable in env if variable["name"] == "OMP_NUM_THREADS"] == [
        {"name": "OMP_NUM_THREADS", "value": "8"}
    ]
    assert len({variable["name"] for variable in env}) == len(env)


def test_secrets_reach_the_engine_by_reference_only() -> None:
    spec = a_spec().set("pod.env", [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}])
    env = {variable["name"]: variable for variable in engine(spec)["env"]}
    assert env["HF_TOKEN"] == {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "HF_TOKEN"}}}
    assert env["KEY"] == {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}


def test_the_users_variables_are_expanded_as_in_any_pod() -> None:
    spec = a_spec().set("pod.env", [{"name": "A", "value": "$(HOME)/a"}])
    assert {"name": "A", "value": "$(HOME)/a"} in engine(spec)["env"]


# ---- GPUs and memory (N12) -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("gpus", [1, 2, 8])
def test_N12_gpus_stand_on_the_engine_alone_with_equal_requests_and_limits(gpus: int) -> None:
    layout = a_layout(gpus)
    resources = engine(layout=layout)["resources"]
    assert resources["limits"]["nvidia.com/gpu"] == resources["requests"]["nvidia.com/gpu"] == str(gpus)
    assert "nvidia.com/gpu" not in json.dumps(agent(layout=layout)["resources"])


def test_a_cpu_engine_asks_for_no_gpu() -> None:
    assert "nvidia.com/gpu" not in json.dumps(template(a_spec().on_cpu(), a_layout(0)))


def test_memory_is_limited_to_what_is_requested_and_cpu_is_not_throttled() -> None:
    resources = engine(layout=a_layout(memory_request_bytes=24 * GIB, cpu_request_millicores=2500))["resources"]
    assert resources["requests"] == {"cpu": "2500m", "memory": "24Gi", "nvidia.com/gpu": "1"}
    assert resources["limits"] == {"memory": "24Gi", "nvidia.com/gpu": "1"}


def test_shared_memory_is_a_bounded_memory_volume() -> None:
    volumes = {volume["name"]: volume for volume in pod()["volumes"]}
    assert volumes["stoker-shm"] == {"name": "stoker-shm", "emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}}
    assert {"name": "stoker-shm", "mountPath": "/dev/shm"} in engine()["volumeMounts"]


def test_shared_memory_of_the_layout_is_mounted_even_where_the_engine_names_none() -> None:
    invocation = an_invocation(writable_paths=())
    assert {"name": "stoker-shm", "mountPath": "/dev/shm"} in engine(invocation=invocation)["volumeMounts"]
    none = a_layout(shm_bytes=0)
    assert not [m for m in engine(layout=none, invocation=invocation)["volumeMounts"] if m["mountPath"] == "/dev/shm"]


# ---- security ------------------------------------------------------------------------------------------------------
def test_the_pod_passes_pod_security_restricted() -> None:
    spec = pod()
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["securityContext"]["runAsUser"] != 0
    for container in (*spec["initContainers"], *spec["containers"]):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert context["readOnlyRootFilesystem"] is True
        assert not context.get("privileged")
    assert not {"hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"} & spec.keys()
    allowed = {"emptyDir", "persistentVolumeClaim"}
    assert all(set(volume) - {"name"} <= allowed for volume in spec["volumes"])


def test_no_token_and_no_service_links_reach_the_engine() -> None:
    spec = pod()
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    assert spec["serviceAccountName"] == "chat-engine"


def test_the_users_security_context_takes_effect_on_the_engine() -> None:
    spec = a_spec().set("pod.securityContext", {"runAsUser": 1234, "supplementalGroups": [7]})
    context = pod(spec)["securityContext"]
    assert context["runAsUser"] == 1234
    assert context["supplementalGroups"] == [7]
    assert context["runAsNonRoot"] is True
    assert "runAsUser" not in engine(spec)["securityContext"]
    assert agent(spec)["securityContext"]["runAsUser"] == 65532


def test_a_user_of_group_root_still_writes_its_volumes() -> None:
    assert pod(invocation=an_invocation(user_id=2000, group_id=0))["securityContext"]["fsGroup"] == 2000


# ---- probes, the end -----------------------------------------------------------------------------------------------
def test_the_agent_answers_for_the_engine() -> None:
    container = engine()
    for name, path in (("startupProbe", "/startup"), ("readinessProbe", "/readiness"), ("livenessProbe", "/liveness")):
        assert container[name]["httpGet"] == {"path": path, "port": 9090}
    hook = container["lifecycle"]["preStop"]["httpGet"]
    assert hook == {"path": f"/drain?token={CHAT.drain_token}", "port": 9090}
    assert CHAT.drain_token == agent_config().drain_token


@pytest.mark.parametrize("budget", [30, 899, 900, 5400])
def test_the_startup_probe_waits_for_the_whole_budget_and_little_more(budget: int) -> None:
    probe = engine(layout=a_layout(startup_budget_seconds=budget))["startupProbe"]
    assert budget <= probe["periodSeconds"] * probe["failureThreshold"] < budget + probe["periodSeconds"]


def test_a_failed_probe_does_not_drain_for_long() -> None:
    container = engine()
    assert container["startupProbe"]["terminationGracePeriodSeconds"] == 20
    assert container["livenessProbe"]["terminationGracePeriodSeconds"] == 20


def test_readiness_bears_15_s_of_silence_and_believes_a_no_within_10_s() -> None:
    probe = engine()["readinessProbe"]
    assert probe["failureThreshold"] * max(probe["timeoutSeconds"], probe["periodSeconds"]) >= 15
    assert probe["failureThreshold"] * probe["periodSeconds"] + 1 < 10


def test_liveness_bears_90_s_of_silence() -> None:
    probe = engine()["livenessProbe"]
    assert probe["failureThreshold"] * probe["periodSeconds"] >= 90


@pytest.mark.parametrize(("max_length", "answer"), [(512, 60), (8192, 409), (131072, 540), (None, 300)])
def test_N10_the_grace_period_holds_the_drain_and_the_stop(max_length: int | None, answer: int) -> None:
    layout = a_layout(max_length=max_length)
    config, grace = agent_config(layout=layout), pod(layout=layout)["terminationGracePeriodSeconds"]
    assert config.drain_budget_seconds == config.settle_seconds + answer
    assert grace == config.drain_budget_seconds + 30


def test_the_agent_is_a_native_sidecar_with_cpu_of_its_own() -> None:
    container = agent()
    assert container["restartPolicy"] == "Always"
    assert container["command"] == ["stoker", "agent"]
    assert container["image"] == "example.com/stoker:1"
    assert container["resources"]["requests"]["cpu"]
    assert container["livenessProbe"]["httpGet"]["path"] == "/agent/live"
    assert container["startupProbe"]["httpGet"]["path"] == "/agent/started"
    assert {"name": "stoker-agent", "mountPath": agent_config().state_dir} in container["volumeMounts"]


def test_the_agent_knows_what_is_served() -> None:
    assert agent_config().served_name == "chat"
    assert agent_config(a_spec().set("model.names", ["llama", "other"])).served_name == "llama"
    config = agent_config(invocation=an_invocation(longest_prefill_seconds=77, deaf_seconds=66, health_path="/healthz"))
    assert (config.longest_prefill_seconds, config.deaf_seconds, config.health_path) == (77, 66, "/healthz")
    assert config.metrics.running == "engine:running"


@pytest.mark.parametrize(
    ("warmup", "requests"), [(None, 1), ({"requests": 0}, 0), ({"requests": 100}, 100), ({"prompts": ["a", "b"]}, 2)]
)
def test_the_warm_up_is_the_users(warmup: dict[str, Any] | None, requests: int) -> None:
    config = agent_config(a_spec().set("warmup", warmup))
    assert config.warmup.requests == requests
    assert list(config.warmup.prompts) == (warmup or {}).get("prompts", [])


def test_the_drain_token_differs_between_services_and_not_between_reconciles() -> None:
    other = ServiceIdentity("team-a", "chat", "99999999-2222-3333-4444-555555555555")
    assert other.drain_token != CHAT.drain_token
    assert ServiceIdentity("team-a", "chat", CHAT.uid).drain_token == CHAT.drain_token


@pytest.mark.parametrize(("max_length", "deaf_seconds"), [(1, 70), (2047, 112), (8192, 120), (None, 120)])
def test_a_new_engine_is_not_held_until_it_is_killed(max_length: int | None, deaf_seconds: int) -> None:
    """SIGTERM comes after the hook, and must find enough of the grace period left."""
    layout = a_layout(max_length=max_length)
    invocation = Vllm().invocation(a_spec().build(), layout, "chat")
    assert agent_config(layout=layout, invocation=invocation).deaf_seconds == deaf_seconds
    assert deaf_seconds <= pod(layout=layout)["terminationGracePeriodSeconds"] - STOP_MARGIN
