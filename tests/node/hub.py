"""A model hub on this machine, which pods of the local cluster reach: as much of the Hub's API as is asked for."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from clusters.local import LocalCluster

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OPEN = "acme/smollm2"


@dataclass(frozen=True, slots=True)
class Refusal:
    """How the Hub refuses a repository: status, its header `X-Error-Code`, its message."""

    status: int
    code: str
    message: str


# The Hub's own answers: to nobody for a private or absent model, to an account that has not been let in, to a bad name.
REFUSALS: Mapping[str, Refusal] = {
    "acme/private": Refusal(401, "", "Invalid credentials in Authorization header"),
    "acme/gated": Refusal(403, "GatedRepo", "Access to model acme/gated is restricted."),
    "acme/absent": Refusal(404, "RepoNotFound", "Repository not found"),
}


class Handler(BaseHTTPRequestHandler):
    """Answers for one folder of files, under the name `OPEN`; refuses every other repository."""

    protocol_version = "HTTP/1.1"
    folder: Path
    asked: set[str]

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name that the base class gives it)
        """Say nothing."""

    def do_HEAD(self) -> None:
        """Answer without a body."""
        self._answer(body=False)

    def do_GET(self) -> None:
        """Answer."""
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        parts = self.path.partition("?")[0].strip("/").split("/")
        api = parts[:2] == ["api", "models"]
        repository, rest = "/".join(parts[2:4] if api else parts[:2]), parts[4:] if api else parts[2:]
        self.asked.add(repository)
        if repository != OPEN:
            self._refuse(REFUSALS.get(repository, REFUSALS["acme/absent"]))
        elif api:
            self._send(200, self._listing("tree" in rest), body)
        else:
            self._file(self.folder / rest[-1], body)

    def _refuse(self, refusal: Refusal) -> None:
        headers = {"X-Error-Message": refusal.message, **({"X-Error-Code": refusal.code} if refusal.code else {})}
        self._send(refusal.status, json.dumps({"error": refusal.message}).encode(), self.command == "GET", headers)

    def _listing(self, tree: bool) -> bytes:
        names = sorted(path.name for path in self.folder.iterdir())
        if tree:
            files = [{"type": "file", "path": n, "size": (self.folder / n).stat().st_size, "oid": "0"} for n in names]
            return json.dumps(files).encode()
        siblings = [{"rfilename": name} for name in names]
        return json.dumps({"id": OPEN, "sha": COMMIT, "private": False, "siblings": siblings}).encode()

    def _file(self, path: Path, body: bool) -> None:
        if not path.is_file():
            headers = {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}
            self._send(404, b"Entry not found", body, headers)
            return
        tag = hashlib.sha256(f"{path.name}{path.stat().st_size}".encode()).hexdigest()
        self._send(200, path.read_bytes(), body, {"X-Repo-Commit": COMMIT, "ETag": f'"{tag}"'})

    def _send(self, status: int, content: bytes, body: bool, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if body:
            self.wfile.write(content)


@dataclass(frozen=True, slots=True)
class Hub:
    """A hub that answers. `asked`: the repositories that it was asked for."""

    url: str
    asked: set[str]


@contextmanager
def serving(cluster: LocalCluster, folder: Path) -> Iterator[Hub]:
    """Have the hub answer, with the files of a folder, while the body runs."""
    asked: set[str] = set()
    handler = type("HubHandler", (Handler,), {"folder": folder, "asked": asked})
    address = cluster.network.host_address
    with ThreadingHTTPServer((address, 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield Hub(f"http://{address}:{server.server_port}", asked)
        finally:
            server.shutdown()
