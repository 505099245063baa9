"""Scalar types that the objects share: their bounds, their patterns, and what a good value looks like.

Quantities and durations stay strings, as a person wrote them; functions here read them. Every pattern is understood
alike by Go's RE2 (the API server) and by Rust's regex (pydantic).
"""

import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from typing import Annotated

from pydantic import Field, Strict, StringConstraints

from stoker.api.quantities import POSITIVE_PATTERN, QUANTITY_PATTERN, Between, Unit

_THOUSANDTHS = r"0\.([1-9][0-9]{0,2}|0[1-9][0-9]?|00[1-9])"
FRACTION_PATTERN = rf"^({_THOUSANDTHS}|1(\.0{{1,3}})?)$"
TIMESTAMP_PATTERN = (
    r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?"
    r"(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"
)
SUBDOMAIN_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
LABEL_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_KEY_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = rf"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?{_KEY_NAME}"
_ANNOTATION_KEY = rf"([A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*/)?{_KEY_NAME}"
LABEL_KEY_PATTERN = f"^{_LABEL_KEY}$"
OPTIONAL_KEY_PATTERN = f"^({_LABEL_KEY})?$"
ANNOTATION_KEY_PATTERN = f"^{_ANNOTATION_KEY}$"
"""Of annotations Kubernetes takes prefixes in capitals too."""
MAX_KEY_PREFIX = 253
"""Longest prefix of such a key, in characters."""
LABEL_VALUE_PATTERN = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
DATA_KEY_PATTERN = r"^[-._a-zA-Z0-9]+$"
ENV_NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_.-]*$"
HF_SOURCE = r"hf://[A-Za-z0-9][A-Za-z0-9._-]{0,95}/[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9_][A-Za-z0-9._-]*)*"
PVC_SOURCE = r"pvc://[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*"
SOURCE_PATTERN = rf"^({HF_SOURCE}|{PVC_SOURCE})$"
KNOWN_SCHEME = r"^(hf|pvc)://"
"""How a source begins. Where one does not, that alone is told, and nothing that would depend on the scheme."""
SERVED_NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:/-]*$"
REVISION_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._/-]*$"
VERSION_PATTERN = r"^(b[1-9][0-9]{0,6}|[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,4})?([.+-][0-9A-Za-z][0-9A-Za-z.-]*)?)$"
_COMPONENT = r"[a-z0-9]+([._-]+[a-z0-9]+)*"
IMAGE_PATTERN = (
    rf"^([a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?(:[0-9]{{1,5}})?/)?{_COMPONENT}(/{_COMPONENT})*"
    r"(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@[a-z0-9]+:[0-9a-f]{32,128})?$"
)
METHOD_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.-]*$"
_PART = r"([^/:.\x00-\x1f][^/:\x00-\x1f]*|\.[^/:.\x00-\x1f][^/:\x00-\x1f]*|\.\.[^/:\x00-\x1f]+)"
"""One step of a path, neither ``.`` nor ``..``: a path has one spelling, so that those of Stoker are recognised."""
_LAX_STEP = r"[^/.][^/]*|\.([^/.][^/]*)?|\.\.[^/]+"
"""One step of a path of Kubernetes, which refuses ``..`` alone."""
HOST_PATH_PATTERN = rf"^({_LAX_STEP})?(/({_LAX_STEP})?)*$"
FILE_PATH_PATTERN = rf"^([^/.][^/]*|\.([^/.][^/]*)?)(/({_LAX_STEP})?)*$"
"""Where a file of a volume lies in it (``ValidateLocalNonReservedPath`` of Kubernetes)."""
PROFILE_PATH_PATTERN = rf"^(({_LAX_STEP})(/({_LAX_STEP})?)*)?$"
"""Where a profile lies below the kubelet's folder (``validateLocalDescendingPath``)."""
UNPADDED_PATTERN = r"^[^ \t\n\r\v\f]([\s\S]*[^ \t\n\r\v\f])?$"
NFS_PATH_PATTERN = r"^/[\s\S]*$"
OPTIONAL_NAME_PATTERN = f"^({SUBDOMAIN_PATTERN[1:-1]})?$"
DRIVER_PATTERN = r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?(\.[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?)*$"
PATH_PATTERN = rf"^(/{_PART})+/?$"
RELATIVE_PATH_PATTERN = rf"^{_PART}(/{_PART})*/?$"
SYSCTL_PATTERN = r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
POD_FIELD_PATTERN = (
    r"^(metadata\.(name|namespace|uid)|spec\.(nodeName|serviceAccountName)|status\.(hostIPs?|podIPs?)"
    rf"|metadata\.labels\['{_LABEL_KEY}'\]|metadata\.annotations\['{_ANNOTATION_KEY}'\])$"
)
"""The fields of a pod that a variable may hold (``validEnvDownwardAPIFieldPathExpressions`` of Kubernetes)."""
FILE_FIELD_PATTERN = (
    r"^(metadata\.(name|namespace|uid|labels|annotations)"
    rf"|metadata\.labels\['{_LABEL_KEY}'\]|metadata\.annotations\['{_ANNOTATION_KEY}'\])$"
)
"""The fields of a pod that a file of a volume may hold (``validVolumeDownwardAPIFieldPathExpressions``)."""
RESOURCE_FIELD_PATTERN = r"^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-[1-9][0-9]{0,9}([kMG]|[KMG]i)?)$"
DIVISOR_PATTERN = r"^([01](\.0{1,3})?(m|[kMGTPE]|[KMGTPE]i)?|1000[mkMGTP]?|1024[KMGTP]i)$"
"""A unit of a resource; 0 stands for none, which is 1 (``validateContainerResourceDivisor``). A thousand of one unit,
or 1024 of a binary one, is one of the next."""

_LABEL_KEY_EXAMPLE = "write a label's key: [prefix/]name, such as example.com/team, the name at most 63 characters"
EXAMPLES = {
    QUANTITY_PATTERN: "write a quantity such as 1, 500m, 10Gi or 1e9",
    POSITIVE_PATTERN: "write a quantity above 0 such as 1, 500m, 10Gi or 1e9",
    FRACTION_PATTERN: 'write a fraction above 0 and at most 1 such as "0.9"',
    TIMESTAMP_PATTERN: "write a time stamp such as 2026-01-31T12:00:00Z",
    SUBDOMAIN_PATTERN: "write a Kubernetes name: lower-case letters, digits, - and .",
    LABEL_PATTERN: "write a short Kubernetes name: lower-case letters, digits and -",
    LABEL_KEY_PATTERN: _LABEL_KEY_EXAMPLE,
    OPTIONAL_KEY_PATTERN: _LABEL_KEY_EXAMPLE,
    SYSCTL_PATTERN: "write the name of a kernel parameter such as net.core.somaxconn",
    LABEL_VALUE_PATTERN: "write at most 63 letters, digits, -, _ or ., with a letter or digit at both ends",
    DATA_KEY_PATTERN: "write the key of the Secret or ConfigMap: letters, digits, -, _ and .",
    ENV_NAME_PATTERN: "write the name of a variable: letters, digits, _, - and ., not beginning with a digit",
    SOURCE_PATTERN: "write hf://owner/name, hf://owner/name/file.gguf or pvc://claim/path/in/the/volume",
    SERVED_NAME_PATTERN: "write letters, digits, ., _, :, / and -, beginning with a letter or digit",
    REVISION_PATTERN: "write a commit, tag or branch of the model's repository",
    VERSION_PATTERN: "write the engine's version such as 0.32.0 (vLLM) or b11434 (llama.cpp)",
    IMAGE_PATTERN: "write an image reference such as docker.io/vllm/vllm-openai:v0.32.0",
    METHOD_PATTERN: "write the engine's own name for it such as fp8",
    PATH_PATTERN: "write an absolute path such as /data, without a colon and without . or .. as a step",
    HOST_PATH_PATTERN: "write a path of the node without .. as a step, such as /mnt/models",
    FILE_PATH_PATTERN: "write a path that begins neither with a slash nor with .., and has no .. as a step",
    PROFILE_PATH_PATTERN: "write a path that does not begin with a slash and has no .. as a step, such as my.json",
    UNPADDED_PATTERN: "write the name of a profile without spaces around it",
    NFS_PATH_PATTERN: "write an absolute path such as /exports/models",
    OPTIONAL_NAME_PATTERN: "write a Kubernetes name: lower-case letters, digits, - and .",
    DRIVER_PATTERN: "write the name of the driver such as csi.example.com",
    RELATIVE_PATH_PATTERN: "write a path that does not begin with a slash, without a colon and without . or .. in it",
    POD_FIELD_PATTERN: (
        "write metadata.name, metadata.namespace, metadata.uid, metadata.labels['KEY'], metadata.annotations['KEY'], "
        "spec.nodeName, spec.serviceAccountName, status.hostIP, status.hostIPs, status.podIP or status.podIPs"
    ),
    FILE_FIELD_PATTERN: (
        "write metadata.name, metadata.namespace, metadata.uid, metadata.labels, metadata.annotations, "
        "metadata.labels['KEY'] or metadata.annotations['KEY']"
    ),
    RESOURCE_FIELD_PATTERN: (
        "write limits. or requests. with cpu, memory, ephemeral-storage or hugepages-SIZE, such as limits.memory"
    ),
    DIVISOR_PATTERN: (
        'write a unit: "1", or "0" for none; 1m for CPU; 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi or 1Ei '
        "for bytes"
    ),
}
"""What would be right, by pattern."""

MEMORY = Between("1", "999Ti", "write a quantity such as 80Gi or 512Mi, at most 999Ti")
"""Bytes of memory: no node has more."""
CPU = Between("1m", "10k", 'write a number of cores such as 8, "0.5" or 500m, at most 10000')

# ---- quantities ----------------------------------------------------------------------------------------------------
MemoryQuantity = Annotated[str, MEMORY]
CpuQuantity = Annotated[str, CPU]

# ---- strings -------------------------------------------------------------------------------------------------------
Fraction = Annotated[str, StringConstraints(pattern=FRACTION_PATTERN, max_length=8)]
Timestamp = Annotated[str, StringConstraints(pattern=TIMESTAMP_PATTERN, max_length=40)]
ObjectName = Annotated[str, StringConstraints(pattern=SUBDOMAIN_PATTERN, max_length=253)]
ShortName = Annotated[str, StringConstraints(pattern=LABEL_PATTERN, max_length=63)]
LabelValue = Annotated[str, StringConstraints(pattern=LABEL_VALUE_PATTERN, max_length=63)]
DataKey = Annotated[str, StringConstraints(pattern=DATA_KEY_PATTERN, max_length=253)]
EnvName = Annotated[str, StringConstraints(pattern=ENV_NAME_PATTERN, max_length=128)]
ModelSource = Annotated[str, StringConstraints(pattern=SOURCE_PATTERN, max_length=512)]
ServedName = Annotated[str, StringConstraints(pattern=SERVED_NAME_PATTERN, max_length=128)]
ModelRevision = Annotated[str, StringConstraints(pattern=REVISION_PATTERN, max_length=128)]
EngineVersion = Annotated[str, StringConstraints(pattern=VERSION_PATTERN, max_length=32)]
Image = Annotated[str, StringConstraints(pattern=IMAGE_PATTERN, max_length=512)]
Argument = Annotated[str, StringConstraints(max_length=4096)]
MethodName = Annotated[str, StringConstraints(pattern=METHOD_PATTERN, max_length=63)]
Prompt = Annotated[str, StringConstraints(min_length=1, max_length=2048)]
AbsolutePath = Annotated[str, StringConstraints(pattern=PATH_PATTERN, max_length=512)]
RelativePath = Annotated[str, StringConstraints(pattern=RELATIVE_PATH_PATTERN, max_length=512)]
IpAddress = Annotated[str, StringConstraints(min_length=1, max_length=45)]
PodField = Annotated[str, StringConstraints(pattern=POD_FIELD_PATTERN, max_length=256)]
ResourceField = Annotated[str, StringConstraints(pattern=RESOURCE_FIELD_PATTERN, max_length=128)]
Divisor = Annotated[str, Unit(DIVISOR_PATTERN, EXAMPLES[DIVISOR_PATTERN])]
AnnotationValue = Annotated[str, StringConstraints(max_length=4096)]
EnvValue = Annotated[str, StringConstraints(max_length=8192)]

# ---- numbers -------------------------------------------------------------------------------------------------------
Count = Annotated[int, Strict(), Field(ge=1, le=1_000_000)]
Layers = Annotated[int, Strict(), Field(ge=1, le=1024)]
LayerCount = Annotated[int, Strict(), Field(ge=0, le=1024)]
Heads = Annotated[int, Strict(), Field(ge=1, le=4096)]
Width = Annotated[int, Strict(), Field(ge=1, le=1_048_576)]
Tokens = Annotated[int, Strict(), Field(ge=1, le=100_000_000)]
Ranks = Annotated[int, Strict(), Field(ge=1, le=64)]
Amount = Annotated[int, Strict(), Field(ge=1, le=1_000_000_000_000_000)]
Replicas = Annotated[int, Strict(), Field(ge=0, le=10_000)]
Flag = Annotated[bool, Strict()]


class Switch(StrEnum):
    """On or off, where absent leaves it to the engine."""

    ENABLED = "Enabled"
    DISABLED = "Disabled"


def memory_bytes(quantity: str) -> int:
    """Return a memory quantity in bytes, rounded down (``memory_bytes("80Gi") == 85899345920``).

    Raises ``ValueError`` where the string is no memory quantity of the objects.
    """
    return int(MEMORY.read(quantity))


def cpu_millicores(quantity: str) -> int:
    """Return a CPU quantity in thousandths of a core, rounded up (``"0.5"`` and ``"500m"`` are 500).

    Raises ``ValueError`` where the string is no CPU quantity of the objects.
    """
    return int((CPU.read(quantity) * 1000).to_integral_value(ROUND_CEILING))


def fraction(text: str) -> Decimal:
    """Return a fraction such as ``"0.9"`` exactly. Raises ``ValueError`` where it is none."""
    if not re.fullmatch(FRACTION_PATTERN, text):
        raise ValueError(f"{text!r} is no fraction; {EXAMPLES[FRACTION_PATTERN]}")
    return Decimal(text)


@dataclass(frozen=True, slots=True)
class HubSource:
    """A model on the Hugging Face Hub: ``hf://owner/name``, or one file of it (``hf://owner/name/model.gguf``)."""

    owner: str
    name: str
    file: str | None = None

    @property
    def repository(self) -> str:
        """The repository as the Hub names it: ``owner/name``."""
        return f"{self.owner}/{self.name}"


@dataclass(frozen=True, slots=True)
class ClaimSource:
    """A model on a volume: ``pvc://claim/path``; an empty path is the volume's root."""

    claim: str
    path: str = ""


def model_source(source: str) -> HubSource | ClaimSource:
    """Read ``spec.model.source``. Raises ``ValueError`` where it is malformed."""
    if not re.fullmatch(SOURCE_PATTERN, source):
        raise ValueError(f"{source!r} is no model source; {EXAMPLES[SOURCE_PATTERN]}")
    scheme, _, rest = source.partition("://")
    first, _, tail = rest.partition("/")
    if scheme == "pvc":
        return ClaimSource(claim=first, path=tail)
    name, _, file = tail.partition("/")
    return HubSource(owner=first, name=name, file=file or None)
