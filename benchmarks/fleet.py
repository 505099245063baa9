"""A fleet of services, the bodies that it comes to, and the two ways to bring it about."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from clusters.controlplane import ControlPlane
from stoker.kube.client import Client, Selection
from stoker.kube.config import load_configuration
from stoker.kube.errors import AlreadyExists, Unavailable
from stoker.kube.resources import CHILDREN, CONTROLLER_REVISION, INFERENCE_SERVICE
from stoker.plan.snapshot import Snapshot
from stoker.reconcile.decide import decide
from stoker.reconcile.settings import Settings

NAMESPACE = "fleet"
DEPLOYMENT = CHILDREN["Deployment"]
UID = "00000000-0000-4000-8000-000000000000"
SAMPLE = "service-0000"
CONCURRENCY = 16
READY_SECONDS = 300.0
READS = ("get", "list", "watch")
NOT_COUNTED = ("leases", "selfsubjectaccessreviews", None)
NEXT_PAGE = "continue="
ROOT = Path(__file__).parents[1]
OPERATOR = (sys.executable, "-c", "from stoker.cli import main; main()", "operator")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used: CPU seconds so far, resident bytes now."""

    cpu_seconds: float
    resident_bytes: int


def usage(pid: int) -> Usage:
    """Read what a process has used, from /proc."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = int(fields[11]) + int(fields[12])
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Usage(ticks / os.sysconf("SC_CLK_TCK"), pages * resource.getpagesize())


def prefer(*pids: int) -> None:
    """Let processes come before whatever else this machine does. Sessions are what the kernel shares cores between."""
    for pid in pids:
        with suppress(OSError):
            Path(f"/proc/{pid}/autogroup").write_text("-15")


def a_service(index: int) -> dict[str, Any]:
    """Return one service of the fleet: a known model on one GPU."""
    return {
        "apiVersion": INFERENCE_SERVICE.api_version,
        "kind": INFERENCE_SERVICE.kind,
        "metadata": {"name": f"service-{index:04d}", "namespace": NAMESPACE},
        "spec": {
            "model": {"source": "hf://meta-llama/Llama-3.1-8B-Instruct"},
            "engine": {"name": "vllm", "version": "0.32.0"},
            "accelerator": {},
            "context": {"maxLength": 8192},
        },
    }


def prepared_bodies() -> str:
    """Return what one service comes to, as JSON: its revision, its children, its first status."""
    service = a_service(0)
    metadata = {**service["metadata"], "uid": UID, "generation": 1, "resourceVersion": "1"}
    spec = {**service["spec"], "replicas": 1}
    stored = {**service, "metadata": metadata, "spec": spec}
    decision = decide(Snapshot(service=stored, now="2026-01-01T00:00:00Z"), Settings())
    return json.dumps([decision.create_revision, *decision.apply, decision.status])


@asynccontextmanager
async def a_client(kubeconfig: Path) -> AsyncIterator[Client]:
    """Open a client."""
    client = Client(await load_configuration(str(kubeconfig)))
    try:
        yield client
    finally:
        await client.close()


async def at_once(count: int, work: Callable[[int], Awaitable[None]]) -> None:
    """Do something for each index, at most ``CONCURRENCY`` at the same time."""
    indexes = iter(range(count))

    async def worker() -> None:
        for index in indexes:
            await work(index)

    async with asyncio.TaskGroup() as group:
        for _ in range(CONCURRENCY):
            group.create_task(worker())


async def apply_bare(client: Client, count: int) -> float:
    """Write the prepared bodies of a fleet with nothing in between. Returns the seconds that it took."""
    prepared = prepared_bodies()

    async def bring(index: int) -> None:
        created = await client.create(INFERENCE_SERVICE, NAMESPACE, a_service(index), "bench")
        uid, name = created["metadata"]["uid"], created["metadata"]["name"]
        revision, *children, status = json.loads(prepared.replace(UID, uid).replace(SAMPLE, name))
        for child in (revision, *children):
            await patiently(partial(client.create, CHILDREN[child["kind"]], NAMESPACE, child, "stoker"))
        body = {**created, "status": status}
        update = partial(client.update, subresource="status")
        await patiently(partial(update, INFERENCE_SERVICE, NAMESPACE, body, "stoker-status"))

    start = time.monotonic()
    await at_once(count, bring)
    return time.monotonic() - start


async def patiently(write: Callable[[], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
    """Write, and again where there was no answer in time: what the operator has to live with, the client has too."""
    while True:
        try:
            return await write()
        except Unavailable:
            await asyncio.sleep(0.5)
        except AlreadyExists:
            return {}  # the attempt that got no answer has done it


async def apply_services(client: Client, count: int) -> float:
    """Create the services alone, and wait until the operator has written all children and a first status."""
    start = time.monotonic()

    async def bring(index: int) -> None:
        await client.create(INFERENCE_SERVICE, NAMESPACE, a_service(index), "bench")

    await at_once(count, bring)
    await until(client, count, lambda service: service.get("status", {}).get("observedGeneration", -1) > 0)
    expected = count * len(json.loads(prepared_bodies())[:-1])
    while await count_children(client) < expected:  # noqa: ASYNC110 - another process makes them
        await asyncio.sleep(0.1)
    return time.monotonic() - start


async def change_one(client: Client, index: int) -> float:
    """Change a service so that its pods change; returns the seconds until its Deployment is written anew."""
    service = a_service(index)
    name = service["metadata"]["name"]
    before = await client.get(DEPLOYMENT, NAMESPACE, name)
    change = {"spec": {"batching": {"maxSequences": 32 + index}}}
    start = time.monotonic()
    await client.merge_patch(INFERENCE_SERVICE, NAMESPACE, name, change, "bench")
    async with asyncio.timeout(READY_SECONDS):
        while (await client.get(DEPLOYMENT, NAMESPACE, name))["spec"] == before["spec"]:  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.005)
    return time.monotonic() - start


async def change_one_bare(client: Client, index: int) -> float:
    """Write what `change_one` waits for without the operator: the service, a revision, the Deployment. In seconds."""
    name = a_service(index)["metadata"]["name"]
    prepared = prepared_bodies().replace(SAMPLE, f"bare-{index}")
    revision = json.loads(prepared)[0]
    start = time.monotonic()
    await client.merge_patch(INFERENCE_SERVICE, NAMESPACE, name, {"metadata": {"labels": {"bare": "1"}}}, "bench")
    await client.create(CONTROLLER_REVISION, NAMESPACE, {**revision, "metadata": _unowned(revision)}, "bench")
    await client.merge_patch(DEPLOYMENT, NAMESPACE, name, {"metadata": {"labels": {"bare": "1"}}}, "bench")
    return time.monotonic() - start


def _unowned(manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": manifest["metadata"]["name"], "namespace": NAMESPACE}


async def until_ready(client: Client, count: int) -> None:
    """Wait until every service of the fleet is Ready."""
    await until(client, count, is_ready)


def is_ready(service: Mapping[str, Any]) -> bool:
    """Return whether a service is Ready."""
    conditions = service.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


async def until(client: Client, count: int, holds: Callable[[Mapping[str, Any]], bool]) -> None:
    """Wait until something holds for every service. Raises TimeoutError."""
    async with asyncio.timeout(READY_SECONDS):
        while True:
            services = [raw async for page in client.pages(INFERENCE_SERVICE, NAMESPACE) for raw in page]
            if len(services) == count and all(map(holds, services)):
                return
            await asyncio.sleep(0.1 + count / 2000)


async def count_children(client: Client) -> int:
    """Return how many children stand, revisions among them."""
    ours = Selection(labels="app.kubernetes.io/managed-by=stoker", metadata_only=True)
    total = 0
    for kind in CHILDREN.values():
        async for page in client.pages(kind, NAMESPACE, ours):
            total += len(page)
    return total


@asynccontextmanager
async def an_operator(plane: ControlPlane, user: str, log: Path, argv: Sequence[str] = OPERATOR) -> AsyncIterator[int]:
    """Run the operator as a process of its own, under a user of its own. Yields its pid."""
    kubeconfig = plane.kubeconfig_for(user, ["system:masters"])
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'operator'}:{ROOT}",
        "STOKER_KUBECONFIG": str(kubeconfig),
        "STOKER_LEASE_NAMESPACE": "default",
        "STOKER_HEALTH_PORT": "0",
        "STOKER_METRICS_PORT": "0",
        "STOKER_WORKERS": str(CONCURRENCY),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: ASYNC220 - once, at the start
            argv, stderr=output, env=environment, start_new_session=True
        )
        prefer(process.pid)
        try:
            yield process.pid
        finally:
            process.terminate()
            process.wait(timeout=30)


@dataclass(frozen=True, slots=True)
class Requests:
    """What a user has asked of the API server, by verb and resource, its Lease and questions of rights apart."""

    counts: Mapping[str, int]

    def writes(self) -> dict[str, int]:
        """Return what changed something, or was to."""
        return {what: count for what, count in self.counts.items() if what.split()[0] not in READS}

    def most_lists(self) -> int:
        """Return how often the kind was listed that was listed most often."""
        return max((count for what, count in self.counts.items() if what.startswith("list ")), default=0)

    def since(self, before: Requests) -> Requests:
        """Return what was asked later than that."""
        return Requests({what: count - before.counts.get(what, 0) for what, count in self.counts.items()})


def requests_by(audit_log: Path, user: str) -> Requests:
    """Count what a user has asked, from the audit log. A list is counted once, however many pages it comes in."""
    counts: dict[str, int] = {}
    for line in audit_log.read_text().splitlines():
        event = json.loads(line)
        reference = event.get("objectRef") or {}
        counted = reference.get("resource") not in NOT_COUNTED and NEXT_PAGE not in event["requestURI"]
        if event["user"]["username"] == user and counted:
            what = f"{event['verb']} {reference['resource']}"
            what += f"/{reference['subresource']}" if reference.get("subresource") else ""
            counts[what] = counts.get(what, 0) + 1
    return Requests(counts)
