"""Writing children on a real API server: created once, applied later, never adopted."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from clusters.controlplane import ControlPlane
from stoker.api.inferenceservice import API_VERSION
from stoker.kube.apply import ChildWriter, Result
from stoker.kube.cache import Cache
from stoker.kube.client import Client
from stoker.kube.config import load_configuration
from stoker.kube.errors import Conflict, NotFound
from stoker.kube.expectations import Expectations
from stoker.kube.ledger import Ledger
from stoker.kube.resources import CHILDREN, INFERENCE_SERVICE
from stoker.kube.snapshot import Owner
from stoker.kube.views import CHILD_MANAGER
from stoker.render.children import Rollout, render_children
from stoker.render.identity import ServiceIdentity
from stoker.render.labels import APPLIED_HASH, pod_labels
from stoker.render.meta import with_applied_hash
from tests.builders.cluster import install_crd
from tests.builders.specs import a_spec

KINDS = tuple(kind for kind in CHILDREN if kind != "ControllerRevision")


@dataclass
class Api:
    """A client that counts what it sends."""

    client: Client
    calls: list[str] = field(default_factory=list)

    def observe(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """Note a call."""
        self.calls.append(f"{verb} {resource} {code}")

    def writes(self) -> list[str]:
        """Return the calls that were no reads, and forget all. A hand-over that met a status write is tried again."""
        found = [call for call in self.calls if not call.startswith(("get", "list")) and not call.endswith(" 409")]
        self.calls.clear()
        return found


@pytest.fixture
async def api(control_plane: ControlPlane) -> AsyncIterator[Api]:
    configuration = await load_configuration(str(control_plane.kubeconfig))
    found = Api(Client(configuration))
    found.client = Client(configuration, observer=found.observe)
    yield found
    await found.client.close()


@dataclass
class Bench:
    """One service with its own writer and an empty cache, as after a start of the operator."""

    api: Api
    namespace: str
    owner: Owner

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget everything."""
        self.cache = Cache(KINDS)
        self.writer = ChildWriter(self.api.client, self.cache, Ledger(self.cache, Expectations(), lambda: 0.0))

    def children(self, replicas: int = 2, **template: Any) -> list[dict[str, Any]]:
        """Render children by the real builders, around a small template."""
        identity = ServiceIdentity(self.namespace, self.owner.name, self.owner.uid)
        return render_children(identity, Rollout("vllm", a_template(self.owner.name, **template), replicas, "Surge"))

    def child(self, kind: str, **more: Any) -> dict[str, Any]:
        """Render one child."""
        return next(child for child in self.children(**more) if child["kind"] == kind)

    async def stored(self, kind: str) -> dict[str, Any]:
        """Read the child of a kind."""
        name = self.child(kind)["metadata"]["name"]
        return await self.api.client.get(CHILDREN[kind], self.namespace, name)

    async def watch(self) -> None:
        """Fill the cache as the watch streams would."""
        for kind in KINDS:
            async for page in self.api.client.pages(CHILDREN[kind], self.namespace):
                for raw in page:
                    self.cache.put(kind, raw)


