"""Watch streams that fail: the operator neither floods the API server nor works on blindly, and says so in one line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from stoker.api.crd import NAME
from stoker.kube.resources import CHILDREN, INFERENCE_SERVICE, NODE, POD
from tests.builders.cluster import install_crd
from tests.cluster.proxy import a_proxy
from tests.cluster.support import HEALTH_PORTS, USER, Stage, until

CALM_SECONDS = 10.0
MOST_STREAMS = 6
"""Pauses of 0.5, 1, 2, 4 and 8 s fill the time; without them there would be some hundred streams of each kind."""

LEAST_STREAMS = 2
"""Each of them is begun anew: an operator that gives a kind up after its first stream is blind for it."""

END_SECONDS = 30.0
THIRD = "operator-third"


async def test_streams_that_are_gone_at_once_are_begun_anew_ever_more_rarely(stage: Stage) -> None:
    async with a_proxy(stage.plane) as proxy:
        stage.start_replica(THIRD, kubeconfig=str(proxy.kubeconfig(stage.plane.kubeconfig_for(USER))))
        try:

            async def all_kinds_are_watched() -> bool:
                return len(proxy.watches) == len((INFERENCE_SERVICE, *CHILDREN, POD, NODE))

            await until(all_kinds_are_watched, "a stream of each kind through the proxy")
            await asyncio.sleep(CALM_SECONDS)
            assert max(proxy.watches.values()) <= MOST_STREAMS, proxy.watches
            assert min(proxy.watches.values()) >= LEAST_STREAMS, proxy.watches
        finally:
            stage.stop_operator(THIRD)


def since(log: Path, offset: int) -> list[str]:
    """Return the lines of a log after an offset."""
    return log.read_bytes()[offset:].decode().splitlines()


async def test_a_deleted_crd_ends_the_replicas_with_a_line_for_people(stage: Stage) -> None:
    logs = {name: stage.plane.processes.log(name) for name in HEALTH_PORTS}
    offsets = {name: log.stat().st_size for name, log in logs.items()}
    stage.plane.kubectl("delete", "crd", NAME)
    try:
        for name in HEALTH_PORTS:

            async def ended(name: str = name) -> bool:
                return not stage.plane.processes.is_running(name)

            await until(ended, f"the end of {name}", END_SECONDS)
            lines = since(logs[name], offsets[name])
            assert not [line for line in lines if "Traceback" in line], lines
            last = json.loads(lines[-1])
            assert last["message"] == "a watch stream failed, and the operator ends"
            assert "404" in last["problem"]
    finally:
        stage.stop_operator()
        install_crd(stage.plane)
        stage.start_operator()
        await stage.leader()
