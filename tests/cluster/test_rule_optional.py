"""N7: an optional API may be absent, broken, or appear later; the core works, and no restart is needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from clusters import optional_apis
from stoker.kube.discovery import LEADER_WORKER_SET
from tests.builders.specs import a_spec
from tests.cluster.support import Json, Stage, until

API = f"{LEADER_WORKER_SET.group}/{LEADER_WORKER_SET.version}/{LEADER_WORKER_SET.kind}"
CRD = f"{LEADER_WORKER_SET.plural}.{LEADER_WORKER_SET.group}"
POLL_SECONDS = 60.0


async def last_seen(stage: Stage) -> Json:
    """Return what the leader said last about what the cluster serves."""
    lines = [line for line in stage.operator_log(await stage.leader()) if "cluster serves" in line["message"]]
    return lines[-1] if lines else {"served": [], "broken": {}}


@contextmanager
def leader_worker_sets(stage: Stage) -> Iterator[None]:
    """Have the optional API for a while."""
    optional_apis.install(stage.plane, "leaderworkerset")
    try:
        yield
    finally:
        optional_apis.remove(stage.plane, "leaderworkerset")


async def test_N7_an_api_that_appears_later_is_picked_up_and_one_that_goes_is_let_go(stage: Stage, team: str) -> None:
    leader = await stage.leader()
    with leader_worker_sets(stage):

        async def served() -> bool:
            return API in (await last_seen(stage))["served"]

        await until(served, "the API that appeared", POLL_SECONDS)
        await stage.create(a_spec().manifest("chat", team))
        await stage.until_ready(team)

    async def absent() -> bool:
        return not (await last_seen(stage))["served"]

    await until(absent, "the API gone", POLL_SECONDS)
    assert await stage.leader() == leader


def with_dead_webhook(crd: Json) -> Json:
    """Return a CRD whose stored version is another one, to be converted by a webhook that nothing answers."""
    (version,) = crd["spec"]["versions"]
    older: Json = json.loads(json.dumps({**version, "name": "v1alpha1", "storage": True}))
    webhook: dict[str, Any] = {"clientConfig": {"url": "https://127.0.0.1:1/"}, "conversionReviewVersions": ["v1"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": crd["metadata"]["name"], "annotations": crd["metadata"].get("annotations")},
        "spec": {
            **crd["spec"],
            "versions": [{**version, "storage": False}, older],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def a_leader_worker_set(namespace: str) -> Json:
    """Return a small object of the API, in its older version."""
    template = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"leaderWorkerTemplate": {"size": 1, "workerTemplate": template}, "replicas": 0}
    return {
        "apiVersion": f"{LEADER_WORKER_SET.group}/v1alpha1",
        "kind": LEADER_WORKER_SET.kind,
        "metadata": {"name": "x", "namespace": namespace},
        "spec": spec,
    }


async def test_N7_an_api_whose_conversion_is_dead_at_the_start_is_told_and_the_core_works(
    stage: Stage, team: str
) -> None:
    stage.stop_operator()
    with leader_worker_sets(stage):
        crd = json.loads(stage.plane.kubectl("get", "crd", CRD, "-o", "json"))
        stage.plane.apply(with_dead_webhook(crd))

        async def stored() -> bool:
            try:
                stage.plane.apply(a_leader_worker_set(team))
            except Exception:
                await asyncio.sleep(1.0)
                return False
            return True

        await until(stored, "an object in the older version")
        stage.start_operator()

        async def broken() -> bool:
            return "webhook" in str((await last_seen(stage))["broken"].get(API))

        await until(broken, "the API that does not answer", POLL_SECONDS)
        await stage.create(a_spec().manifest("chat", team))
        await stage.until_ready(team)
