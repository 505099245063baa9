"""Versions of engines: what a field, an image's tag or a table says, and how two of them compare."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SUFFIX = r"(?:[-+][0-9A-Za-z_.+-]+|\.?[A-Za-z][0-9A-Za-z_.+-]*)?"
_RELEASE = re.compile(r"v?(\d{1,2})\.(\d{1,3})(?:\.(\d{1,4}))?" + _SUFFIX)
_BUILD = re.compile(r"(?:.*-)?b([1-9]\d{0,6})")


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A release of an engine. Pre-releases and builds (``0.32.0rc1``, ``0.32.0+cpu``) count as their release."""

    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    def short(self) -> str:
        """Return the minor version as people write it: ``0.32``."""
        return f"{self.major}.{self.minor}"


def parse_version(text: str) -> Version | None:
    """Return the release that a version or a tag names: ``0.32.0``, ``v0.32.0-cu129``; None where it names none."""
    match = _RELEASE.fullmatch(text)
    if match is None:
        return None
    major, minor, patch = match.groups(default="0")
    return Version(int(major), int(minor), int(patch))


def parse_build(text: str) -> int | None:
    """Return the build that a version or a tag of llama.cpp names: ``b11434``, ``server-cuda-b11434``; else None."""
    match = _BUILD.fullmatch(text)
    return int(match.group(1)) if match else None


def image_tag(image: str) -> str | None:
    """Return the tag of an image reference; None where it has none (``repo@sha256:...``, ``host:5000/repo``)."""
    name = image.partition("@")[0].rpartition("/")[2]
    return name.partition(":")[2] or None


def image_repository(image: str) -> str:
    """Return an image reference without tag and digest, the default registry written out."""
    name = image.partition("@")[0]
    folder, slash, last = name.rpartition("/")
    repository = folder + slash + last.partition(":")[0]
    first = repository.partition("/")[0]
    has_registry = "/" in repository and ("." in first or ":" in first or first == "localhost")
    return repository if has_registry else f"docker.io/{repository}"


class Build(Version):
    """A build of llama.cpp, which counts builds instead of releases: ``Build(11434, 0)`` is b11434."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"b{self.major}"

    def short(self) -> str:
        """Return the build as people write it."""
        return str(self)
