"""Volumes of pods, good and bad: what Kubernetes takes in a pod template, and what it refuses there."""

from collections.abc import Mapping

from tests.builders.pod_cases import Bad, volume
from tests.builders.specs import SpecBuilder

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Gi"}}}
WHERE = "spec.pod.volumes[0]"
ITEM = {"key": "k", "path": "p"}


def _of(**source: object) -> SpecBuilder:
    return volume(emptyDir=None, **source)


def _claim(**fields: object) -> SpecBuilder:
    return _of(ephemeral={"volumeClaimTemplate": {"spec": {**CLAIM, **fields}}})


def _projected(*sources: Mapping[str, object]) -> SpecBuilder:
    return _of(projected={"sources": list(sources)})


def _file(path: str) -> SpecBuilder:
    return _of(secret={"secretName": "s", "items": [{"key": "k", "path": path}]})


GOOD_VOLUMES: Mapping[str, SpecBuilder] = {
    "config": _of(configMap={"name": "c", "items": [{**ITEM, "mode": 0o400}], "optional": True, "defaultMode": 0o777}),
    **{f"file {path}": _file(path) for path in ("a", "a/b", ".a", "a/..b", "a//b", "./a", "a/", ".")},
    "claim of its own": _claim(storageClassName="", volumeMode="Filesystem"),
    **{f"claim of {size!r}": _claim(resources={"requests": {"storage": size}}) for size in (1, "1e9", "0.5Gi", "+1Ti")},
    **{
        f"at most {size!r}": volume(emptyDir={"sizeLimit": size}) for size in (0, 1_000_000, "1e9", "0", ".5Gi", "100m")
    },
    "claim of a class": _claim(storageClassName="fast.example.com", accessModes=["ReadOnlyMany", "ReadWriteMany"]),
    "claim by labels": _claim(selector={"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}),
    "driver": _of(csi={"driver": "CSI.example.com", "nodePublishSecretRef": {"name": "s"}}),
    **{
        f"path of the node {path}": _of(hostPath={"path": path, "type": kind})
        for path, kind in (("/", ""), ("/mnt/..a/b", "File"), ("a", "BlockDevice"), ("/a//", "Socket"))
    },
    "export": _of(nfs={"server": "10.0.0.7", "path": "/exports/.."}),
    "projected": _projected(
        {"secret": {"name": "s", "items": [ITEM]}},
        {"configMap": {"name": "c"}},
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}},
        {"downwardAPI": {"items": [{"path": "uid", "fieldRef": {"fieldPath": "metadata.uid", "apiVersion": "v1"}}]}},
        {},
    ),
}

