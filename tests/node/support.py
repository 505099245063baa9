"""A real node with the operator on it, and what tests ask of it.

The operator is installed by `make demo`, as a newcomer would. Tests share the cluster: each keeps to a namespace of its
own, in which Pod Security `restricted` is enforced.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from clusters import demo_model
from clusters.kubectl import Kubectl
from clusters.local import LocalCluster
from clusters.processes import start_ticks
from clusters.tiers import for_another_make

ROOT = Path(__file__).parents[2]
QUICKSTART = ROOT / "examples/quickstart.yaml"
RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}
DEMO_SECONDS = 600.0
READY_SECONDS = 180.0
PORT = 8000
AGENT_PORT = 9090
FETCH = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=int(sys.argv[2])).read().decode())"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stage:
    """The cluster with the operator on it."""

    cluster: LocalCluster
    kubectl: Kubectl

    def demo(self) -> str:
        """Run the demo on this cluster and return what it prints. Afterwards the operator runs, and a model."""
        words = ["make", "demo", "CLUSTER=local", f"NAME={self.cluster.name}"]
        done = subprocess.run(
            words, cwd=ROOT, env=for_another_make(), capture_output=True, text=True, timeout=DEMO_SECONDS, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def end_demo(self) -> None:
        """Remove the demo's model; the operator stays."""
        self.kubectl("delete", "infsvc/smollm2", "pvc/smollm2", timeout_seconds=120)

    def namespace(self, name: str) -> Namespace:
        """Make a namespace with a claim `smollm2` that holds the demo's model."""
        self.kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": RESTRICTED}})
        found = Namespace(self, name)
        found.claim("smollm2", demo_model.fetch())
        return found


@dataclass(frozen=True, slots=True)
class Namespace:
    """One test's namespace."""

    stage: Stage
    name: str

    # ---- objects ----------------------------------------------------------------------------------------------------

    def kubectl(self, *words: str, stdin: str | None = None, timeout_seconds: float = 60.0) -> str:
        """Run kubectl in this namespace."""
        return self.stage.kubectl("-n", self.name, *words, stdin=stdin, timeout_seconds=timeout_seconds)

    def apply(self, manifest: Mapping[str, Any]) -> None:
        """Apply an object as a user would."""
        self.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))

    def get(self, *words: str) -> Json:
        """Read an object, or a list; empty when there is none."""
        return self.stage.kubectl.get("-n", self.name, *words)

    def claim(self, claim: str, *files: Path) -> None:
        """Have a claim that holds copies of files, on a volume of the node; claims of one name share the copies."""
        folder = self.stage.cluster.folder / "volumes" / f"node-{claim}"
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        for file in files:
            if not (folder / file.name).exists():
                shutil.copyfile(file, folder / file.name)
                (folder / file.name).chmod(0o644)
        self.volume(claim, folder)

    def volume(self, claim: str, folder: Path) -> None:
        """Have a claim over a folder of the node, which stays as it is when the claim goes."""
        volume, bound = demo_model.local_volume(folder, self.stage.cluster.name, self.name)
        volume["metadata"]["name"] = bound["spec"]["volumeName"] = f"{self.name}-{claim}"
        volume["metadata"]["labels"] = {"node-test": self.name}
        volume["spec"]["claimRef"]["name"] = bound["metadata"]["name"] = claim
        self.stage.kubectl.apply(volume, bound)

    def delete(self) -> None:
        """Have the namespace go, its engines without their drain."""
        self.kubectl("delete", "infsvc", "--all", "--wait=false")
        self.kubectl("delete", "pods", "--all", "--force", "--grace-period=0", "--wait=false")
        self.stage.kubectl("delete", "namespace", self.name, "--wait=false")
        self.stage.kubectl("delete", "persistentvolume", "-l", f"node-test={self.name}", "--wait=false")

    def service(self, name: str = "smollm2") -> Json:
        """Read the InferenceService."""
        return self.get("infsvc", name)

    def engine_pods(self) -> list[Json]:
        """Return the engine pods that are not going."""
        pods = self.get("pods", "-l", "serving.stoker.dev/component=engine").get("items", [])
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def pods_of(self, name: str) -> list[Json]:
        """Return the pods of a service, those that are going too."""
        return list(self.get("pods", "-l", f"serving.stoker.dev/service={name}").get("items", ()))

    def the_pod(self, name: str = "smollm2") -> Json:
        """Return the only engine pod of a service."""
        (pod,) = (p for p in self.engine_pods() if p["metadata"]["labels"]["serving.stoker.dev/service"] == name)
        return pod

    # ---- waiting ----------------------------------------------------------------------------------------------------

    def await_ready(self, name: str = "smollm2", seconds: float = READY_SECONDS) -> Json:
        """Wait until the service of this generation is Ready, and return it."""
        self.await_condition("Ready", "True", name, seconds)
        return self.service(name)

    def await_condition(self, kind: str, status: str, name: str = "smollm2", seconds: float = READY_SECONDS) -> Json:
        """Wait until a condition of this generation has a status, and return the condition."""

        def holds() -> bool:
            return condition(self.service(name), kind).get("status") == status

        until(
            holds, f"{kind}={status} of {name}", seconds, lambda: json.dumps(self.service(name).get("status"), indent=1)
        )
        return condition(self.service(name), kind)

    # ---- the engine -------------------------------------------------------------------------------------------------

    def url(self, name: str = "smollm2") -> str:
        """Return the base address of the service's ClusterIP; it is reached from the cluster's network."""
        return f"http://{self.get('service', name)['spec']['clusterIP']}:{PORT}"

    def chat(self, question: str, name: str = "smollm2", **more: Any) -> Json:
        """Ask through the ClusterIP and return the whole answer."""
        model = self.service(name)["spec"]["model"]["names"][0]
        body = {"model": model, "messages": [{"role": "user", "content": question}], "max_tokens": 16, **more}
        words = [sys.executable, "-m", "clusters.ask", f"{self.url(name)}/v1/chat/completions"]
        return dict(json.loads(self.inside(*words, stdin=json.dumps(body))))

    def inside(self, *argv: str, stdin: str | None = None, seconds: float = 150.0) -> str:
        """Run a command of this machine in the cluster's network and return what it printed."""
        return run_inside(self.stage.cluster, *argv, stdin=stdin, seconds=seconds)

    def fetch(self, address: str, seconds: int = 10) -> str:
        """Return the body that an address in the cluster's network answers with 200."""
        return self.inside(sys.executable, "-c", FETCH, address, str(seconds), seconds=seconds + 20)

    def agent_status(self, pod: Json, seconds: int = 10) -> Json:
        """Return what the agent of a pod says of its engine."""
        return dict(json.loads(self.fetch(f"http://{pod['status']['podIP']}:{AGENT_PORT}/status", seconds)))

    def processes(self, pod: Json, container: str) -> list[int]:
        """Return the host's pids of a container's processes, the main one first."""
        return container_processes(self.stage.cluster, pod, container)


