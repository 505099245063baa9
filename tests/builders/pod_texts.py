"""Texts in fields of pods, good and bad: fields, resources, addresses, annotations that Kubernetes reads."""

POD_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.labels['example.com/team']",
    "metadata.labels['Tier']",
    "metadata.annotations['Example.com/Note_1']",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
NO_POD_FIELDS = (
    "metadata.labels",
    "metadata.annotations",
    "metadata.generation",
    "metadata.labels['']",
    "metadata.labels['Example.com/team']",
    "metadata.labels[team]",
    "metadata.labels['a/b/c']",
    "metadata.annotations['-a']",
    "metadata.name['a']",
    "spec.schedulerName",
    "spec.nodename",
    "status.phase",
    "status.podIPss",
    "podIP",
)
RESOURCES: tuple[tuple[str, str | int | None], ...] = (
    ("limits.cpu", None),
    ("requests.cpu", "1m"),
    ("limits.memory", "1"),
    ("requests.memory", "1Mi"),
    ("limits.ephemeral-storage", "1E"),
    ("requests.ephemeral-storage", "1k"),
    ("limits.hugepages-2Mi", "1Ei"),
    ("requests.hugepages-1Gi", "1Gi"),
    *(("limits.cpu", divisor) for divisor in ("0", "0m", "0.0", "0Mi", "1", "1.0", "1.000", "1.0m", "1000m", 0, 1)),
    *(("limits.memory", divisor) for divisor in ("0", "0m", "0.0", "0Ki", "1.0", "1.00Mi", "1.0k", "1000m", 0, 1)),
    *(("limits.memory", divisor) for divisor in ("1024Ki", "1024Pi", "1000", "1000k", "1000P")),
)
NO_RESOURCES = ("limits.gpu", "limits.nvidia.com/gpu", "limits.hugepages", "memory", "limits.", "requests.cpus")
ADDRESSES = ("10.0.0.7", "::", "fd00::7", "FE80:0:0:0:0:0:0:0ABC", "64:ff9b::10.0.0.7")
NO_ADDRESSES = (
    "abc",
    "10.0.0",
    "10.0.0.256",
    "010.0.0.7",
    "10.0.0.7/32",
    "fe80::1%eth0",
    "::ffff:10.0.0.7",
    "::ffff:a00:7",
    "[::1]",
    "fd00::1::2",
    "hub.internal",
    "10.0.0.7 ",
)

COST = "controller.kubernetes.io/pod-deletion-cost"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
CONTAINER_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/engine"
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
GOOD_ANNOTATIONS = (
    *((COST, value) for value in ("0", "-1", "-0", "2147483647", "-2147483648")),
    *((SECCOMP, value) for value in ("runtime/default", "docker/default", "unconfined", "localhost/a/b.json")),
    (CONTAINER_SECCOMP, "localhost/"),
    *((f"{APPARMOR}engine", value) for value in ("", "runtime/default", "unconfined", "localhost/", "localhost/../a")),
)
BAD_ANNOTATIONS = (
    *((COST, value, "32 bits") for value in ("", "+1", "01", "1.5", "2147483648", "-2147483649", "9" * 30)),
    *((SECCOMP, value, "of seccomp") for value in ("", "RuntimeDefault", "localhost//a", "localhost/..")),
    (CONTAINER_SECCOMP, "none", "of seccomp"),
    *((f"{APPARMOR}engine", value, "of AppArmor") for value in ("RuntimeDefault", "localhost")),
    (f"{APPARMOR}other", "unconfined", "for engine or agent"),
    ("kubernetes.io/config.mirror", "", "Kubernetes' own"),
    ("scheduler.alpha.kubernetes.io/tolerations", "no JSON", "under pod.tolerations"),
)
LONGEST_KEY = f"{'a' * 253}/{'b' * 63}"
LONGEST_NAME = "b" * 63