def a_template(
    name: str, args: tuple[str, ...] = ("serve", "model"), env: dict[str, str] | None = None
) -> dict[str, Any]:
    engine: dict[str, Any] = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.32.0",
        "args": list(args),
        "ports": [{"containerPort": 8000, "name": "http"}],
        "startupProbe": {"httpGet": {"path": "/startup", "port": 9090}, "periodSeconds": 5, "failureThreshold": 60},
        "volumeMounts": [{"name": "cache", "mountPath": "/cache", "readOnly": False}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    if env:
        engine["env"] = [{"name": key, "value": value} for key, value in env.items()]
    security = {"runAsNonRoot": True, "runAsUser": 2000, "seccompProfile": {"type": "RuntimeDefault"}}
    return {
        "metadata": {"labels": pod_labels(name, "vllm", "r1", None)},
        "spec": {
            "containers": [engine],
            "volumes": [{"name": "cache", "emptyDir": {}}],
            "securityContext": security,
            "enableServiceLinks": False,
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        },
    }


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    install_crd(control_plane)
    yield control_plane


@pytest.fixture
async def bench(plane: ControlPlane, api: Api, namespace: str) -> Bench:
    body = a_spec().manifest("chat", namespace)
    service = await api.client.create(INFERENCE_SERVICE, namespace, body, "test")
    assert service["apiVersion"] == API_VERSION
    api.writes()
    return Bench(api, namespace, Owner(service["metadata"]["uid"], "chat"))


async def ensure_all(bench: Bench, children: list[dict[str, Any]]) -> dict[str, str]:
    return {child["kind"]: (await bench.writer.ensure(child, bench.owner)).result for child in children}


async def test_children_are_created_and_then_not_sent_again(bench: Bench) -> None:
    children = bench.children()
    assert set((await ensure_all(bench, children)).values()) == {Result.CREATED}
    assert sorted(bench.api.writes()) == sorted(f"create {CHILDREN[child['kind']].plural} 201" for child in children)
    assert set((await ensure_all(bench, children)).values()) == {Result.UNCHANGED}
    assert bench.api.calls == []


async def test_N2_after_a_restart_nothing_is_written(bench: Bench) -> None:
    await ensure_all(bench, bench.children())
    bench.restart()
    await bench.watch()
    bench.api.writes()
    assert set((await ensure_all(bench, bench.children())).values()) == {Result.UNCHANGED}
    assert bench.api.calls == []


async def test_N22_the_race_a_child_that_stands_and_is_ours_is_met_not_made_twice(bench: Bench) -> None:
    await ensure_all(bench, bench.children())
    bench.restart()  # a cache that does not show the children yet
    assert set((await ensure_all(bench, bench.children())).values()) == {Result.UNCHANGED}


async def test_a_field_removed_after_a_create_disappears(bench: Bench) -> None:
    await ensure_all(bench, bench.children(env={"A": "1", "B": "2"}))
    bench.api.writes()
    assert (await bench.writer.ensure(bench.child("Deployment", env={"A": "1"}), bench.owner)).result is Result.APPLIED
    engine = (await bench.stored("Deployment"))["spec"]["template"]["spec"]["containers"][0]
    assert [variable["name"] for variable in engine["env"]] == ["A"]
    assert bench.api.writes() == ["patch deployments 200", "apply deployments 200"]


async def test_the_ownership_is_handed_over_once(bench: Bench) -> None:
    await ensure_all(bench, bench.children())
    bench.api.writes()
    for args in (("one",), ("two",)):
        await bench.writer.ensure(bench.child("Deployment", args=args), bench.owner)
    assert bench.api.writes() == ["patch deployments 200", "apply deployments 200", "apply deployments 200"]
    managed = (await bench.stored("Deployment"))["metadata"]["managedFields"]
    assert [(entry["manager"], entry["operation"]) for entry in managed if entry["manager"] == "stoker"] == [
        ("stoker", "Apply")
    ]


async def test_a_strategy_that_changes_leaves_nothing_of_the_old_one(bench: Bench) -> None:
    await ensure_all(bench, bench.children())
    identity = ServiceIdentity(bench.namespace, "chat", bench.owner.uid)
    children = render_children(identity, Rollout("vllm", a_template("chat"), 2, "Recreate"))
    deployment = next(child for child in children if child["kind"] == "Deployment")
    assert (await bench.writer.ensure(deployment, bench.owner)).result is Result.APPLIED
    assert (await bench.stored("Deployment"))["spec"]["strategy"] == {"type": "Recreate"}


SABOTAGE: dict[str, Callable[[str], list[str]]] = {
    "a value is changed": lambda name: ["patch", "deployment", name, "-p", '{"spec":{"replicas":5}}'],
    "a label is removed": lambda name: ["label", "deployment", name, "app.kubernetes.io/name-"],
    "an argument is added": lambda name: [
        "patch", "deployment", name, "--type=json", "-p",
        '[{"op":"add","path":"/spec/template/spec/containers/0/args/0","value":"--evil"}]',
    ],
    "a zero is set": lambda name: [
        "patch", "deployment", name, "-p",
        '{"spec":{"template":{"spec":{"containers":[{"name":"engine","volumeMounts":[{"mountPath":"/cache","name":"cache","readOnly":true}]}]}}}}',
    ],
}  # fmt: skip


@pytest.mark.parametrize("how", SABOTAGE)
@pytest.mark.parametrize("applied_before", [False, True], ids=["after a create", "after an apply"])
async def test_a_sabotaged_child_is_healed(plane: ControlPlane, bench: Bench, how: str, applied_before: bool) -> None:
    await ensure_all(bench, bench.children(args=("first",)))
    args = ("second",) if applied_before else ("first",)
    await ensure_all(bench, bench.children(args=args))
    before = await bench.stored("Deployment")
    plane.kubectl(*SABOTAGE[how]("chat"), f"--namespace={bench.namespace}")
    await bench.watch()
    assert (await bench.writer.ensure(bench.child("Deployment", args=args), bench.owner)).result is Result.APPLIED
    after = await bench.stored("Deployment")
    assert after["spec"] == before["spec"]
    assert after["metadata"]["labels"] == before["metadata"]["labels"]


async def test_list_items_that_others_put_in_the_place_of_ours_are_replaced(plane: ControlPlane, bench: Bench) -> None:
    await ensure_all(bench, bench.children())
    patch = '[{"op":"replace","path":"/spec/ports/0/port","value":1}]'
    plane.kubectl("patch", "service", "chat", "--type=json", "-p", patch, f"--namespace={bench.namespace}")
    await bench.watch()
    assert (await bench.writer.ensure(bench.child("Service"), bench.owner)).result is Result.APPLIED
    assert [port["port"] for port in (await bench.stored("Service"))["spec"]["ports"]] == [8000]
    assert (await bench.writer.ensure(bench.child("Service"), bench.owner)).result is Result.UNCHANGED


async def test_what_others_add_beside_ours_is_left_alone(plane: ControlPlane, bench: Bench) -> None:
    await ensure_all(bench, bench.children())
    plane.kubectl("annotate", "deployment", "chat", "team=blue", f"--namespace={bench.namespace}")
    await bench.watch()
    bench.api.writes()
    assert (await bench.writer.ensure(bench.child("Deployment"), bench.owner)).result is Result.UNCHANGED
    assert bench.api.writes() == []
    assert (await bench.stored("Deployment"))["metadata"]["annotations"]["team"] == "blue"


@pytest.mark.parametrize("kind", KINDS)
async def test_N22_a_foreign_object_of_each_kind_is_reported_and_not_written(bench: Bench, kind: str) -> None:
    foreign = copy.deepcopy(bench.child(kind))
    foreign["metadata"] = {"name": foreign["metadata"]["name"], "namespace": bench.namespace}
    stored = await bench.api.client.create(CHILDREN[kind], bench.namespace, foreign, "somebody")
    bench.api.writes()
    outcome = await bench.writer.ensure(bench.child(kind), bench.owner)
    assert (outcome.result, outcome.foreign and outcome.foreign.uid) == (Result.FOREIGN, stored["metadata"]["uid"])
    assert bench.api.writes() == []
    after = await bench.stored(kind)
    assert APPLIED_HASH not in (after["metadata"].get("annotations") or {})
    assert [entry["manager"] for entry in after["metadata"].get("managedFields") or ()].count("stoker") == 0


async def replaced_service(bench: Bench, manager: str) -> dict[str, Any]:
    """Have somebody replace our Service by his own; returns that one as it is stored."""
    old = await bench.stored("Service")
    await bench.api.client.delete(CHILDREN["Service"], bench.namespace, "chat", uid=old["metadata"]["uid"])
    foreign = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "chat"}, "spec": {"ports": [{"port": 1}]}}
    await bench.api.client.create(CHILDREN["Service"], bench.namespace, foreign, manager)
    return await bench.stored("Service")


