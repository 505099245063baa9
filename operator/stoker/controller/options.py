"""What the operator is told at its start, by flags or by environment variables; flags win."""

from __future__ import annotations

import argparse
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stoker.reconcile.settings import Settings

NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
LOG_LEVELS = ("debug", "info", "warning", "error")
MAX_WORKERS = 256
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Options:
    """``namespaces`` empty means all. Ports of 0 switch the endpoint off."""

    namespaces: tuple[str, ...]
    lease_namespace: str
    lease_name: str
    identity: str
    health_port: int
    metrics_port: int
    workers: int
    log_level: str
    kubeconfig: str | None
    context: str | None
    agent_image: str

    @property
    def settings(self) -> Settings:
        """What the operator brings into each decision."""
        return Settings(agent_image=self.agent_image)


def parse_options(argv: Sequence[str], environ: Mapping[str, str]) -> Options:
    """Return the options. Exits with code 2 and a line on stderr when one is not acceptable."""
    parser = _parser(environ)
    found = parser.parse_args(list(argv))
    namespaces = tuple(sorted({name for name in re.split(r"[,\s]+", found.namespaces) if name}))
    for name in (*namespaces, found.lease_namespace):
        if not _LABEL.fullmatch(name):
            parser.error(f"{name!r} is not the name of a namespace")
    return Options(
        namespaces=namespaces,
        lease_namespace=found.lease_namespace,
        lease_name=found.lease_name,
        identity=found.identity,
        health_port=found.health_port,
        metrics_port=found.metrics_port,
        workers=found.workers,
        log_level=found.log_level,
        kubeconfig=found.kubeconfig or None,
        context=found.context or None,
        agent_image=found.agent_image,
    )


def _parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="stoker operator", description="Run the operator in a cluster.")

    def option(name: str, default: str, text: str, **more: object) -> None:
        variable = f"STOKER_{name.upper().replace('-', '_')}"
        value = environ.get(variable, default)
        parser.add_argument(f"--{name}", default=value, help=f"{text} [{variable}]", **more)  # type: ignore[arg-type]

    option("namespaces", "", "namespaces to serve, separated by commas; all when empty")
    option("lease-namespace", _own_namespace(), "namespace of the Lease by which replicas agree on who writes")
    option("lease-name", "stoker-operator", "name of that Lease")
    option("identity", environ.get("POD_NAME") or socket.gethostname(), "name of this replica; no two may share one")
    option("health-port", "8080", "port of /healthz; 0 for none", type=_port)
    option("metrics-port", "8081", "port of /metrics; 0 for none", type=_port)
    option("workers", "16", "how many services are reconciled at the same time", type=_workers)
    option("log-level", "info", "how much is logged", choices=LOG_LEVELS)
    option("kubeconfig", "", "kubeconfig file; the pod's ServiceAccount when empty")
    option("context", "", "context of the kubeconfig; its current one when empty")
    option("agent-image", Settings().agent_image, "image of the agent, which is this operator's own")
    return parser


def _own_namespace() -> str:
    try:
        return NAMESPACE_FILE.read_text().strip()
    except OSError:
        return "stoker-system"


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; give a number from 0 to 65535")
    return int(text)


def _workers(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= MAX_WORKERS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {MAX_WORKERS}")
    return int(text)


def process_identity(options: Options) -> str:
    """Return a name that no other process has, even on the same host."""
    return f"{options.identity}-{os.getpid()}"
