"""Failures by name: what is observed, and what has to be said about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from stoker.plan.landing import GPU_RESOURCE as GPU
from stoker.plan.snapshot import ContainerView, NodeView, PodView
from stoker.plan.types import Layout
from stoker.status.case import Case
from tests.builders import last_words as said
from tests.builders.layouts import GIB, a_layout
from tests.builders.specs import SpecBuilder, a_spec
from tests.builders.views import a_node, a_pod

A100 = "NVIDIA-A100-SXM4-80GB"
HUB = a_spec().set("model.credentialsSecret", "hub")
CPP = a_spec().llama_cpp()


def a_container(name: str = "engine", **changes: object) -> ContainerView:
    """A container that has not ended."""
    view = ContainerView(name, ready=False, started=False, restart_count=0)
    return replace(view, **changes)  # type: ignore[arg-type]


def crashed(words: str, code: int = 1, **changes: object) -> PodView:
    """A pod whose engine ended and is started again."""
    engine = a_container(exit_code=code, restart_count=3, waiting_reason="CrashLoopBackOff", last_words=words)
    return replace(a_pod(node="gpu-a"), containers=(a_container("agent", ready=True), replace(engine, **changes)))  # type: ignore[arg-type]


def with_containers(*containers: ContainerView, **changes: object) -> PodView:
    """A pod on a node with these containers."""
    return replace(a_pod(node="gpu-a"), containers=containers, **changes)  # type: ignore[arg-type]


def waiting(reason: str, message: str, name: str = "engine") -> PodView:
    """A pod with a container that waits."""
    return replace(a_pod(node="gpu-a"), containers=(a_container(name, waiting_reason=reason, waiting_message=message),))


def refused(reason: str, message: str) -> PodView:
    """A pod that its node ended."""
    return replace(a_pod(node="gpu-a", phase="Failed"), reason=reason, message=message)


@dataclass(frozen=True, slots=True)
class Known:
    """A failure, and what is said about it."""

    pod: PodView
    reason: str
    says: tuple[str, ...]
    stalled: bool
    spec: SpecBuilder = field(default_factory=a_spec)
    layout: Layout = field(default_factory=a_layout)
    nodes: tuple[NodeView, ...] = ()
    held: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    ending: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    replaced: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def case(self) -> Case:
        """The case as the chain sees it."""
        spec = self.spec.build()
        return Case(self.pod, spec, self.layout, self.nodes, self.held, ending=self.ending, replaced=self.replaced)


def unplaced(message: str, gpus: int = 0) -> PodView:
    """A pod that no node takes."""
    return a_pod(gpus=gpus, unschedulable=message)


NODES = (a_node("gpu-a", gpus=4), a_node("gpu-b", gpus=4), a_node("cpu", memory_bytes=64 * GIB))
HELD = {"gpu-a": {"nvidia.com/gpu": 4}, "gpu-b": {"nvidia.com/gpu": 3}}
CPU = a_layout(0, memory_request_bytes=8 * GIB)

TAINTS = (("gpu", "only", "NoSchedule"), ("x", "", "PreferNoSchedule"), (GPU, "", "NoSchedule"))

KNOWN: Mapping[str, Known] = {
    # ---- no node -----------------------------------------------------------------------------------------------------
    "too few GPUs free": Known(
        unplaced(said.NO_GPU_FREE, gpus=2), "Unschedulable",
        ("2 nvidia.com/gpu on one node", "gpu-b has 1 of 4 free, gpu-a has 0 of 4 free", "lower spec.replicas"),
        stalled=False, nodes=NODES, held=HELD,
    ),
    "GPUs that the service's own ending pods hold": Known(
        unplaced(said.NO_GPU_FREE, gpus=2), "WaitingForEndingPods", ("on gpu-b", "starts when they are gone"),
        stalled=False, nodes=NODES, held=HELD, ending={"gpu-b": {"nvidia.com/gpu": 1}},
    ),
    "GPUs that the old revision's only pod holds": Known(
        unplaced(said.NO_GPU_FREE, gpus=2), "Unschedulable",
        ("gpu-b has 1 of 4 free", "set spec.rollout.strategy to Recreate"),
        stalled=False, nodes=NODES, held=HELD, replaced={"gpu-b": {"nvidia.com/gpu": 2}},
    ),
    "GPUs that one of the old revision's pods holds": Known(
        unplaced(said.NO_GPU_FREE, gpus=2), "Unschedulable",
        ("gpu-b has 1 of 4 free", "set spec.rollout.strategy to Replace"),
        stalled=False, nodes=NODES, held=HELD, replaced={"gpu-b": {"nvidia.com/gpu": 2}}, spec=a_spec().replicas(2),
    ),
    "fewer GPUs of the old revision than the pod needs": Known(
        unplaced(said.NO_GPU_FREE, gpus=4), "Unschedulable", ("lower spec.replicas",),
        stalled=False, nodes=NODES, held=HELD, replaced={"gpu-b": {"nvidia.com/gpu": 2}},
    ),
    "more GPUs than any node has": Known(
        unplaced(said.NO_GPU_FREE, gpus=8), "Unschedulable",
        ("8 nvidia.com/gpu", "lower spec.parallelism.tensor x pipeline to 4 at most"), stalled=False, nodes=NODES,
    ),
    "no GPU at all": Known(
        unplaced(said.NO_GPU_FREE, gpus=1), "Unschedulable",
        ("no node that it may use has any", "device plugin"), stalled=False, nodes=(a_node("cpu"),),
    ),
    "too little memory": Known(
        unplaced(said.NO_MEMORY_FREE, gpus=1), "Unschedulable",
        ("needs 24 GiB (derived; spec.resources.memory sets it) and 96 MiB for the agent",
         "gpu-b has 20 GiB of 256 GiB free, gpu-a has 6 GiB of 256 GiB free; free some of it, or add nodes"),
        stalled=False, nodes=NODES,
        held={"gpu-a": {"memory": 250 * GIB}, "gpu-b": {"memory": 236 * GIB}, "cpu": {"memory": 60 * GIB}},
    ),
    "too little CPU": Known(
        unplaced(said.NO_CPU_FREE, gpus=1), "Unschedulable",
        ("needs 4 cores (derived; spec.resources.cpu sets it) and 0.05 cores for the agent",
         "gpu-b has 3.5 cores of 32 cores free, gpu-a has 1 core of 32 cores free; free some of it, or add nodes",
         "spec.resources.memory"),
        stalled=False, nodes=NODES, held={"gpu-a": {"cpu": 31_000}, "gpu-b": {"cpu": 28_500}},
    ),
    "more memory than any node has": Known(
        unplaced(said.NO_MEMORY_FREE), "Unschedulable",
        ("cpu has 20 GiB of 20 GiB free; set a lower spec.resources.memory, or add larger nodes",), stalled=False,
        spec=CPP, nodes=(a_node("cpu", memory_bytes=20 * GIB),),
    ),
    "another product": Known(
        unplaced(said.NO_MATCH, gpus=1), "Unschedulable",
        (f"no node has nvidia.com/gpu.product {A100} (spec.accelerator.products)", "the nodes have: NVIDIA-H100"),
        stalled=False, spec=a_spec().on(A100), nodes=NODES,
    ),
    "node selector": Known(
        unplaced(said.NO_MATCH), "Unschedulable", ("no node has the label pool=a (spec.pod.nodeSelector)",),
        stalled=False, spec=a_spec().set("pod.nodeSelector", {"pool": "a"}), nodes=NODES,
    ),
    "taint": Known(
        unplaced(said.TAINTED), "Unschedulable", ("(gpu=only:NoSchedule)", "spec.pod.tolerations"), stalled=False,
        nodes=(a_node("gpu-a", gpus=4, taints=TAINTS),),
    ),
    "a taint of another value than is tolerated": Known(
        unplaced(said.TAINTED), "Unschedulable", ("(gpu=only:NoSchedule)", "spec.pod.tolerations"), stalled=False,
        spec=a_spec().set("pod.tolerations", [{"key": "gpu", "operator": "Equal", "value": "other"}]),
        nodes=(a_node("gpu-a", gpus=4, taints=TAINTS),),
    ),
    "GPUs behind a taint of another value than is tolerated": Known(
        unplaced(said.NO_GPU_FREE, gpus=1), "Unschedulable", ("no node that it may use has any",), stalled=False,
        spec=a_spec().on().set("pod.tolerations", [{"key": "gpu", "operator": "Equal", "value": "other"}]),
        nodes=(a_node("gpu-a", gpus=4, taints=TAINTS),),
    ),
    "spread": Known(unplaced(said.SPREAD), "Unschedulable", ("spec.pod.topologySpreadConstraints",), stalled=False),
    "something new from the scheduler": Known(
        unplaced("0/2 nodes are available: 2 node(s) were purple. preemption: none."), "Unschedulable",
        ("2 node(s) were purple",), stalled=False,
    ),
    "claim of the model missing": Known(
        unplaced(said.NO_CLAIM), "PersistentVolumeClaimNotFound", ("models", "spec.model.source"), stalled=True,
        spec=a_spec().model("pvc://models/llama"),
    ),
    "claim of a volume missing": Known(
        unplaced(said.NO_CLAIM), "PersistentVolumeClaimNotFound", ("models", "spec.pod.volumes"), stalled=True,
    ),
    "volume not bound": Known(
        unplaced(said.UNBOUND), "VolumeNotBound", ("spec.model.source", "StorageClass"), stalled=False,
        spec=a_spec().model("pvc://models"),
    ),
    "volume in another zone": Known(unplaced(said.OTHER_ZONE), "VolumeNotBound", ("spec.pod.volumes",), stalled=False),
    # ---- containers that do not start --------------------------------------------------------------------------------
    "image that does not exist": Known(
        waiting("ImagePullBackOff", said.PULL_ABSENT), "ImagePull",
        ("docker.io/vllm/vllm-openai:v0.99.0 does not exist", "spec.engine.version"), stalled=True,
    ),
    "image that needs credentials": Known(
        waiting("ErrImagePull", said.PULL_DENIED), "ImagePull", ("spec.pod.imagePullSecrets",), stalled=True,
    ),
    "registry out of reach": Known(
        waiting("ImagePullBackOff", said.PULL_AWAY), "ImagePull", ("cannot be pulled yet", "i/o timeout"),
        stalled=False,
    ),
    "no image reference": Known(
        waiting("InvalidImageName", said.BAD_IMAGE), "ImagePull", ("spec.engine.image",), stalled=True,
    ),
    "image of the agent": Known(
        waiting("ErrImagePull", said.PULL_ABSENT, "agent"), "ImagePull", ("the operator's own", "chart"), stalled=False,
    ),
    "secret missing": Known(
        waiting("CreateContainerConfigError", said.NO_SECRET), "SecretNotFound",
        ("no Secret keys", "spec.pod.env[0].valueFrom"), stalled=True,
        spec=a_spec().set("pod.env", [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}}]),
    ),
    "config map missing": Known(
        waiting("CreateContainerConfigError", said.NO_CONFIG_MAP), "ConfigMapNotFound", ("no ConfigMap settings",),
        True,
    ),
    "key of the credentials missing": Known(
        waiting("CreateContainerConfigError", said.NO_KEY), "SecretKeyNotFound",
        ("Secret hub has no key HF_TOKEN", "spec.model.credentialsSecret"), stalled=True, spec=HUB,
    ),
    "something new in the configuration": Known(
        waiting("CreateContainerConfigError", "purple"), "ContainerConfigInvalid", ("purple",), stalled=True,
    ),
    "image without the engine": Known(
        waiting("RunContainerError", said.NO_PROGRAM), "ContainerNotStarted",
        ("not an image of this engine", "spec.engine.image"), stalled=True,
    ),
    "runtime that fails": Known(
        waiting("CreateContainerError", "context deadline exceeded"), "ContainerNotStarted", ("does not start",), False,
    ),
    "refused by the device plugin": Known(
        refused("UnexpectedAdmissionError", said.ALLOCATE_FAILED), "UnexpectedAdmissionError",
        ("gpu-a", "device plugin", "more than one"), stalled=False,
    ),
    "evicted": Known(refused("Evicted", said.EVICTED), "Evicted", ("ephemeral-storage", "spec.pod.volumes"), False),
    "ended by the node": Known(refused("OutOfnvidia.com/gpu", "no GPU"), "RefusedByNode", ("gpu-a", "no GPU"), False),
    # ---- memory ------------------------------------------------------------------------------------------------------
    "OOMKilled": Known(
        crashed("", 137, terminated_reason="OOMKilled"), "OOMKilled",
        ("memory limit of 24Gi", "raise spec.resources.memory, such as 36Gi"), stalled=True,
    ),
    "OOMKilled on the CPU": Known(
        crashed("", 137, terminated_reason="OOMKilled"), "OOMKilled",
        ("limit of 8Gi", "such as 12Gi", "spec.context.maxLength"), stalled=True, spec=CPP, layout=CPU,
    ),
    "KV cache too small": Known(
        crashed(said.VLLM_KV), "KVCacheTooSmall",
        ("of 131072 tokens (spec.context.maxLength)", "needs 16.0 GiB and has 8.7 GiB", "the layout has 400000 tokens",
         "to 71216 at most", "memoryFraction (0.9)", "spec.parallelism.tensor (1)"),
        stalled=True, layout=a_layout(max_length=131072),
    ),
    "no KV cache at all": Known(
        crashed(said.VLLM_NO_BLOCKS), "KVCacheTooSmall", ("lower spec.context.maxLength",), stalled=True,
    ),
    "KV cache of llama.cpp": Known(
        crashed(said.LLAMA_KV), "KVCacheTooSmall", ("of 8192 tokens", "spec.resources.memory (8Gi)"), stalled=True,
        spec=CPP, layout=CPU,
    ),
    "CUDA out of memory": Known(
        crashed(said.VLLM_OOM), "CUDAOutOfMemory",
        ("spec.batching.maxSequences (256)", "spec.accelerator.memoryFraction (0.9)", "spec.parallelism.tensor (1)"),
        True,
    ),
    "CUDA out of memory in llama.cpp": Known(
        crashed(said.LLAMA_CUDA), "CUDAOutOfMemory", ("spec.accelerator.products",), stalled=True,
    ),
    "GPU in use": Known(
        crashed(said.VLLM_IN_USE), "DeviceMemoryInUse", ("12.18 GiB are free", "memoryFraction (0.9)"), stalled=False,
    ),
    "host memory": Known(
        crashed(said.LLAMA_HOST), "OutOfMemory", ("spec.resources.memory (8Gi now)", "insufficient memory"), True,
        spec=CPP, layout=CPU,
    ),
    # ---- arguments ---------------------------------------------------------------------------------------------------
    "wrong flag": Known(
        crashed(said.VLLM_FLAG, 2), "UnknownArgument",
        ("at version 0.32.0", "--max-tokens 5", "spec.engine.args or spec.engine.version"), stalled=True,
        spec=a_spec().set("engine.args", ["--max-tokens", "5"]),
    ),
    "wrong flag of llama.cpp": Known(
        crashed(said.LLAMA_FLAG, 2), "UnknownArgument", ("--foo", "spec.engine.args"), stalled=True, spec=CPP,
    ),
    "download refused": Known(
        crashed(said.LLAMA_NO_DOWNLOAD, 2), "RefusedArgument", ("take another spec.engine.image",), True, spec=CPP,
    ),
    "wrong value": Known(
        crashed(said.VLLM_VALUE, 2), "InvalidArgument", ("'fp9'", "spec.quantization.kvCache"), stalled=True,
    ),
    "wrong value of llama.cpp": Known(
        crashed(said.LLAMA_VALUE, 2), "InvalidArgument", ("-c: 'abc' is not a whole number",), stalled=True, spec=CPP,
    ),
    "longer than the model": Known(
        crashed(said.VLLM_LENGTH), "ContextTooLong", ("65536 are asked", "spec.context.maxLength to 32768"),
        stalled=True,
    ),
    "heads": Known(
        crashed(said.VLLM_HEADS), "TensorDoesNotDivide", ("14 attention heads", "by 4", "spec.parallelism.tensor"),
        True,
    ),
    # ---- the model ---------------------------------------------------------------------------------------------------
    "gated, without a token": Known(
        crashed(said.VLLM_GATED), "ModelGated", ("HF_TOKEN", "name it in spec.model.credentialsSecret"), stalled=True,
    ),
    "gated, with a token": Known(
        crashed(said.VLLM_GATED), "ModelGated", ("Secret hub (spec.model.credentialsSecret)", "terms"), True, spec=HUB,
    ),
    "forbidden": Known(crashed(said.HUB_403), "ModelGated", ("spec.model.credentialsSecret",), stalled=True),
    "model missing on the Hub": Known(
        crashed(said.HUB_ABSENT), "ModelNotFound", ("hf://meta-llama", "spec.model.source", "private"), stalled=True,
    ),
    "revision missing": Known(
        crashed(said.HUB_REVISION), "RevisionNotFound", ("0e9e39f", "spec.model.revision"), stalled=True,
        spec=a_spec().set("model.revision", "0e9e39f"),
    ),
    "Hub out of reach": Known(crashed(said.HUB_AWAY), "HubUnreachable", ("tried again",), stalled=False),
    "path missing": Known(
        crashed(said.VLLM_PATH), "ModelNotFound", ("pvc://models/llama", "/models/llama"), stalled=True,
        spec=a_spec().model("pvc://models/llama"),
    ),
    "file missing": Known(
        crashed(said.LLAMA_ABSENT), "ModelNotFound", ("spec.model.source", "/models/nothere.gguf"), True,
        spec=CPP,
    ),
    "file cut off": Known(crashed(said.LLAMA_CUT), "ModelBroken", ("failed to read key-value pairs",), True, spec=CPP),
    "no model file": Known(crashed(said.LLAMA_MAGIC), "ModelBroken", ("; the engine said: gguf_init",), True, spec=CPP),
    "quantization": Known(
        crashed(said.VLLM_METHOD), "QuantizationUnsupported", ("capability: 80", "spec.quantization.weights"),
        stalled=True,
    ),
    "architecture": Known(
        crashed(said.VLLM_ARCHITECTURE), "ModelUnsupported", ("FooForCausalLM", "spec.engine.version"), stalled=True,
    ),
    "architecture of llama.cpp": Known(
        crashed(said.LLAMA_ARCHITECTURE), "ModelUnsupported", ("'foo'", "spec.engine.version"), stalled=True, spec=CPP,
    ),
    "remote code": Known(crashed(said.VLLM_REMOTE), "RemoteCodeRefused", ("spec.model.source",), stalled=True),
    "shared memory": Known(crashed(said.VLLM_SHM), "NoSpaceLeft", ("spec.resources.memory", "1280 MiB"), stalled=True),
    "full volume": Known(crashed(said.NO_SPACE), "NoSpaceLeft", ("/cache in spec.pod.volumes",), stalled=True),
    "no GPU in the pod": Known(crashed(said.NO_GPU), "DeviceUnusable", ("spec.pod.runtimeClassName",), stalled=True),
    # ---- unknown -----------------------------------------------------------------------------------------------------
    "unknown end of vLLM": Known(
        crashed(said.VLLM_UNKNOWN), "CrashLoop", ("exit code 1: ImportError: libnccl.so.2: cannot open",),
        stalled=False,
    ),
    "unknown end of llama.cpp": Known(
        crashed(said.LLAMA_UNKNOWN), "CrashLoop", (": ggml_init: something quite new",), stalled=False, spec=CPP,
    ),
    "silent end": Known(crashed("", 139), "CrashLoop", ("exit code 139; it said nothing",), stalled=False),
    "first end": Known(
        crashed("Killed", 137, restart_count=1, waiting_reason=None), "Crashed", ("exit code 137: Killed",),
        stalled=False,
    ),
    "agent that ends": Known(
        with_containers(a_container("agent", exit_code=1, restart_count=4, last_words="bad config")),
        "CrashLoop", ("the agent ended with exit code 1: bad config",), stalled=False,
    ),
}  # fmt: skip

REFUSED = {
    "quota of GPUs": (
        said.QUOTA.format("abcde"),
        "QuotaExceeded",
        ("spec.replicas or spec.parallelism", "limited"),
        False,
    ),
    "quota of memory": (said.QUOTA_MEMORY, "QuotaExceeded", ("spec.resources.memory",), False),
    "quota that wants memory stated": (said.QUOTA_UNSTATED, "QuotaExceeded", ("must specify requests.memory",), False),
    "Pod Security": (said.POD_SECURITY, "PodSecurityViolation", ("spec.pod.volumes", "hostPath"), True),
    "account": (said.NO_ACCOUNT, "ServiceAccountNotFound", ("spec.pod.serviceAccountName", "runner"), True),
    "priority": (said.NO_PRIORITY, "PriorityClassNotFound", ("spec.pod.priorityClassName", "urgent"), True),
    "runtime": (said.NO_RUNTIME, "RuntimeClassNotFound", ("spec.pod.runtimeClassName", "nvidia"), True),
    "webhook": (said.WEBHOOK, "AdmissionDenied", ("images must come from",), True),
    "something new": ("the moon is full", "PodsNotCreated", ("the moon is full",), False),
}