def changed_service(bench: Bench) -> dict[str, Any]:
    changed = copy.deepcopy(bench.child("Service"))
    changed["spec"]["ports"][0]["port"] = 9999
    return with_applied_hash(changed)


@pytest.mark.parametrize("manager", ["somebody", CHILD_MANAGER])
async def test_N22_an_object_that_was_replaced_between_look_and_write_is_not_written(
    bench: Bench, manager: str
) -> None:
    """Whatever name its maker writes under: one that looks like ours is not ours."""
    await ensure_all(bench, bench.children())
    foreign = await replaced_service(bench, manager)
    assert (await bench.writer.ensure(changed_service(bench), bench.owner)).result is Result.STALE
    assert await bench.stored("Service") == foreign


async def test_N22_an_object_that_is_replaced_while_its_ownership_is_handed_over_is_not_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ensure_all(bench, bench.children())
    read, foreign = bench.api.client.get, {}

    async def replaced_after_the_first_read(*args: Any) -> dict[str, Any]:
        raw = await read(*args)
        monkeypatch.undo()
        foreign.update(await replaced_service(bench, CHILD_MANAGER))
        return raw

    monkeypatch.setattr(bench.api.client, "get", replaced_after_the_first_read)
    assert (await bench.writer.ensure(changed_service(bench), bench.owner)).result is Result.STALE
    assert await bench.stored("Service") == foreign


