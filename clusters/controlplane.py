"""A real Kubernetes control plane: etcd, API server, controllers, scheduler, and kwok for nodes that do not exist."""

import itertools
import json
import os
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusters import binaries, components, identities, janitor, paths
from clusters.documents import load, stream
from clusters.errors import ClusterError
from clusters.identities import User
from clusters.ports import free_ports
from clusters.processes import Processes
from clusters.run import run

START_SECONDS = 90.0
REQUEST_SECONDS = 5.0
CALL_SECONDS = 30.0
KUBECTL_SECONDS = 180.0
STAGES = Path(__file__).parent / "kwok" / "stages.yaml"
FOLDER_PREFIX = "control-plane-"
_NUMBERS = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Options:
    """How a control plane is brought up.

    Without `address` it listens on free loopback ports. With one, it runs in a network namespace (`enter` is the
    command that enters it) and listens there on every address with the usual ports; `address` is the namespace's own,
    under which pods and the host reach it. `group` is the cgroup that its programs join. `users` get a static token
    each; `pod_security` is enforced in namespaces that carry no label of their own; a control plane that is `tied` dies
    with the process that started it.
    """

    address: str | None = None
    enter: tuple[str, ...] = ()
    group: Path | None = None
    users: tuple[User, ...] = ()
    audit_policy: Mapping[str, Any] | None = None
    pod_security: components.PodSecurityLevel = "restricted"
    api_server_flags: tuple[str, ...] = ()
    tied: bool = True


