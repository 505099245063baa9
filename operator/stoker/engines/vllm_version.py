"""Which vLLM a service runs: its version, and the image that has it."""

from __future__ import annotations

from collections.abc import Iterator

from stoker.api.engine import Engine
from stoker.api.faults import Fault
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.engines.versions import Version, image_repository, image_tag, parse_version
from stoker.engines.vllm_table import OLDEST

DEFAULT_VERSION = "0.32.0"
"""The version that this release of Stoker was made for: its arguments are judged by that version's own parser."""
GPU_REPOSITORY = "docker.io/vllm/vllm-openai"
CPU_REPOSITORY = "docker.io/vllm/vllm-openai-cpu"
OLD_CPU_REPOSITORY = "public.ecr.aws/q9t5s3a7/vllm-cpu-release-repo"
_CPU_IMAGE_MOVED = Version(0, 17)


def version_text(engine: Engine) -> str | None:
    """Return the version as the field or the image's tag says it; the default where there is neither; else None."""
    if engine.version is not None:
        return engine.version
    if engine.image is None:
        return DEFAULT_VERSION
    version = parse_version(image_tag(engine.image) or "")
    return None if version is None else str(version)


def version_of(spec: InferenceServiceSpec) -> Version | None:
    """Return the version that decides what is rendered; None where nothing tells it."""
    return parse_version(version_text(spec.engine) or "")


def maker_image(spec: InferenceServiceSpec) -> str:
    """Return the makers' image of ``engine.version`` (or of the default version), for GPUs or for the CPU."""
    version = spec.engine.version or DEFAULT_VERSION
    if spec.accelerator is not None:
        return f"{GPU_REPOSITORY}:{_tag(version)}"
    release = parse_version(version)
    moved = release is None or release >= _CPU_IMAGE_MOVED
    return f"{CPU_REPOSITORY if moved else OLD_CPU_REPOSITORY}:{_tag(version)}"


def _tag(version: str) -> str:
    """Return the makers' tag of a version: always with a patch, and without a local part, which no tag may hold."""
    release = version.partition("+")[0]
    return f"v{release}.0" if release.count(".") == 1 else f"v{release}"


def version_faults(spec: InferenceServiceSpec) -> Iterator[Fault]:
    """Yield what is wrong with version and image together."""
    engine = spec.engine
    tagged = parse_version(image_tag(engine.image) or "") if engine.image else None
    if tagged and tagged < OLDEST and engine.version is None:
        problem = f"vLLM {tagged} is older than 0.12, the oldest that is supported"
        yield Fault("spec.engine.image", problem, "use an image of vLLM 0.12 or later", "UnsupportedVersion")
    declared = parse_version(engine.version) if engine.version else None
    makers = engine.image is not None and image_repository(engine.image) in {GPU_REPOSITORY, CPU_REPOSITORY}
    if tagged and declared and makers and tagged != declared:
        problem = f"the image is vLLM {tagged}, and spec.engine.version says {engine.version}"
        yield Fault("spec.engine.image", problem, "make both the same, or remove one of them", "Contradiction")
