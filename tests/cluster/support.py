"""A control plane with nodes and two replicas of the operator, and what tests ask of it.

The operator runs as real processes, under the ServiceAccount and the roles of the plain manifest. Tests share it: each
keeps to a namespace of its own.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clusters.controlplane import ControlPlane
from clusters.documents import load_all
from clusters.ports import free_ports
from stoker.kube.client import Client, Selection
from stoker.kube.errors import NotFound
from stoker.kube.permissions import LEASE_NAME
from stoker.kube.resources import CHILDREN, INFERENCE_SERVICE, LEASE, POD, SERVICE_ACCOUNT, Resource
from stoker.render.names import child_name, service_account_name
from tests.builders.nodes import NodeBuilder, node

ROOT = Path(__file__).parents[2]
MANIFEST = ROOT / "install" / "stoker.yaml"
SYSTEM = "stoker-system"
USER = f"system:serviceaccount:{SYSTEM}:stoker-operator"
RIGHTS = {"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}
READS = {"get", "list", "watch"}
WAIT_SECONDS = 60.0
HEALTH_PORTS = dict(zip(("operator-0", "operator-1"), free_ports(2), strict=True))

Json = dict[str, Any]


def rights() -> list[Json]:
    """Return what the plain manifest grants the operator, its namespace and ServiceAccount included."""
    return [each for each in load_all(MANIFEST.read_text()) if each["kind"] in RIGHTS]


@dataclass
class Audit:
    """The audit log, from a moment on."""

    path: Path
    offset: int = 0

    def events(self) -> list[Json]:
        """Return the requests since that moment."""
        with self.path.open("rb") as log:
            log.seek(self.offset)
            return [json.loads(line) for line in log if line.endswith(b"\n")]

    def writes(self, user: str = USER) -> list[str]:
        """Return what a user has written since: verb, resource, namespace/name. Its Lease is left out."""
        return [
            _words(event)
            for event in self.events()
            if event["user"]["username"] == user and event["verb"] not in READS and _counts(event)
        ]

    def all_writes(self) -> list[str]:
        """Return what anybody has written since."""
        return [_words(event) for event in self.events() if event["verb"] not in READS]


def _counts(event: Json) -> bool:
    return (event.get("objectRef") or {}).get("resource") not in ("leases", "selfsubjectaccessreviews", None)


def _words(event: Json) -> str:
    ref = event.get("objectRef") or {}
    kind = "/".join(part for part in (ref.get("resource"), ref.get("subresource")) if part)
    return f"{event['verb']} {kind} {ref.get('namespace')}/{ref.get('name')}"


@dataclass
class Stage:
    """The control plane, the operator's replicas, and an administrator's client."""

    plane: ControlPlane
    client: Client
    settings: dict[str, str] = field(default_factory=dict)

    # ---- the operator -----------------------------------------------------------------------------------------------

    def start_operator(self, *names: str, **settings: str) -> None:
        """Start replicas of the operator; ``settings`` are STOKER_* variables without that beginning."""
        self.settings = {**self.settings, **settings}
        for name in names or HEALTH_PORTS:
            self.start_replica(name, **self.settings)

    def start_replica(self, name: str, **settings: str) -> None:
        """Start one more replica of the operator, with settings that are its own."""
        environment = {
            "PYTHONPATH": str(ROOT / "operator"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "POD_NAME": name,
            "STOKER_KUBECONFIG": str(self.plane.kubeconfig_for(USER)),
            "STOKER_LEASE_NAMESPACE": SYSTEM,
            "STOKER_HEALTH_PORT": str(HEALTH_PORTS.get(name, 0)),
            "STOKER_METRICS_PORT": "0",
            **{f"STOKER_{key.upper()}": value for key, value in settings.items()},
        }
        self.plane.processes.spawn(name, [sys.executable, "-m", "stoker", "operator"], environment)

    def stop_operator(self, *names: str) -> None:
        """Stop replicas politely."""
        self.plane.processes.stop(*(names or HEALTH_PORTS), grace_seconds=20)

    def operator_log(self, name: str = "operator-0") -> list[Json]:
        """Return what a replica has logged."""
        lines = self.plane.processes.log(name).read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    async def leader(self) -> str:
        """Wait for a leader and return its name."""
        found = ""

        async def leads() -> bool:
            nonlocal found
            lease = await self.get(LEASE, SYSTEM, LEASE_NAME) or {"spec": {}}
            found = (lease["spec"].get("holderIdentity") or "").rsplit("-", 1)[0]
            return found in HEALTH_PORTS and self.plane.processes.is_running(found)

        await until(leads, "a leader that lives")
        return found

    def audit(self) -> Audit:
        """Return the audit log from now on."""
        return Audit(self.plane.audit_log, self.plane.audit_log.stat().st_size)

    # ---- objects ----------------------------------------------------------------------------------------------------

    async def create(self, manifest: Mapping[str, Any]) -> Json:
        """Create an InferenceService as a user would."""
        return await self.client.create(INFERENCE_SERVICE, manifest["metadata"]["namespace"], manifest, "a-user")

    async def change(self, namespace: str, name: str, **spec: Any) -> Json:
        """Change fields of a spec, as a merge patch does: None removes a field."""
        return await self.client.merge_patch(INFERENCE_SERVICE, namespace, name, {"spec": spec}, "a-user")

    async def service(self, namespace: str, name: str = "chat") -> Json:
        """Read an InferenceService."""
        return await self.client.get(INFERENCE_SERVICE, namespace, name)

    async def get(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """Read any object; None when it is not there."""
        try:
            return await self.client.get(resource, namespace, name)
        except NotFound:
            return None

    async def child(self, kind: str, namespace: str, name: str = "chat") -> Json | None:
        """Read the child of a kind."""
        resource = CHILDREN[kind]
        called = service_account_name(name) if resource is SERVICE_ACCOUNT else child_name(name)
        return await self.get(resource, namespace, called)

    async def every(self, resource: Resource, namespace: str, labels: str = "") -> list[Json]:
        """Read all objects of a kind."""
        pages = self.client.pages(resource, namespace, Selection(labels=labels))
        return [raw async for page in pages for raw in page]

    async def pods(self, namespace: str, name: str = "chat") -> list[Json]:
        """Read the pods of a service."""
        return await self.every(POD, namespace, f"serving.stoker.dev/service={name}")

    async def condition(self, namespace: str, type_: str, name: str = "chat") -> Json:
        """Read one condition; empty where it is not there."""
        return condition_of(await self.service(namespace, name), type_)

    # ---- waiting ----------------------------------------------------------------------------------------------------

    async def until_condition(
        self, namespace: str, type_: str, status: str, reason: str | None = None, name: str = "chat"
    ) -> Json:
        """Wait until a condition of the present generation has a status (and reason); returns the condition."""

        async def holds() -> bool:
            service = await self.service(namespace, name)
            found = condition_of(service, type_)
            current = found.get("observedGeneration") == service["metadata"]["generation"]
            return current and found.get("status") == status and reason in (None, found.get("reason"))

        async def why() -> str:
            return json.dumps((await self.service(namespace, name)).get("status"), indent=1)

        await until(holds, f"{name}: {type_}={status}/{reason or '*'}", explain=why)
        return await self.condition(namespace, type_, name)

    async def until_ready(self, namespace: str, *names: str) -> None:
        """Wait until services are Ready."""
        for name in names or ("chat",):
            await self.until_condition(namespace, "Ready", "True", name=name)

    async def until_quiet(self, seconds: float, namespace: str) -> None:
        """Wait until the operator has written nothing in a namespace for a while."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            audit = self.audit()
            await asyncio.sleep(seconds)
            written = [write for write in audit.writes() if f" {namespace}/" in write]
            if not written:
                return
            assert time.monotonic() < deadline, written[-20:]


