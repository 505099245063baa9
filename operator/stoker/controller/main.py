"""``stoker operator``: the process from its first line to its last."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Sequence

import kopf
import uvloop
from kubernetes.aio.client import Configuration

from stoker import __version__
from stoker.controller.logs import set_up
from stoker.controller.operator import Operator
from stoker.controller.options import Options, parse_options
from stoker.controller.settings import kopf_settings
from stoker.controller.wiring import NoMemo, build_registry
from stoker.kube.client import Client
from stoker.kube.config import ConfigurationError, load_configuration
from stoker.kube.errors import ApiError, NotFound
from stoker.kube.resources import (
    CHILDREN,
    INFERENCE_SERVICE,
    NODE,
    POD,
    SELF_SUBJECT_ACCESS_REVIEW,
    Resource,
)

WAIT_SECONDS = 5.0
END_SECONDS = 10.0
"""How long the watch streams may take to end after everything else has."""

log = logging.getLogger("stoker")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the operator until it is told to stop. Returns the exit code."""
    options = parse_options(sys.argv[2:] if argv is None else argv, os.environ)
    set_up(options.log_level)
    try:
        uvloop.run(run(options))
    except ConfigurationError as problem:
        log.error("no cluster", extra={"problem": str(problem)})
        return 1
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 130
    except Exception as problem:
        # Such as a CRD that was deleted: the next process waits for it.
        log.error("a watch stream failed, and the operator ends", extra={"problem": str(problem)})
        return 1
    return 0


async def run(options: Options) -> None:
    """Wait for the CRD, then watch and work until a signal arrives. Raises ConfigurationError."""
    log.info("starting", extra={"version": __version__, "identity": options.identity})
    configuration = await load_configuration(options.kubeconfig, options.context)
    resources = await _resources(configuration)
    operator = Operator(options, await load_configuration(options.kubeconfig, options.context), resources)
    endpoint = f"http://0.0.0.0:{options.health_port}/healthz" if options.health_port else None
    streams = kopf.operator(
        registry=build_registry(operator, resources),
        settings=kopf_settings(),
        clusterwide=not options.namespaces,
        namespaces=options.namespaces,
        liveness_endpoint=endpoint,
        memo=NoMemo(),
    )
    await _until_ended(asyncio.create_task(streams, name="streams"), operator.ended)
    log.info("stopped")


async def _until_ended(streams: asyncio.Task[None], ended: asyncio.Event) -> None:
    """Wait for the watch streams, and not for ever once all else has ended.

    A watcher of kopf that lost its connection swallows its cancellation, and its process would neither work nor end.
    Raises what the streams raise.
    """
    rest = asyncio.create_task(ended.wait(), name="ended")
    await asyncio.wait((streams, rest), return_when=asyncio.FIRST_COMPLETED)
    rest.cancel()
    done, _ = await asyncio.wait((streams,), timeout=END_SECONDS)
    if not done:
        log.error("the watch streams do not end, and the process is ended without them")
        logging.shutdown()
        os._exit(1)
    streams.result()


async def _resources(configuration: Configuration) -> tuple[Resource, ...]:
    """Return what is watched: only what exists and what we may read, since kopf waits for all of it."""
    client = Client(configuration)
    try:
        await _wait_for_crd(client)
        nodes = (NODE,) if await _may_watch(client, NODE) else ()
    finally:
        await client.close()
    return (INFERENCE_SERVICE, *CHILDREN.values(), POD, *nodes)


async def _wait_for_crd(client: Client) -> None:
    while True:
        try:
            served = await client.discover(INFERENCE_SERVICE.root)
            if any(each.get("name") == INFERENCE_SERVICE.plural for each in served.get("resources") or ()):
                return
            problem = "the API does not serve inferenceservices"
        except NotFound:
            problem = "the CRD is not installed"
        except ApiError as error:
            problem = error.message
        log.warning("waiting for the API", extra={"problem": problem, "api": INFERENCE_SERVICE.root})
        await asyncio.sleep(WAIT_SECONDS)


async def _may_watch(client: Client, resource: Resource) -> bool:
    """Return whether we may list and watch a kind. What we may not is done without, and said in the log."""
    for verb in ("list", "watch"):
        if not await _may(client, verb, resource):
            log.warning("not allowed", extra={"verb": verb, "resource": resource.plural})
            return False
    return True


async def _may(client: Client, verb: str, resource: Resource) -> bool:
    """Ask the authorizer, until it answers."""
    wanted = {"verb": verb, "group": resource.group, "resource": resource.plural}
    body = {
        "apiVersion": SELF_SUBJECT_ACCESS_REVIEW.api_version,
        "kind": SELF_SUBJECT_ACCESS_REVIEW.kind,
        "spec": {"resourceAttributes": wanted},
    }
    while True:
        try:
            answer = await client.create(SELF_SUBJECT_ACCESS_REVIEW, None, body, "stoker")
            return bool((answer.get("status") or {}).get("allowed"))
        except ApiError as error:
            log.warning("waiting for the API", extra={"problem": error.message, "api": resource.root})
            await asyncio.sleep(WAIT_SECONDS)
