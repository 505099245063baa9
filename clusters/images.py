"""Container images without a registry: a base from Debian's archive, builds with buildah, archives for containerd.

A Containerfile takes `ARG BASE` and starts `FROM ${BASE}`: a public image elsewhere, here a local one that debootstrap
made. What pip needs is downloaded outside the build, which has no certificates, and lies in its context as `wheels/`:
`RUN pip install --no-index --find-links=wheels --require-hashes -r requirements.txt`.
"""

import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from clusters import debian, paths
from clusters.errors import ClusterError
from clusters.progress import say, step
from clusters.run import run

BUILD_SECONDS = 20 * 60
DOWNLOAD_SECONDS = 20 * 60
KEPT_SECONDS = 3600
SCRATCH = "scratch"
# libgomp1 is what CPU engines link to; the rest is Python with virtual environments.
BASE_PACKAGES = ("python3", "python3-venv", "ca-certificates", "libgomp1")
IGNORED = ("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache")
# Whatever a build or debootstrap mounts is seen by it alone, and gone with it.
ALONE = ("unshare", "--mount", "--propagation", "private")
TRUST_POLICY = '{"default": [{"type": "insecureAcceptAnything"}]}'


@dataclass(frozen=True, slots=True)
class Recipe:
    """What an image is made from.

    `reference` is the name under which pods ask for it, such as `ghcr.io/stoker-dev/stoker:0.1.0`. `sources` puts
    files and folders into the build context: the path there, and where it comes from. `requirements`, a file with
    hashes, adds `requirements.txt` and the folder `wheels`. `base` is `debian` (the local base) or `scratch`.
    """

    reference: str
    containerfile: Path
    sources: Mapping[str, Path] = field(default_factory=dict)
    requirements: Path | None = None
    base: str = "debian"

    @property
    def slug(self) -> str:
        """The image's name as part of a file's name."""
        return self.reference.rsplit(":", 1)[0].replace("/", "-")


def build(recipe: Recipe) -> Path:
    """Build an image, unless nothing that goes into it has changed, and return its archive (docker-archive format).

    Raises ClusterError with the build's last words when it fails.
    """
    folder = paths.cache_root() / "images"
    archive = folder / f"{recipe.slug}-{key(recipe)}.tar"
    if archive.exists():
        return archive
    debian.ensure(("buildah", "debootstrap", "runc"))
    with _lock():
        if not archive.exists():
            base = SCRATCH if recipe.base == SCRATCH else _base()
            wheels = download_wheels(recipe.requirements) if recipe.requirements else None
            _build(recipe, base, wheels, archive)
            _remove_older(folder, recipe, archive)
    return archive


def key(recipe: Recipe) -> str:
    """A digest of everything that goes into an image."""
    digest = hashlib.sha256(f"{recipe.reference}\0{base_key() if recipe.base != SCRATCH else SCRATCH}".encode())
    inputs = {"Containerfile": recipe.containerfile, **recipe.sources}
    if recipe.requirements:
        inputs["requirements.txt"] = recipe.requirements
    for name, source in sorted(inputs.items()):
        for file in _files(source):
            executable = "x" if os.access(file, os.X_OK) else "-"
            digest.update(f"\0{name}/{file.relative_to(source)}\0{executable}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def base_key() -> str:
    """A digest of what the local base is made from."""
    return hashlib.sha256(" ".join((debian.RELEASE, *BASE_PACKAGES)).encode()).hexdigest()[:16]


def ensure_base() -> None:
    """Make the local base image, once."""
    debian.ensure(("buildah", "debootstrap", "runc"))
    with _lock():
        _base()


def _base() -> str:
    """The name of the local base image in buildah's storage; made where it is missing."""
    name = f"localhost/stoker-base:{base_key()}"
    if name in _buildah("images", "--format", "{{.Name}}:{{.Tag}}").split():
        return name
    with tempfile.TemporaryDirectory(dir=_scratch_folder()) as scratch, step("making the base image with debootstrap"):
        root = Path(scratch) / "root"
        include = f"--include={','.join(BASE_PACKAGES)}"
        command = [*ALONE, "debootstrap", "--variant=minbase", include, debian.RELEASE, str(root), debian.mirror()]
        run(command, timeout_seconds=BUILD_SECONDS)
        shutil.rmtree(root / "var" / "cache" / "apt", ignore_errors=True)
        shutil.rmtree(root / "var" / "lib" / "apt" / "lists", ignore_errors=True)
        containerfile = Path(scratch) / "Containerfile"
        containerfile.write_text('FROM scratch\nCOPY root /\nCMD ["bash"]\n')
        _bud(name, containerfile, Path(scratch), {})
    return name


def download_wheels(requirements: Path) -> Path:
    """Download what a requirements file pins, checked against its hashes, once; wheels alone, for this Python."""
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:16]
    target = paths.cache_root() / "wheels" / digest
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with step(f"downloading the wheels of {requirements.parent.name}/{requirements.name}"):
        partial = Path(tempfile.mkdtemp(prefix=".", dir=target.parent))
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        options = ["--require-hashes", "--only-binary=:all:", "--no-deps", "--dest", str(partial)]
        try:
            run([*pip, *options, "-r", str(requirements)], timeout_seconds=DOWNLOAD_SECONDS)
            partial.chmod(0o755)
            partial.rename(target)
        except ClusterError:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    return target


