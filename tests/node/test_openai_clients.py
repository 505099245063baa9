"""The official OpenAI clients for Python and JavaScript against a served model."""

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from clusters import paths
from clusters.run import run
from tests.node.support import Namespace, quickstart

JAVASCRIPT = Path(__file__).parent / "javascript"
INSTALL_SECONDS = 300.0
EXPECTED: dict[str, Any] = {
    "models": ["smollm2-135m"],
    "chat": {"role": "assistant", "hasText": True, "finish": "length", "tokens": 8},
    "stream": {"severalChunks": True, "finish": "length", "tokens": 8},
    "tooLong": {"name": "BadRequestError", "status": 400, "said": True},
    "malformed": {"name": "BadRequestError", "status": 400, "said": True},
    "noSuchPath": {"name": "NotFoundError", "status": 404, "said": True},
}


@pytest.fixture(scope="module")
def url(namespace: Namespace) -> str:
    """The address of the quickstart, Ready."""
    namespace.apply(quickstart())
    namespace.await_ready()
    return namespace.url()


def javascript() -> Path:
    """Install what the package lock pins, once, and return the program."""
    files = [JAVASCRIPT / name for name in ("package.json", "package-lock.json", "openai.mjs")]
    key = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    folder = paths.cache_root() / "npm" / key
    if not (folder / "node_modules").exists():
        partial = folder.with_name(f".{key}")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for file in files:
            shutil.copyfile(file, partial / file.name)
        words = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(partial)]
        run(words, timeout_seconds=INSTALL_SECONDS)
        partial.rename(folder)
    return folder / "openai.mjs"


def test_the_python_client_chats_streams_lists_and_tells_errors(namespace: Namespace, url: str) -> None:
    printed = namespace.inside(sys.executable, "-m", "tests.node.openai_python", url, "smollm2-135m")

    assert json.loads(printed) == EXPECTED


def test_the_javascript_client_does_the_same(namespace: Namespace, url: str) -> None:
    printed = namespace.inside("node", str(javascript()), url, "smollm2-135m")

    assert json.loads(printed) == EXPECTED