class ControlPlane:
    """One control plane and the folder that holds all of its state.

    Without a folder it gets one of its own, which `stop` removes. Start it from a thread that outlives it: the kernel
    ends tied programs when the thread that started them ends.
    """

    def __init__(self, folder: Path | None = None, options: Options | None = None) -> None:
        """Prepare a control plane; nothing is started and nothing written yet."""
        self.options = options or Options()
        self._owns_folder = folder is None
        self.folder = folder or paths.clusters_root() / f"{FOLDER_PREFIX}{os.getpid()}-{next(_NUMBERS)}"
        self.processes = Processes(self.folder, self.options.tied, self.options.enter, self.options.group)

    def start(self) -> None:
        """Bring it up; returns when pods can be created. Raises ClusterError, with the log, when a part does not."""
        programs = binaries.ensure(binaries.CONTROL_PLANE)
        janitor.sweep(FOLDER_PREFIX)
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._owns_folder:
            janitor.claim(self.folder)
        try:
            self._start(programs, self._addresses())
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End it and remove its folder, if that is its own; the logs of the last run stay in the cache."""
        self.processes.stop("kwok", "kube-scheduler", "kube-controller-manager", "kube-apiserver", grace_seconds=1)
        self.processes.stop()
        janitor.keep_logs(self.folder, FOLDER_PREFIX.rstrip("-"))
        if self._owns_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> "ControlPlane":
        """Start it."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig file."""
        return self.folder / "admin.kubeconfig"

    @property
    def server(self) -> str:
        """The API server's URL, read from the administrator's kubeconfig."""
        document = load(self.kubeconfig.read_text())
        return str(document["clusters"][0]["cluster"]["server"])

    @property
    def ca(self) -> Path:
        """The certificate that signs for the API server."""
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def audit_log(self) -> Path:
        """The API server's audit log: one JSON object per line, complete when a request has been answered."""
        return self.folder / "audit.log"

    def token_for(self, user: str, groups: Sequence[str] = ()) -> str:
        """A bearer token for a user.

        `system:serviceaccount:<namespace>:<name>` gets one from the API server, as a pod would. Any other user must
        have been declared in `Options.users`, since the API server reads its token file once; ClusterError says so.
        """
        if user.startswith("system:serviceaccount:"):
            namespace, name = user.split(":")[2:]
            return self.kubectl("create", "token", name, f"--namespace={namespace}", "--duration=24h").strip()
        declared = identities.read_token_file(self.folder / "tokens.csv")
        token = declared.get(User(user, tuple(groups)))
        if token is None:
            known = ", ".join(sorted(f"{each.name} {list(each.groups)}" for each in declared))
            raise ClusterError(f"user {user} {list(groups)} has no token; declare it in Options.users (there: {known})")
        return token

    def kubeconfig_for(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig file for a user, see `token_for`."""
        path = self.folder / f"{user.replace(':', '-')}.kubeconfig"
        self._write_kubeconfig(path, user, self.token_for(user, groups), self.server)
        return path

    def kubectl(self, *words: str, stdin: str | None = None, timeout_seconds: float = KUBECTL_SECONDS) -> str:
        """Run kubectl as the administrator and return what it printed; ClusterError holds its complaint."""
        program = binaries.location(binaries.BY_NAME["kubectl"])
        argv: list[str | Path] = [program, f"--kubeconfig={self.kubeconfig}", *words]
        return run(argv, stdin=stdin, timeout_seconds=timeout_seconds)

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send one request to the API server as the administrator and return its answer.

        It costs a twentieth of a kubectl. Raises ClusterError with what the API server says against it.
        """
        admin = identities.ADMIN
        headers = {"Authorization": f"Bearer {self.token_for(admin.name, admin.groups)}"}
        request = urllib.request.Request(f"{self.server}{path}", method=method, headers=headers)  # noqa: S310
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            trust = ssl.create_default_context(cafile=str(self.ca))
            with urllib.request.urlopen(request, timeout=CALL_SECONDS, context=trust) as answer:  # noqa: S310
                found: dict[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as refusal:
            raise ClusterError(f"{method} {path}: {refusal.code}: {_message(refusal)}") from refusal
        except OSError as error:
            raise ClusterError(f"{method} {path}: {error}") from error

    def apply(self, *documents: Mapping[str, Any]) -> None:
        """Apply objects server-side, as the administrator."""
        words = ("apply", "--server-side", "--force-conflicts", "-f", "-")
        self.kubectl(*words, stdin=stream(documents))

    def pause_process(self, name: str) -> None:
        """Freeze a part, such as `kube-controller-manager`; see `Processes.pause`."""
        self.processes.pause(name)

    def resume_process(self, name: str) -> None:
        """Let a frozen part go on."""
        self.processes.resume(name)

    def _addresses(self) -> components.Addresses:
        address = self.options.address
        if address:
            return components.Addresses(address, "0.0.0.0", address, 6443, 2379, 2380, 10257, 10259, 10247)  # noqa: S104
        return components.Addresses("127.0.0.1", "127.0.0.1", components.UNREACHABLE_ADDRESS, *free_ports(6))

    def _start(self, programs: Mapping[str, Path], at: components.Addresses) -> None:
        tokens = self._write_files(at)
        self.processes.spawn("etcd", components.etcd(programs["etcd"], self.folder, at))
        flags = self.options.api_server_flags
        server = components.api_server(programs["kube-apiserver"], self.folder, at, flags)
        self.processes.spawn("kube-apiserver", server)
        self._await("/readyz", at, tokens)
        for name, argv in self._controllers(programs, at).items():
            self.processes.spawn(name, argv)
        # Until its ServiceAccount exists, no pod can be created in a namespace.
        self._await("/api/v1/namespaces/default/serviceaccounts/default", at, tokens)

    def _controllers(self, programs: Mapping[str, Path], at: components.Addresses) -> dict[str, list[str]]:
        def of(name: str) -> Path:
            return self.folder / f"{name}.kubeconfig"

        manager, scheduler, kwok = "kube-controller-manager", "kube-scheduler", "kwok"
        return {
            manager: components.controller_manager(programs[manager], self.folder, at, of(manager)),
            scheduler: components.scheduler(programs[scheduler], self.folder, at, of(scheduler)),
            kwok: components.kwok(programs[kwok], STAGES, at, of(kwok)),
        }

    def _write_files(self, at: components.Addresses) -> dict[User, str]:
        folder, options = self.folder, self.options
        key = folder / "service-accounts.key"
        run(["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key], timeout_seconds=30)
        tokens = identities.write_token_file(folder / "tokens.csv", [*identities.COMPONENTS, *options.users])
        for name, user in {
            "admin": identities.ADMIN,
            "kube-controller-manager": identities.CONTROLLER_MANAGER,
            "kube-scheduler": identities.SCHEDULER,
            "kwok": identities.KWOK,
        }.items():
            self._write_kubeconfig(folder / f"{name}.kubeconfig", user.name, tokens[user], at.server)
        configuration = components.scheduler_configuration(folder / "kube-scheduler.kubeconfig")
        paths.write_atomically(folder / "scheduler.yaml", configuration)
        paths.write_atomically(folder / "admission.yaml", components.admission_configuration(options.pod_security))
        policy = components.audit_policy(options.audit_policy or components.AUDIT_POLICY)
        paths.write_atomically(folder / "audit-policy.yaml", policy)
        return tokens

    def _write_kubeconfig(self, path: Path, user: str, token: str, server: str) -> None:
        paths.write_atomically(path, identities.kubeconfig(server, self.ca, token, user), mode=0o600)

    def _await(self, path: str, at: components.Addresses, tokens: Mapping[User, str]) -> None:
        token = tokens[identities.ADMIN]
        await_true(
            lambda: self._answers(f"{at.server}{path}", token),
            what=f"{at.server}{path}",
            timeout_seconds=START_SECONDS,
            check=lambda: self.processes.require_running(*(record.name for record in self.processes.records())),
        )

    def _answers(self, url: str, token: str) -> bool:
        if not self.ca.exists():
            return False
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310
        try:
            trust = ssl.create_default_context(cafile=str(self.ca))
            with urllib.request.urlopen(request, timeout=REQUEST_SECONDS, context=trust) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False


def _message(refusal: urllib.error.HTTPError) -> str:
    """What the API server says against a request: the message of its Status, or all that it sent."""
    with refusal:
        said = refusal.read().decode(errors="replace")
    try:
        return str(json.loads(said)["message"])
    except (ValueError, LookupError, TypeError):
        return said


def await_true(
    ask: Callable[[], bool],
    *,
    what: str,
    timeout_seconds: float,
    check: Callable[[], None] | None = None,
    pause_seconds: float = 0.1,
) -> None:
    """Ask until the answer is true; `check` raises when waiting is pointless. Raises ClusterError at the time limit."""
    deadline = time.monotonic() + timeout_seconds
    while not ask():
        if check:
            check()
        if time.monotonic() > deadline:
            raise ClusterError(f"{what} was not there after {timeout_seconds:.0f} s")
        time.sleep(pause_seconds)
