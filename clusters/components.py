"""The command lines of a control plane and the files that they read; nothing here starts anything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import yaml

PodSecurityLevel = Literal["privileged", "baseline", "restricted"]
# Test-Net-1: an API server on loopback must advertise some address that is not, and nothing is to reach it there.
UNREACHABLE_ADDRESS: Final = "192.0.2.1"
SERVICE_CIDR: Final = "10.96.0.0/16"
POD_CIDR: Final = "10.85.0.0/16"
FAKE_NODES: Final = "kwok.x-k8s.io/node=fake"
# What the cluster itself does is left out, unless a caller asks: it is most of the traffic and nobody's concern.
COMPONENT_USERS: Final = (
    "system:apiserver",
    "system:kube-controller-manager",
    "system:kube-scheduler",
    "system:kube-proxy",
    "kwok",
)
AUDIT_POLICY: Final[Mapping[str, Any]] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": list(COMPONENT_USERS)},
        {"level": "None", "userGroups": ["system:nodes", "system:serviceaccounts:kube-system"]},
        {"level": "None", "nonResourceURLs": ["/healthz*", "/livez*", "/readyz*"]},
        {"level": "Metadata"},
    ],
}


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the parts of one control plane listen; `host` is where clients reach the API server."""

    host: str
    bind: str
    advertise: str
    api_server_port: int
    etcd_port: int
    etcd_peer_port: int
    controller_manager_port: int
    scheduler_port: int
    kwok_port: int

    @property
    def server(self) -> str:
        """The API server's URL."""
        return f"https://{self.host}:{self.api_server_port}"

    @property
    def etcd(self) -> str:
        """The URL of etcd's client port."""
        return f"http://127.0.0.1:{self.etcd_port}"

    @property
    def etcd_peer(self) -> str:
        """The URL of etcd's peer port."""
        return f"http://127.0.0.1:{self.etcd_peer_port}"


def etcd(program: Path, folder: Path, at: Addresses) -> list[str]:
    """etcd with one member; without fsync, since nothing of it outlives the cluster."""
    return [
        str(program),
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={at.etcd}",
        f"--advertise-client-urls={at.etcd}",
        f"--listen-peer-urls={at.etcd_peer}",
        f"--initial-advertise-peer-urls={at.etcd_peer}",
        f"--initial-cluster=default={at.etcd_peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def api_server(program: Path, folder: Path, at: Addresses, extra: Sequence[str] = ()) -> list[str]:
    """The API server, with the authorizers of a production cluster."""
    key = folder / "service-accounts.key"
    return [
        str(program),
        f"--etcd-servers={at.etcd}",
        f"--cert-dir={folder / 'certificates'}",
        f"--bind-address={at.bind}",
        f"--advertise-address={at.advertise}",
        f"--secure-port={at.api_server_port}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--admission-control-config-file={folder / 'admission.yaml'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--kubelet-preferred-address-types=InternalIP",
        "--allow-privileged=true",
        f"--audit-log-path={folder / 'audit.log'}",
        f"--audit-policy-file={folder / 'audit-policy.yaml'}",
        *extra,
    ]


def controller_manager(program: Path, folder: Path, at: Addresses, kubeconfig: Path) -> list[str]:
    """The controller manager. Its client limits are lifted, so that a benchmark measures the operator and not them."""
    return [
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={folder / 'service-accounts.key'}",
        "--use-service-account-credentials",
        f"--root-ca-file={folder / 'certificates' / 'apiserver.crt'}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={at.controller_manager_port}",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        # Two busy cores may hold up the heartbeats of a few hundred nodes; no test waits for a node to be given up.
        "--node-monitor-grace-period=180s",
    ]


def scheduler(program: Path, folder: Path, at: Addresses, kubeconfig: Path) -> list[str]:
    """The scheduler."""
    return [
        str(program),
        f"--config={folder / 'scheduler.yaml'}",
        "--bind-address=127.0.0.1",
        f"--secure-port={at.scheduler_port}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
    ]


def kwok(program: Path, stages: Path, at: Addresses, kubeconfig: Path) -> list[str]:
    """kwok for the nodes that carry its annotation, and for no other: a real kubelet may be there too."""
    return [
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--manage-nodes-with-annotation-selector={FAKE_NODES}",
        f"--config={stages}",
        f"--server-address=127.0.0.1:{at.kwok_port}",
        "--cidr=10.86.0.0/16",
        "--node-ip=10.87.0.1",
        "--node-lease-duration-seconds=40",
    ]


def scheduler_configuration(kubeconfig: Path) -> str:
    """The scheduler's configuration file."""
    return _dump(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 500, "burst": 1000},
            "leaderElection": {"leaderElect": False},
        }
    )


def admission_configuration(level: PodSecurityLevel) -> str:
    """The API server's admission file: `level` is enforced in each namespace that says nothing else."""
    pod_security = {
        "apiVersion": "pod-security.admission.config.k8s.io/v1",
        "kind": "PodSecurityConfiguration",
        "defaults": {"enforce": level, "enforce-version": "latest"},
        "exemptions": {"namespaces": ["kube-system"]},
    }
    return _dump(
        {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AdmissionConfiguration",
            "plugins": [{"name": "PodSecurity", "configuration": pod_security}],
        }
    )


def audit_policy(policy: Mapping[str, Any]) -> str:
    """The API server's audit policy file."""
    return _dump(policy)


def _dump(document: Mapping[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False)