async def test_N22_an_apply_does_not_create_what_was_deleted(bench: Bench) -> None:
    await ensure_all(bench, bench.children())
    old = await bench.stored("ServiceAccount")
    manifest = bench.child("ServiceAccount")
    await bench.api.client.delete(
        CHILDREN["ServiceAccount"], bench.namespace, manifest["metadata"]["name"], uid=old["metadata"]["uid"]
    )
    body = {**manifest, "metadata": {**manifest["metadata"], "uid": old["metadata"]["uid"]}}
    with pytest.raises(Conflict):
        await bench.api.client.apply(CHILDREN["ServiceAccount"], bench.namespace, body, "stoker")
    with pytest.raises(NotFound):
        await bench.stored("ServiceAccount")


async def test_what_an_earlier_service_of_that_name_left_is_on_its_way_out_not_foreign(bench: Bench) -> None:
    children = bench.children()
    await ensure_all(bench, children)
    bench.owner = Owner("00000000-0000-0000-0000-000000000000", "chat")
    assert (await bench.writer.ensure(bench.child("Service"), bench.owner)).result is Result.TERMINATING


async def test_a_deletion_meant_for_one_object_does_not_hit_its_successor(bench: Bench) -> None:
    await ensure_all(bench, bench.children())
    ref = bench.cache.children["Service"].of(bench.owner.uid)[0].ref
    await bench.api.client.delete(CHILDREN["Service"], bench.namespace, "chat", uid=ref.uid)
    bench.restart()
    await bench.writer.ensure(bench.child("Service"), bench.owner)
    await bench.writer.delete(ref)
    assert (await bench.stored("Service"))["metadata"]["uid"] != ref.uid


async def test_N22_a_status_that_was_computed_for_an_older_version_is_refused(bench: Bench) -> None:
    service = await bench.api.client.get(INFERENCE_SERVICE, bench.namespace, "chat")
    newer = copy.deepcopy(service)
    newer["spec"]["replicas"] = 3
    await bench.api.client.update(INFERENCE_SERVICE, bench.namespace, newer, "test")
    service["status"] = {"observedGeneration": 1}
    with pytest.raises(Conflict):
        await bench.api.client.update(
            INFERENCE_SERVICE, bench.namespace, service, "stoker-status", subresource="status"
        )
    stored = await bench.api.client.get(INFERENCE_SERVICE, bench.namespace, "chat")
    assert stored.get("status", {}).get("observedGeneration") != 1


async def test_N3_a_status_write_leaves_the_spec_alone(bench: Bench) -> None:
    service = await bench.api.client.get(INFERENCE_SERVICE, bench.namespace, "chat")
    body = {
        "apiVersion": service["apiVersion"],
        "kind": service["kind"],
        "metadata": {key: service["metadata"][key] for key in ("name", "namespace", "resourceVersion")},
        "spec": {**service["spec"], "replicas": 7},
        "status": {"observedGeneration": 1, "replicas": 0, "selector": "a=b"},
    }
    after = await bench.api.client.update(
        INFERENCE_SERVICE, bench.namespace, body, "stoker-status", subresource="status"
    )
    assert after["spec"] == service["spec"]
    assert after["status"]["observedGeneration"] == 1
    assert after["metadata"]["generation"] == service["metadata"]["generation"]