def _build(recipe: Recipe, base: str, wheels: Path | None, archive: Path) -> None:
    with tempfile.TemporaryDirectory(dir=_scratch_folder()) as scratch, step(f"building the image {recipe.reference}"):
        context = Path(scratch) / "context"
        context.mkdir()
        for name, source in recipe.sources.items():
            _copy(source, context / name)
        if recipe.requirements and wheels:
            _copy(recipe.requirements, context / "requirements.txt")
            shutil.copytree(wheels, context / "wheels", copy_function=_link)
        _bud(recipe.reference, recipe.containerfile, context, {"BASE": base})
        partial = Path(scratch) / "image.tar"
        _buildah("push", "--quiet", recipe.reference, f"docker-archive:{partial}:{recipe.reference}")
        archive.parent.mkdir(parents=True, exist_ok=True)
        partial.replace(archive)


def _bud(reference: str, containerfile: Path, context: Path, arguments: Mapping[str, str]) -> None:
    given = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
    options = ["--isolation=chroot", "--pull-never", "--layers", "--quiet", "--tag", reference]
    _buildah("bud", *options, *given, "--file", str(containerfile), str(context))


def _buildah(*words: str) -> str:
    storage = paths.cache_root() / "containers"
    policy = storage / "policy.json"
    paths.write_atomically(policy, TRUST_POLICY)
    places = ["--root", str(storage / "storage"), "--runroot", str(storage / "run"), "--storage-driver=overlay"]
    # The policy is an option of the commands that read or write images elsewhere, not of the program.
    trust = ["--signature-policy", str(policy)] if words[0] in {"bud", "push"} else []
    return run([*ALONE, "buildah", *places, words[0], *trust, *words[1:]], timeout_seconds=BUILD_SECONDS)


def _files(source: Path) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    if not source.is_dir():
        raise ClusterError(f"{source} is to go into an image, and is not there")
    for folder, folders, files in os.walk(source):
        folders[:] = sorted(each for each in folders if each not in IGNORED and not each.endswith(".egg-info"))
        yield from (Path(folder) / name for name in sorted(files))


def _copy(source: Path, target: Path) -> None:
    for file in _files(source):
        place = target if source.is_file() else target / file.relative_to(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
        # Independent of the umask under which the work tree was made: engines do not run as root.
        place.chmod(0o755 if os.access(file, os.X_OK) else 0o644)


_link: Callable[[str, str], None] = os.link


def _remove_older(folder: Path, recipe: Recipe, archive: Path) -> None:
    for other in folder.glob(f"{recipe.slug}-{'[0-9a-f]' * 16}.tar"):
        # Another work tree may have built that one a moment ago, and be about to load it.
        if other != archive and time.time() - other.stat().st_mtime > KEPT_SECONDS:
            other.unlink()


def _scratch_folder() -> Path:
    folder = paths.cache_root() / "scratch"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _lock() -> Iterator[None]:
    path = paths.cache_root() / "images.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("  waiting for another image build to end")
            fcntl.flock(handle, fcntl.LOCK_EX)
        # Nobody else builds now, so whatever lies in the scratch folder was left by a build that was killed.
        shutil.rmtree(paths.cache_root() / "scratch", ignore_errors=True)
        yield
