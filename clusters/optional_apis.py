"""CustomResourceDefinitions of APIs that a cluster may or may not have, read from the Go module cache.

They are never copied into this repository: the modules under `go/` pin their versions.
"""

import functools
import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusters import binaries, paths
from clusters.controlplane import ControlPlane, await_true
from clusters.documents import load
from clusters.errors import ClusterError
from clusters.run import run

COMMAND_SECONDS = 300
ESTABLISH_SECONDS = 30
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MONITORING = "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring"


@dataclass(frozen=True, slots=True)
class OptionalApi:
    """An API: the module that has it, pinned in a folder under `go/`; its CRDs' file names; their folder there.

    `generated` APIs publish Go types alone, from which their CRDs are generated as their makers do it.
    """

    pinned_in: str
    module: str
    folder: str
    names: tuple[str, ...]
    generated: bool = False


APIS: Mapping[str, OptionalApi] = {
    "leaderworkerset": OptionalApi(
        "lws", "sigs.k8s.io/lws", "config/crd/bases", ("leaderworkerset.x-k8s.io_leaderworkersets.yaml",)
    ),
    "gateway-api": OptionalApi(
        "crds",
        "sigs.k8s.io/gateway-api",
        "config/crd/standard",
        tuple(f"gateway.networking.k8s.io_{plural}.yaml" for plural in ("gatewayclasses", "gateways", "httproutes")),
    ),
    "monitoring": OptionalApi(
        "crds",
        MONITORING,
        "v1",
        ("monitoring.coreos.com_podmonitors.yaml", "monitoring.coreos.com_prometheusrules.yaml"),
        generated=True,
    ),
}


def definitions(name: str) -> list[dict[str, Any]]:
    """The CRDs of an optional API: `leaderworkerset`, `gateway-api` or `monitoring` (PodMonitor, PrometheusRule)."""
    api = APIS[name]
    source = _module_folder(api)
    folder = _generate(api, source) if api.generated else source / api.folder
    documents = [load((folder / file).read_text()) for file in api.names]
    return [document for document in documents if document]


def install(plane: ControlPlane, name: str) -> list[str]:
    """Install the CRDs of an optional API and wait until they are served; returns their names."""
    documents = definitions(name)
    plane.apply(*documents)
    names = [str(document["metadata"]["name"]) for document in documents]
    for each in names:
        ask = functools.partial(_is_established, plane, each)
        await_true(ask, what=f"CRD {each} established", timeout_seconds=ESTABLISH_SECONDS)
    return names


def remove(plane: ControlPlane, name: str) -> None:
    """Remove the CRDs of an optional API, and with them every object of it."""
    names = [str(document["metadata"]["name"]) for document in definitions(name)]
    plane.kubectl("delete", "crd", *names, "--ignore-not-found", "--timeout=170s", timeout_seconds=180)


def _is_established(plane: ControlPlane, name: str) -> bool:
    # `kubectl wait` and its JSON paths fail on an object that has no conditions yet.
    conditions = plane.call("GET", f"{DEFINITIONS}/{name}")["status"]["conditions"] or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _module_folder(api: OptionalApi) -> Path:
    where, environment = paths.MODULES / api.pinned_in, binaries.BUILD_ENVIRONMENT
    run(["go", "mod", "download", api.module], cwd=where, env=environment, timeout_seconds=COMMAND_SECONDS)
    command = ["go", "list", "-m", "-f", "{{.Dir}}", api.module]
    folder = run(command, cwd=where, env=environment, timeout_seconds=COMMAND_SECONDS).strip()
    if not folder:
        raise ClusterError(f"{where}/go.mod does not pin {api.module}")
    return Path(folder)


def _generate(api: OptionalApi, source: Path) -> Path:
    digest = hashlib.sha256(f"{source} {binaries.location(binaries.BY_NAME['controller-gen'])}".encode()).hexdigest()[
        :16
    ]
    target = paths.cache_root() / "crds" / digest
    if target.is_dir():
        return target
    generator = binaries.ensure(["controller-gen"])["controller-gen"]
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        output = Path(scratch) / "crds"
        types = f"paths=./{api.folder}"
        options = ["crd:crdVersions=v1,allowDangerousTypes=true,maxDescLen=0", types, f"output:crd:dir={output}"]
        run([generator, *options], cwd=source, timeout_seconds=COMMAND_SECONDS, env=binaries.BUILD_ENVIRONMENT)
        output.rename(target)
    return target