def run_inside(cluster: LocalCluster, *argv: str, stdin: str | None = None, seconds: float = 150.0) -> str:
    """Run a command of this machine in the cluster's network. Raises AssertionError with what it complained of."""
    command = [*cluster.enter(), *argv]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=seconds, check=False, cwd=ROOT)
    assert done.returncode == 0, (
        f"{argv[:4]} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    )
    return done.stdout


def quickstart(**changes: Any) -> Json:
    """Return the quickstart's InferenceService; ``changes`` replace parts of its spec."""
    manifest: Json = yaml.safe_load(QUICKSTART.read_text())
    manifest["spec"].update(changes)
    return manifest


def condition(service: Mapping[str, Any], kind: str) -> Json:
    """Return a condition that was observed at the object's generation; empty when there is none."""
    generation = service.get("metadata", {}).get("generation")
    for each in service.get("status", {}).get("conditions") or ():
        if each["type"] == kind and each.get("observedGeneration") == generation:
            return dict(each)
    return {}


def container_of(pod: Mapping[str, Any], name: str) -> Json:
    """Return the status of a container of a pod, native sidecars included."""
    status = pod["status"]
    every = [*status.get("containerStatuses", ()), *status.get("initContainerStatuses", ())]
    return next(each for each in every if each["name"] == name)


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod is Ready."""
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))


def container_processes(cluster: LocalCluster, pod: Mapping[str, Any], name: str) -> list[int]:
    """Return the host's pids of a container, the main process first: it is the oldest. Numbers begin anew at times."""
    identity = container_of(pod, name)["containerID"].removeprefix("containerd://")
    wanted = f"/{identity}"
    found: list[tuple[int, int]] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                groups = (folder / "cgroup").read_text()
            except OSError:
                continue
            started = start_ticks(int(folder.name))
            if wanted in groups and started is not None:
                found.append((started, int(folder.name)))
    return [process for _, process in sorted(found)]


def command_of(process: int) -> bytes:
    """Return the command line of a process; empty when it is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def until(
    holds: Callable[[], bool],
    what: str,
    seconds: float = 60.0,
    state: Callable[[], object] = lambda: "",
    every: float = 0.5,
) -> float:
    """Wait until something holds and return how long it took; the message says what and in which state it was."""
    started = time.monotonic()
    while True:
        if holds():
            return time.monotonic() - started
        passed = time.monotonic() - started
        assert passed < seconds, f"not within {seconds:.0f} s: {what}\n{state()}"
        time.sleep(every)


@contextmanager
def throughout(holds: Callable[[], bool], what: str, every: float = 0.5) -> Iterator[None]:
    """Check something again and again while the body runs; fails when it did not hold once."""
    stop = threading.Event()
    failures: list[object] = []

    def watch() -> None:
        while not stop.wait(every):
            try:
                if not holds():
                    failures.append(time.monotonic())
            except Exception as problem:
                failures.append(problem)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join(timeout=30)
    assert not failures, f"not throughout: {what}; it failed {len(failures)} times, first {failures[0]!r}"
