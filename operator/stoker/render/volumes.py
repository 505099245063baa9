"""Volumes of the pod and where the engine sees them.

The root file system is read-only: every path that an engine writes to is a volume. A volume of the user that is mounted
at such a path takes its place, so that a cache can outlive the pod.
"""

from collections.abc import Iterator
from typing import Any

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.api.types import ClaimSource, model_source
from stoker.api.volumes import VOLUME_SOURCES, Volume
from stoker.engines.interface import Invocation, WritablePath
from stoker.plan.types import Layout
from stoker.render.meta import tidy
from stoker.render.quantities import bytes_quantity

AGENT_STATE = "stoker-agent"
MODEL = "stoker-model"
SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a path inside the engine's container


def pod_volumes(spec: InferenceServiceSpec, layout: Layout, invocation: Invocation) -> list[dict[str, Any]]:
    """Return the volumes of the pod: the agent's state, the model, what the engine writes, the user's."""
    volumes: list[dict[str, Any]] = [{"name": AGENT_STATE, "emptyDir": {"sizeLimit": "16Mi"}}]
    volumes += [{"name": MODEL, "persistentVolumeClaim": {"claimName": claim}} for claim in _claims(spec)]
    volumes += [_empty_dir(path) for path in _writable(spec, layout, invocation)]
    return volumes + [_user_volume(volume) for volume in _user_volumes(spec)]


def engine_mounts(spec: InferenceServiceSpec, layout: Layout, invocation: Invocation) -> list[dict[str, Any]]:
    """Return the mounts of the engine's container; the model is read-only."""
    mounts: list[dict[str, Any]] = []
    if invocation.model_path is not None:
        mounts += [{"name": MODEL, "mountPath": invocation.model_path, "readOnly": True} for _ in _claims(spec)]
    mounts += [{"name": _name(path), "mountPath": path.mount_path} for path in _writable(spec, layout, invocation)]
    return mounts + [_user_mount(volume) for volume in _user_volumes(spec)]


def _claims(spec: InferenceServiceSpec) -> Iterator[str]:
    source = model_source(spec.model.source)
    if isinstance(source, ClaimSource):
        yield source.claim


def _writable(spec: InferenceServiceSpec, layout: Layout, invocation: Invocation) -> Iterator[WritablePath]:
    taken = {volume.mount_path.rstrip("/") for volume in _user_volumes(spec)}
    paths = [path for path in invocation.writable_paths if path.mount_path not in taken]
    if layout.shm_bytes and SHARED_MEMORY not in {path.mount_path for path in paths}:
        paths.append(WritablePath("shm", SHARED_MEMORY, layout.shm_bytes, memory=True))
    yield from paths


def _name(path: WritablePath) -> str:
    return f"stoker-{path.name}"


def _empty_dir(path: WritablePath) -> dict[str, Any]:
    source: dict[str, Any] = {"medium": "Memory"} if path.memory else {}
    if path.size_bytes is not None:
        source["sizeLimit"] = bytes_quantity(path.size_bytes)
    return {"name": _name(path), "emptyDir": source}


def _user_volumes(spec: InferenceServiceSpec) -> tuple[Volume, ...]:
    return (spec.pod.volumes if spec.pod else None) or ()


def _user_volume(volume: Volume) -> dict[str, Any]:
    sources = {field: getattr(volume, attribute) for field, attribute in VOLUME_SOURCES.items()}
    return {"name": volume.name, **{field: tidy(source) for field, source in sources.items() if source is not None}}


def _user_mount(volume: Volume) -> dict[str, Any]:
    mount: dict[str, Any] = {"name": volume.name, "mountPath": volume.mount_path}
    if volume.sub_path is not None:
        mount["subPath"] = volume.sub_path
    if volume.read_only is not None:
        mount["readOnly"] = volume.read_only
    return mount
