"""What the fields of Kubernetes' own types mean, for ``kubectl explain``; facts from its API reference."""

from collections.abc import Mapping
from typing import Final

_MODE: Final = "Permission bits of the files, 0 to 0777 in octal; JSON and kubectl have them in decimal. Absent: 0644."
_FILE_MODE: Final = "Permission bits of this file. Absent: defaultMode of the volume."
_ITEMS: Final = "The keys that become files, each at a path of its own. Absent: every key, under its name."
_READ_ONLY: Final = "true: mounted read-only. Absent: false."
_OPTIONAL: Final = "true: pods start without it where it, or one of its keys, is missing. Absent: they wait for it."
_PREFERRED: Final = "Wishes: the scheduler prefers nodes that fulfil more of them, by weight."
_NODES: Final = "Nodes that a pod may run on, and nodes that it had better run on."
_KEY: Final = "The label's key."
_KEYS_OF_SELECTOR: Final = "Requirements on labels; all of them must hold."

FIELDS: Final[Mapping[str, Mapping[str, str]]] = {
    "V1Affinity": {
        "nodeAffinity": _NODES,
        "podAffinity": "Other pods to be near to.",
        "podAntiAffinity": "Other pods to keep away from.",
    },
    "V1NodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": _PREFERRED,
        "requiredDuringSchedulingIgnoredDuringExecution": "What a node must have for a pod to be scheduled to it.",
    },
    "V1PreferredSchedulingTerm": {
        "preference": "What a node should have.",
        "weight": "How much it counts, 1 to 100.",
    },
    "V1NodeSelector": {"nodeSelectorTerms": "Alternatives: a node has to fulfil one of them."},
    "V1NodeSelectorTerm": {
        "matchExpressions": "Requirements on the node's labels; all must hold.",
        "matchFields": "Requirements on the node's fields, of which there is metadata.name; all must hold.",
    },
    "V1NodeSelectorRequirement": {
        "key": _KEY,
        "operator": "In, NotIn, Exists, DoesNotExist, Gt or Lt.",
        "values": "What the label is compared with: several for In and NotIn, one integer for Gt and Lt, else none.",
    },
    "V1PodAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": _PREFERRED,
        "requiredDuringSchedulingIgnoredDuringExecution": "Pods that must run in the domain where a pod is scheduled.",
    },
    "V1PodAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": "Wishes: the scheduler avoids the domains of such pods.",
        "requiredDuringSchedulingIgnoredDuringExecution": (
            "Pods that must not run in the domain where a pod is scheduled."
        ),
    },
    "V1WeightedPodAffinityTerm": {
        "podAffinityTerm": "The other pods, and the domain.",
        "weight": "How much it counts, 1 to 100.",
    },
    "V1PodAffinityTerm": {
        "labelSelector": "Labels of the other pods; {} is every pod. Absent: none.",
        "matchLabelKeys": "Labels whose value the other pods must share with the pod that is scheduled.",
        "mismatchLabelKeys": "Labels whose value the other pods must not share with it.",
        "namespaceSelector": "Labels of the other pods' namespaces, besides namespaces; {} is every namespace.",
        "namespaces": "Namespaces of the other pods. Absent, and without namespaceSelector: the pod's own.",
        "topologyKey": "The node label whose equal values make one domain, such as kubernetes.io/hostname.",
    },
    "V1LabelSelector": {
        "matchExpressions": _KEYS_OF_SELECTOR,
        "matchLabels": "Labels with exactly these values; all must be there.",
    },
    "V1LabelSelectorRequirement": {
        "key": _KEY,
        "operator": "In, NotIn, Exists or DoesNotExist.",
        "values": "What the label is compared with: one or more for In and NotIn, else none.",
    },
    "V1Toleration": {
        "effect": "Effect of the tolerated taint. Absent: every effect.",
        "key": "Key of the tolerated taint. Absent, with operator Exists: every taint.",
        "operator": "Equal compares the value too, Exists only the key. Absent: Equal.",
        "tolerationSeconds": "How long a NoExecute taint is borne, in seconds; 0 or less: not at all. Absent: forever.",
        "value": "Value of the tolerated taint, for Equal.",
    },
    "V1TopologySpreadConstraint": {
        "labelSelector": "The pods that are counted. Absent: those of this InferenceService.",
        "matchLabelKeys": "Labels whose value the counted pods must share with the pod that is scheduled.",
        "maxSkew": "By how many pods a domain may be ahead of the emptiest one.",
        "minDomains": "At least this many domains are counted, missing ones as empty. Only with DoNotSchedule.",
        "nodeAffinityPolicy": "Whether only nodes count that the pod's affinity and selector allow. Absent: Honor.",
        "nodeTaintsPolicy": "Whether nodes with taints that the pod does not tolerate are left out. Absent: Ignore.",
        "topologyKey": "The node label whose equal values make one domain, such as topology.kubernetes.io/zone.",
        "whenUnsatisfiable": "DoNotSchedule lets the pod wait, ScheduleAnyway takes the constraint as a wish.",
    },
    "V1PodSecurityContext": {
        "appArmorProfile": "AppArmor profile of the containers.",
        "fsGroup": "Group that owns the volumes that support it, and that every container belongs to.",
        "fsGroupChangePolicy": "When a volume's files change owner: OnRootMismatch or Always. Absent: Always.",
        "runAsGroup": "Primary group of the processes.",
        "runAsNonRoot": "true: a container that would run as root is not started.",
        "runAsUser": "User of the processes.",
        "seLinuxChangePolicy": "Recursive relabels a volume's files one by one. Absent: as the cluster does it.",
        "seLinuxOptions": "SELinux context of the containers.",
        "seccompProfile": "Filter of system calls.",
        "supplementalGroups": "Further groups of the processes.",
        "supplementalGroupsPolicy": "Merge adds the groups of the user in the image, Strict does not. Absent: Merge.",
        "sysctls": "Kernel parameters of the pod; the kubelet must allow them.",
    },
    "V1AppArmorProfile": {
        "localhostProfile": "Name of a profile that is loaded on the node, for type Localhost.",
        "type": "RuntimeDefault, Localhost or Unconfined.",
    },
    "V1SeccompProfile": {
        "localhostProfile": "Path of a profile below the kubelet's folder of them, for type Localhost.",
        "type": "RuntimeDefault, Localhost or Unconfined.",
    },
    "V1SELinuxOptions": {
        "level": "Level of the context.",
        "role": "Role of the context.",
        "type": "Type of the context.",
        "user": "User of the context.",
    },
    "V1Sysctl": {"name": "Name of the parameter.", "value": "Its value."},
    "V1CSIVolumeSource": {
        "driver": "Name of the CSI driver.",
        "fsType": "File system to mount. Absent: the driver's own choice.",
        "nodePublishSecretRef": "A Secret that the driver gets when it mounts.",
        "readOnly": _READ_ONLY,
        "volumeAttributes": "What the driver is told, in its own words.",
    },
    "V1LocalObjectReference": {"name": "Name of the object, in the same namespace."},
    "V1ConfigMapVolumeSource": {
        "defaultMode": _MODE,
        "items": _ITEMS,
        "name": "Name of the ConfigMap.",
        "optional": _OPTIONAL,
    },
    "V1SecretVolumeSource": {
        "defaultMode": _MODE,
        "items": _ITEMS,
        "optional": _OPTIONAL,
        "secretName": "Name of the Secret.",
    },
    "V1KeyToPath": {
        "key": "The key.",
        "mode": _FILE_MODE,
        "path": "Where its file lies in the volume.",
    },
    "V1DownwardAPIVolumeSource": {"defaultMode": _MODE, "items": "The files."},
    "V1DownwardAPIVolumeFile": {
        "fieldRef": "A field of the pod.",
        "mode": _FILE_MODE,
        "path": "Where the file lies in the volume.",
        "resourceFieldRef": "A resource of a container.",
    },
    "V1ObjectFieldSelector": {
        "apiVersion": "Version of the pod's schema. Absent: v1, the only one.",
        "fieldPath": "The field, such as metadata.labels or metadata.annotations['KEY'].",
    },
    "V1ResourceFieldSelector": {
        "containerName": "The container: engine or agent.",
        "divisor": "Unit of the value, such as 1Mi. Absent: 1.",
        "resource": "The resource, such as limits.memory.",
    },
    "V1EmptyDirVolumeSource": {
        "medium": "Memory for a folder in memory, which counts against the limit. Absent: the node's disk.",
        "sizeLimit": "Most that it may hold; a pod that exceeds it is evicted. Absent: no limit.",
    },
    "V1EphemeralVolumeSource": {"volumeClaimTemplate": "The claim that is made for each pod."},
    "V1PersistentVolumeClaimTemplate": {"spec": "What the claim asks for."},
    "V1PersistentVolumeClaimSpec": {
        "accessModes": "ReadWriteOnce, ReadOnlyMany, ReadWriteMany or ReadWriteOncePod.",
        "dataSourceRef": "An object that the new volume is filled from, such as a VolumeSnapshot.",
        "resources": "How large the volume has to be.",
        "selector": "Labels of the PersistentVolume.",
        "storageClassName": 'The StorageClass; "" is none. Absent: the default one.',
        "volumeAttributesClassName": "The VolumeAttributesClass.",
        "volumeMode": "Filesystem or Block. Absent: Filesystem.",
        "volumeName": "Name of the PersistentVolume, where a certain one is meant.",
    },
    "V1TypedObjectReference": {
        "apiGroup": "API group of the object. Absent: the core group.",
        "kind": "Kind of the object.",
        "name": "Name of the object.",
        "namespace": "Its namespace. Absent: the pod's own.",
    },
    "V1VolumeResourceRequirements": {
        "limits": "Largest size, under storage.",
        "requests": "Smallest size, under storage.",
    },
    "V1HostPathVolumeSource": {
        "path": "The folder or file of the node.",
        "type": "What has to be there, such as Directory or FileOrCreate. Absent: it is not checked.",
    },
    "V1ImageVolumeSource": {
        "pullPolicy": "Always, Never or IfNotPresent. Absent: Always for the tag latest, else IfNotPresent.",
        "reference": "The image or artifact, as a container's image is named.",
    },
    "V1NFSVolumeSource": {
        "path": "The exported path.",
        "readOnly": _READ_ONLY,
        "server": "Host name or address of the server.",
    },
    "V1PersistentVolumeClaimVolumeSource": {"claimName": "Name of the claim.", "readOnly": _READ_ONLY},
    "V1ProjectedVolumeSource": {"defaultMode": _MODE, "sources": "What lies in the folder; one source an item."},
    "V1VolumeProjection": {
        "configMap": "Keys of a ConfigMap.",
        "downwardAPI": "Fields of the pod.",
        "secret": "Keys of a Secret.",
        "serviceAccountToken": "A token of the pod's ServiceAccount.",
    },
    "V1ConfigMapProjection": {"items": _ITEMS, "name": "Name of the ConfigMap.", "optional": _OPTIONAL},
    "V1DownwardAPIProjection": {"items": "The files."},
    "V1SecretProjection": {"items": _ITEMS, "name": "Name of the Secret.", "optional": _OPTIONAL},
    "V1ServiceAccountTokenProjection": {
        "audience": "Whom the token is for. Absent: the API server.",
        "expirationSeconds": "How long the token lives, in seconds; it is renewed before. Absent: 3600.",
        "path": "Where the token's file lies in the volume.",
    },
}
"""Meaning of each field, by the client's name of its type."""