BAD_VOLUMES: Mapping[str, Bad] = {
    "config without a name": Bad(_of(configMap={}), f"{WHERE}.configMap.name", "missing"),
    "config with an empty name": Bad(_of(configMap={"name": ""}), f"{WHERE}.configMap.name", "at least 1"),
    "secret without a name": Bad(_of(secret={}), f"{WHERE}.secret.secretName", "missing"),
    "claim with an empty name": Bad(
        _of(persistentVolumeClaim={"claimName": ""}), f"{WHERE}.persistentVolumeClaim.claimName", "at least 1"
    ),
    **{
        f"file at {path}": Bad(_file(path), f"{WHERE}.secret.items[0].path", "neither with a slash")
        for path in ("", "/a", "..", "..a", "../a", "a/../b", "a/..")
    },
    "file without a key": Bad(
        _of(secret={"secretName": "s", "items": [{"key": "", "path": "p"}]}),
        f"{WHERE}.secret.items[0].key",
        "at least 1",
    ),
    "no template of a claim": Bad(_of(ephemeral={}), f"{WHERE}.ephemeral.volumeClaimTemplate", "missing"),
    "claim without storage": Bad(
        _claim(resources={"requests": {"cpu": "1"}}),
        f"{WHERE}.ephemeral.volumeClaimTemplate.spec.resources",
        "such as 100Gi",
    ),
    "claim without requests": Bad(
        _claim(resources={"limits": {"storage": "1Gi"}}),
        f"{WHERE}.ephemeral.volumeClaimTemplate.spec.resources.requests",
        "missing",
    ),
    **{
        f"claim of {size!r}": Bad(
            _claim(resources={"requests": {"storage": size}}),
            f"{WHERE}.ephemeral.volumeClaimTemplate.spec.resources.requests.storage",
            says,
        )
        for size, says in (
            ("0", "above 0"),
            ("0.0Gi", "above 0"),
            (0, "a number from 1"),
            ("-1", "above 0"),
            ("1Kib", "above 0"),
        )
    },
    **{
        f"at most {size!r}": Bad(volume(emptyDir={"sizeLimit": size}), f"{WHERE}.emptyDir.sizeLimit", says)
        for size, says in (
            ("-1", "such as 1"),
            (-1, "from 0"),
            ("1GB", "such as 1"),
            ("", "such as 1"),
            (True, "such as 1"),
        )
    },
    "claim without access": Bad(
        _claim(accessModes=[]), f"{WHERE}.ephemeral.volumeClaimTemplate.spec.accessModes", "at least 1"
    ),
    "claim of another access": Bad(
        _claim(accessModes=["RWO"]), f"{WHERE}.ephemeral.volumeClaimTemplate.spec.accessModes[0]", "ReadWriteMany"
    ),
    "claim of no class": Bad(
        _claim(storageClassName="Fast"),
        f"{WHERE}.ephemeral.volumeClaimTemplate.spec.storageClassName",
        "lower-case letters",
    ),
    "no driver": Bad(_of(csi={"driver": "-"}), f"{WHERE}.csi.driver", "csi.example.com"),
    "long driver": Bad(_of(csi={"driver": "x" * 64}), f"{WHERE}.csi.driver", "63 characters"),
    "driver without its secret": Bad(
        _of(csi={"driver": "a", "nodePublishSecretRef": {}}), f"{WHERE}.csi.nodePublishSecretRef.name", "missing"
    ),
    "path of the node upwards": Bad(_of(hostPath={"path": "/a/../b"}), f"{WHERE}.hostPath.path", "without .."),
    "no path of the node": Bad(_of(hostPath={"path": ""}), f"{WHERE}.hostPath.path", "at least 1"),
    "no kind of path": Bad(_of(hostPath={"path": "/a", "type": "Folder"}), f"{WHERE}.hostPath.type", "Directory"),
    "export elsewhere": Bad(_of(nfs={"server": "a", "path": "b"}), f"{WHERE}.nfs.path", "absolute path"),
    "export of nobody": Bad(_of(nfs={"server": "", "path": "/b"}), f"{WHERE}.nfs.server", "at least 1"),
    "two sources in one": Bad(
        _projected({"secret": {"name": "s"}, "configMap": {"name": "c"}}),
        f"{WHERE}.projected.sources[0]",
        "an item of its own",
    ),
    "projected secret without a name": Bad(
        _projected({"secret": {}}), f"{WHERE}.projected.sources[0].secret.name", "missing"
    ),
    "token upwards": Bad(
        _projected({"serviceAccountToken": {"path": "../a"}}),
        f"{WHERE}.projected.sources[0].serviceAccountToken.path",
        "neither with a slash",
    ),
    "file of nothing": Bad(
        _of(downwardAPI={"items": [{"path": "a"}]}), f"{WHERE}.downwardAPI.items[0]", "exactly one of fieldRef"
    ),
    "file of a field of no version": Bad(
        _of(downwardAPI={"items": [{"path": "a", "fieldRef": {"fieldPath": "metadata.uid", "apiVersion": "v2"}}]}),
        f"{WHERE}.downwardAPI.items[0].fieldRef.apiVersion",
        "write one of v1",
    ),
}
