"""What vLLM on the CPU needs in a pod: an image with the interpreter, its libraries on a volume, a model."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusters import demo_model, images, paths
from clusters.images import Recipe
from clusters.run import run
from tests.node.hub import OPEN, Hub, serving
from tests.node.support import ROOT, Json, Namespace, command_of

VERSION = "0.32.0"
IMAGE = f"ghcr.io/stoker-dev/vllm-cpu-test:{VERSION}"
REQUIREMENTS = ROOT / "requirements/vllm-0.32.txt"
LIBRARIES, MODEL = "vllm-libraries", "smollm2-vllm"
PACKAGES = "/usr/local/lib/python3.11/dist-packages"
INSTALL_SECONDS = 40 * 60.0
START_SECONDS = 600.0
CONVERT_SECONDS = 20 * 60.0


def key(*parts: bytes) -> str:
    """Return a short digest."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def environment() -> Path:
    """Return the environment of vLLM, which `make vllm-env` creates."""
    run(["make", "vllm-env"], cwd=ROOT, timeout_seconds=INSTALL_SECONDS)
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:16]
    return paths.cache_root() / "venv" / f"vllm-0.32-{digest}"


def model() -> Path:
    """Return a folder with the demo's model as safetensors in bfloat16, made once from its quantized file."""
    program = ROOT / "tests/node/dequantize.py"
    digest = key(demo_model.SHA256.encode(), REQUIREMENTS.read_bytes(), program.read_bytes())
    folder = paths.cache_root() / "models" / f"smollm2-bfloat16-{digest}"
    if not folder.exists():
        partial = folder.with_name(f".{folder.name}")
        shutil.rmtree(partial, ignore_errors=True)
        python = environment() / "bin/python"
        run([python, program, demo_model.fetch(), partial], cwd=ROOT, timeout_seconds=CONVERT_SECONDS)
        partial.rename(folder)
    return folder


def image() -> Path:
    """Return the archive of the image."""
    folder = ROOT / "tests/node/vllm_image"
    sources = {"vllm": folder / "vllm", "libnuma1.deb": debian_package("libnuma1")}
    return images.build(Recipe(IMAGE, folder / "Containerfile", sources))


def debian_package(name: str) -> Path:
    """Return the file of a Debian package, downloaded once."""
    folder = paths.cache_root() / "debian"
    if not list(folder.glob(f"{name}_*.deb")):
        folder.mkdir(parents=True, exist_ok=True)
        run(["apt-get", "update", "--quiet"], timeout_seconds=INSTALL_SECONDS)
        run(["apt-get", "download", name], cwd=folder, timeout_seconds=INSTALL_SECONDS)
    return next(folder.glob(f"{name}_*.deb"))


def provide_libraries(namespace: Namespace) -> None:
    """Have the image on the node, and a claim over the libraries in the namespace."""
    (site,) = environment().glob("lib/python3.*/site-packages")
    namespace.stage.cluster.load_image(image())
    namespace.volume(LIBRARIES, site)


def provide_model(namespace: Namespace) -> None:
    """Have a claim over the model in the namespace."""
    namespace.claim(MODEL, *sorted(model().iterdir()))


FACTS: Mapping[str, Any] = {
    "weightBytes": 269060736,
    "layers": 30,
    "attentionHeads": 9,
    "kvHeads": 3,
    "headDim": 64,
    "hiddenSize": 576,
    "vocabularySize": 49152,
    "maxContextLength": 8192,
}


EIGHTH: Mapping[str, Any] = {
    "quantization": {"kvCache": "fp8"},
    "context": {"maxLength": 1024},
    "resources": {"cpu": "200m", "memory": "4500Mi"},
}


def service(name: str, **changes: Any) -> Json:
    """Return an InferenceService of vLLM on the CPU, with small steps, so that its bounds are short.

    It asks for little CPU, since other tests go on beside it; it may use what is free.
    """
    libraries = {"name": "libraries", "mountPath": PACKAGES, "readOnly": True}
    spec = {
        "model": {"source": f"pvc://{MODEL}", "names": [name], "facts": {"inline": dict(FACTS)}},
        "engine": {"name": "vllm", "version": VERSION, "image": IMAGE, "args": ["--enforce-eager"]},
        "context": {"maxLength": 2048},
        "batching": {"maxSequences": 8, "maxBatchedTokens": 256},
        "resources": {"cpu": "200m", "memory": "5Gi"},
        "pod": {"volumes": [{**libraries, "persistentVolumeClaim": {"claimName": LIBRARIES}}]},
        **changes,
    }
    metadata = {"name": name}
    return {
        "apiVersion": "serving.stoker.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": metadata,
        "spec": spec,
    }


@dataclass(frozen=True, slots=True)
class Vllm:
    """Two services in a namespace: `half`, which downloads its model from the hub, and `eighth`, with an fp8 cache."""

    namespace: Namespace
    hub: Hub

    def core(self, name: str) -> int:
        """Return the process in which a service's engine computes."""
        processes = self.namespace.processes(self.namespace.the_pod(name), "engine")
        return next(each for each in processes if b"EngineCore" in command_of(each))

    def server(self, name: str) -> int:
        """Return the main process of a service's engine, which serves HTTP."""
        return self.namespace.processes(self.namespace.the_pod(name), "engine")[0]


@contextmanager
def serving_two(namespace: Namespace) -> Iterator[Vllm]:
    """Apply both services; their hub answers while the body runs."""
    provide_libraries(namespace)
    provide_model(namespace)
    with serving(namespace.stage.cluster, model()) as hub:
        namespace.apply(from_hub("half", OPEN, hub))
        namespace.apply(service("eighth", **EIGHTH))
        yield Vllm(namespace, hub)


def from_hub(name: str, repository: str, hub: Hub) -> Json:
    """Return a service of a model of the hub, which vLLM downloads itself."""
    manifest = service(name)
    manifest["spec"]["model"]["source"] = f"hf://{repository}"
    manifest["spec"]["pod"]["env"] = [{"name": "HF_ENDPOINT", "value": hub.url}]
    return manifest
