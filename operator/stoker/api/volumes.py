"""``spec.pod.volumes``: volumes of the user beside those of Stoker."""

from typing import Annotated, ClassVar

from pydantic import Field

from stoker.api.base import ApiModel
from stoker.api.cel import Rule, exactly_one_of
from stoker.api.embedded import Embedded, KubernetesType
from stoker.api.references import Effect, Reference
from stoker.api.types import AbsolutePath, Flag, RelativePath, ShortName

OWNED_VOLUME_PREFIX = "stoker-"
"""Beginning of the names of the volumes that Stoker adds itself."""

OWNED_PATHS = ("/dev/shm", "/run/stoker", "/models", "/tmp")  # noqa: S108 - paths inside the engine's container
"""Where Stoker mounts volumes of its own."""

RUNTIME_PATHS = ("/dev", "/proc", "/sys")
"""Where the runtime mounts what every container has; a volume there would hide the devices."""

VOLUME_SOURCES = {
    "configMap": "config_map",
    "csi": "csi",
    "downwardAPI": "downward_api",
    "emptyDir": "empty_dir",
    "ephemeral": "ephemeral",
    "hostPath": "host_path",
    "image": "image",
    "nfs": "nfs",
    "persistentVolumeClaim": "persistent_volume_claim",
    "projected": "projected",
    "secret": "secret",
}
"""The kinds of volumes that a pod may get: JSON name -> attribute."""

ConfigMapVolume = Annotated[Embedded, KubernetesType("V1ConfigMapVolumeSource")]
CsiVolume = Annotated[Embedded, KubernetesType("V1CSIVolumeSource")]
DownwardVolume = Annotated[Embedded, KubernetesType("V1DownwardAPIVolumeSource")]
EmptyDir = Annotated[Embedded, KubernetesType("V1EmptyDirVolumeSource")]
EphemeralVolume = Annotated[Embedded, KubernetesType("V1EphemeralVolumeSource")]
HostPath = Annotated[Embedded, KubernetesType("V1HostPathVolumeSource")]
ImageVolume = Annotated[Embedded, KubernetesType("V1ImageVolumeSource")]
NfsVolume = Annotated[Embedded, KubernetesType("V1NFSVolumeSource")]
ClaimVolume = Annotated[Embedded, KubernetesType("V1PersistentVolumeClaimVolumeSource")]
ProjectedVolume = Annotated[Embedded, KubernetesType("V1ProjectedVolumeSource")]
SecretVolume = Annotated[Embedded, KubernetesType("V1SecretVolumeSource")]


def _sources(volume: "Volume") -> int:
    return sum(getattr(volume, attribute) is not None for attribute in VOLUME_SOURCES.values())


def _is_owned(path: str) -> bool:
    return any(path == own or path.startswith(f"{own}/") for own in OWNED_PATHS)


def _is_of_runtime(path: str) -> bool:
    return path.rstrip("/") in RUNTIME_PATHS


_RUNTIME_EXPRESSION = " && ".join(f"self.mountPath != '{own}' && self.mountPath != '{own}/'" for own in RUNTIME_PATHS)
_PATH_EXPRESSION = " && ".join(
    f"self.mountPath != '{own}' && !self.mountPath.startsWith('{own}/')" for own in OWNED_PATHS
)


class Volume(ApiModel):
    """A volume of the pod, mounted into the engine's container, with exactly one source. Pod Security "restricted"
    forbids hostPath and nfs: in a namespace that enforces it, no pod with such a volume starts."""

    name: ShortName
    """Name of the volume; names that begin with stoker- are Stoker's own."""
    mount_path: AbsolutePath
    """Where the engine sees it. /dev/shm, /run/stoker, /models and /tmp are Stoker's own."""
    read_only: Flag | None = None
    """true: the engine cannot write it. Absent: false."""
    sub_path: RelativePath | None = None
    """Folder or file inside the volume that is mounted in place of its root. Files of a ConfigMap or Secret mounted so
    are not updated in running pods."""
    config_map: Annotated[ConfigMapVolume | None, Reference("ConfigMap", Effect.IN_PLACE)] = None
    """The keys of a ConfigMap as files."""
    csi: CsiVolume | None = None
    """A volume that a CSI driver makes for the pod."""
    downward_api: Annotated[DownwardVolume | None, Field(alias="downwardAPI")] = None
    """Fields of the pod as files."""
    empty_dir: EmptyDir | None = None
    """An empty folder that lives as long as the pod; with medium Memory it counts against the memory limit."""
    ephemeral: EphemeralVolume | None = None
    """A claim that is made for the pod and deleted with it."""
    host_path: HostPath | None = None
    """A folder of the node. Pod Security "baseline" and "restricted" forbid it."""
    image: ImageVolume | None = None
    """The files of an OCI image or artifact, read-only."""
    nfs: NfsVolume | None = None
    """An NFS export. Pod Security "restricted" forbids it."""
    persistent_volume_claim: Annotated[ClaimVolume | None, Reference("PersistentVolumeClaim", Effect.IN_PLACE)] = None
    """A claim in the same namespace."""
    projected: Annotated[ProjectedVolume | None, Reference("Secret and ConfigMap", Effect.IN_PLACE)] = None
    """Several Secrets, ConfigMaps, pod fields and service account tokens in one folder."""
    secret: Annotated[SecretVolume | None, Reference("Secret", Effect.IN_PLACE)] = None
    """The keys of a Secret as files."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            field="",
            problem="exactly one volume source must be set",
            remedy=f"set one of {', '.join(VOLUME_SOURCES)}",
            expression=exactly_one_of(*VOLUME_SOURCES),
            holds=lambda volume: _sources(volume) == 1,
        ),
        Rule(
            field="name",
            problem=f"names that begin with {OWNED_VOLUME_PREFIX} are Stoker's own",
            remedy="choose another name",
            expression=f"!self.name.startsWith('{OWNED_VOLUME_PREFIX}')",
            holds=lambda volume: not volume.name.startswith(OWNED_VOLUME_PREFIX),
        ),
        Rule(
            field="mountPath",
            problem=f"Stoker mounts volumes of its own at {', '.join(OWNED_PATHS)}",
            remedy="mount it elsewhere, such as /data",
            expression=_PATH_EXPRESSION,
            holds=lambda volume: not _is_owned(volume.mount_path),
        ),
        Rule(
            field="mountPath",
            problem=f"{', '.join(RUNTIME_PATHS)} are the container's own",
            remedy="mount it elsewhere, such as /data, or at a folder below",
            expression=_RUNTIME_EXPRESSION,
            holds=lambda volume: not _is_of_runtime(volume.mount_path),
        ),
    )
