"""Variables and writable folders that every engine gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.api.model import CREDENTIALS_KEY
from stoker.api.types import ClaimSource, model_source
from stoker.engines.interface import EnvVar, WritablePath
from stoker.plan.types import Layout

CACHE: Final = "/cache"
"""The one volume for everything that an engine downloads or compiles. A volume of the user that is mounted here takes
its place and outlives the pod."""
TMP_BYTES: Final = 8 * 2**30
"""What compilers may leave in /tmp at most."""
WRITABLE: Final = (WritablePath("cache", CACHE), WritablePath("tmp", "/tmp", TMP_BYTES))  # noqa: S108 - in the container


def home(user: str) -> Iterator[EnvVar]:
    """Yield a home that can be written, and a name for a user that no passwd file of the image may know."""
    yield EnvVar("HOME", CACHE)
    yield from (EnvVar(name, user) for name in ("USER", "LOGNAME"))
    yield EnvVar("XDG_CACHE_HOME", f"{CACHE}/xdg")
    yield EnvVar("XDG_CONFIG_HOME", f"{CACHE}/config")


def hub(spec: InferenceServiceSpec) -> Iterator[EnvVar]:
    """Yield how the Hub is reached: not at all for a model on a volume, with the token where a Secret is named."""
    yield EnvVar("HF_HOME", f"{CACHE}/huggingface")
    yield EnvVar("HF_HUB_DISABLE_TELEMETRY", "1")
    if isinstance(model_source(spec.model.source), ClaimSource):
        yield EnvVar("HF_HUB_OFFLINE", "1")
    if spec.model.credentials_secret is not None:
        yield EnvVar("HF_TOKEN", secret_name=spec.model.credentials_secret, secret_key=CREDENTIALS_KEY)


def devices(spec: InferenceServiceSpec) -> Iterator[EnvVar]:
    """Yield what keeps GPUs away from an engine that asked for none: some runtimes show all of them by default.

    Which GPUs an engine has is for the device plugin to say; CUDA_VISIBLE_DEVICES is never set.
    """
    if spec.accelerator is None:
        yield EnvVar("NVIDIA_VISIBLE_DEVICES", "void")
    else:
        yield EnvVar("CUDA_CACHE_PATH", f"{CACHE}/nv")


def cores(layout: Layout) -> int:
    """Return the whole CPU cores of the engine, at least one. Engines otherwise count the cores of the node."""
    return max(1, layout.cpu_request_millicores // 1000)