def condition_of(service: Mapping[str, Any], type_: str) -> Json:
    """Return one condition of a service; empty where it is not there."""
    conditions: Iterable[Json] = (service.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == type_), {})


async def until(
    holds: Callable[[], Awaitable[bool]],
    what: str,
    seconds: float = WAIT_SECONDS,
    explain: Callable[[], Awaitable[str]] | None = None,
) -> None:
    """Wait until something holds. Fails with what was waited for, and an explanation."""
    deadline = time.monotonic() + seconds
    while not await holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {what}\n{await explain() if explain else ''}")
        await asyncio.sleep(0.2)


def gpu_nodes() -> list[NodeBuilder]:
    """Return the nodes that all tests share: room enough for everybody."""
    return [node(f"shared-{index}", cpu="1000", memory="20Ti", pods="500").gpus(100) for index in range(3)]


def create_node(plane: ControlPlane, builder: NodeBuilder) -> None:
    """Create a node with its status."""
    plane.kubectl("create", "-f", "-", stdin=json.dumps(builder.build()))


@contextmanager
def a_node(plane: ControlPlane, builder: NodeBuilder) -> Iterator[None]:
    """Have a node for as long as it is needed: what `accelerator: {}` means depends on all nodes."""
    create_node(plane, builder)
    try:
        yield
    finally:
        plane.kubectl("delete", "node", builder.name, "--wait=false")
