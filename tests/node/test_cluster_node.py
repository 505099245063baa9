"""The node that the tests of this tier stand on is a real one: pods run, find each other, and can be looked into."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from clusters import images
from clusters.errors import ClusterError
from clusters.local import LocalCluster

WAIT = "--timeout=60s"
REFERENCE = "example.test/web:1"
SERVER = """\
import http.server, os, signal
signal.signal(signal.SIGTERM, lambda *_: os._exit(3))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(os.environ["HOSTNAME"].encode())
http.server.ThreadingHTTPServer(("", 8000), Handler).serve_forever()
"""


def web(name: str = "web", replicas: int = 2) -> tuple[dict[str, Any], dict[str, Any]]:
    """A Deployment whose pods answer with their names, fit for Pod Security `restricted`, and its Service."""
    container = {
        "name": "web",
        "image": REFERENCE,
        "command": ["python3", "-u", "-c", SERVER],
        "readinessProbe": {"httpGet": {"port": 8000}, "periodSeconds": 1},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    }
    spec = {
        "securityContext": {"runAsNonRoot": True, "runAsUser": 2000, "seccompProfile": {"type": "RuntimeDefault"}},
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [{"name": "scratch", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
    }
    labels = {"app": name}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"selector": labels, "ports": [{"port": 80, "targetPort": 8000}]},
    }
    return deployment, service


def image(folder: Path) -> images.Recipe:
    """An image that holds nothing but the local base."""
    containerfile = folder / "Containerfile"
    containerfile.write_text("ARG BASE\nFROM ${BASE}\nUSER 2000:2000\n")
    return images.Recipe(REFERENCE, containerfile)


@pytest.fixture(scope="module")
def cluster(local_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """The cluster, with two web servers that are ready."""
    local_cluster.load_image(images.build(image(tmp_path_factory.mktemp("image"))))
    plane = local_cluster.control_plane
    plane.apply(*web())
    plane.kubectl("wait", "--for=condition=Available", "deployment/web", WAIT)
    yield local_cluster
    plane.kubectl("delete", "deployment,service", "web", "--wait=false")


def names(cluster: LocalCluster) -> list[str]:
    """The names of the web servers' pods."""
    listed = json.loads(cluster.control_plane.kubectl("get", "pods", "-l", "app=web", "-o", "json"))
    return [pod["metadata"]["name"] for pod in listed["items"]]


def python(cluster: LocalCluster, code: str) -> str:
    """Run a line of Python in one of the pods."""
    return cluster.control_plane.kubectl("exec", names(cluster)[0], "--", "python3", "-c", code)


def fetch(url: str) -> str:
    """A line of Python that prints what a URL answers."""
    return f"import urllib.request as u; print(u.urlopen({url!r}, timeout=10).read().decode())"


def test_the_node_is_ready_and_of_the_version_that_is_pinned(cluster: LocalCluster) -> None:
    (node,) = json.loads(cluster.control_plane.kubectl("get", "nodes", "-o", "json"))["items"]
    assert node["metadata"]["name"] == cluster.name
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.36.3"
    assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")


def test_a_service_spreads_over_its_pods_by_its_cluster_ip(cluster: LocalCluster) -> None:
    address = cluster.control_plane.kubectl("get", "service", "web", "-o", "jsonpath={.spec.clusterIP}")
    answers = {cluster.exec(["curl", "-s", "--max-time", "5", f"http://{address}/"]) for _ in range(40)}
    assert answers == set(names(cluster))


def test_pods_find_services_by_name_and_reach_even_themselves_through_them(cluster: LocalCluster) -> None:
    # Two pods on one bridge: where it hands its traffic to iptables, answers find their way back in any case.
    setting = "net.bridge.bridge-nf-call-iptables"
    with suppress(ClusterError):
        cluster.exec(["sysctl", "-q", "-w", f"{setting}=0"])
    loop = f"for i in range(40):\n  {fetch('http://web.default.svc.cluster.local/')}"
    assert set(python(cluster, loop).split()) == set(names(cluster))


def test_pods_reach_the_api_server_with_the_certificate_of_their_service_account(cluster: LocalCluster) -> None:
    code = (
        "import ssl, urllib.request as u, urllib.error as e;"
        "c = ssl.create_default_context(cafile='/var/run/secrets/kubernetes.io/serviceaccount/ca.crt')\n"
        "try: u.urlopen('https://kubernetes.default.svc/api/v1/pods', timeout=10, context=c)\n"
        "except e.HTTPError as refused: print(refused.code)"
    )
    assert python(cluster, code).strip() == "403"


def test_pods_reach_programs_on_the_host(cluster: LocalCluster) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"from the host")

    with ThreadingHTTPServer((cluster.network.host_address, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        said = python(cluster, fetch(f"http://{cluster.network.host_address}:{server.server_port}/"))
        server.shutdown()
    assert said.strip() == "from the host"


def test_a_port_is_forwarded_to_this_process(cluster: LocalCluster) -> None:
    with cluster.port_forward("service/web", 80) as port:
        answer = urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10).read().decode()
    assert answer in names(cluster)


def test_a_container_that_is_killed_is_restarted(cluster: LocalCluster) -> None:
    name = names(cluster)[0]
    with suppress(ClusterError):  # The command may die with the container that it ends.
        cluster.control_plane.kubectl("exec", name, "--", "python3", "-c", "import os; os.kill(1, 15)")
    restarted = "--for=jsonpath={.status.containerStatuses[0].restartCount}=1"
    cluster.control_plane.kubectl("wait", restarted, f"pod/{name}", WAIT)


def test_a_second_up_changes_nothing(cluster: LocalCluster) -> None:
    before = cluster.status()
    cluster.up()
    assert cluster.status() == before
    assert "ended" not in before
