"""Cluster DNS: one CoreDNS process on the node's address."""

from pathlib import Path
from typing import Any

from clusters.identities import User

USER = User("coredns")
_NAME = "stoker-local:coredns"


def configuration(address: str, kubeconfig: Path) -> str:
    """CoreDNS's configuration: names of the cluster, and nothing beyond."""
    return f"""\
.:53 {{
  bind {address}
  errors
  kubernetes cluster.local in-addr.arpa {{
    kubeconfig {kubeconfig}
    ttl 5
  }}
}}
"""


def command(program: Path, configuration_file: Path) -> list[str]:
    """CoreDNS's command line."""
    return [str(program), "-conf", str(configuration_file)]


def roles() -> tuple[dict[str, Any], dict[str, Any]]:
    """What CoreDNS may read, and that it may."""
    rules = [
        {"apiGroups": [""], "resources": ["services", "namespaces"], "verbs": ["list", "watch"]},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
    ]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": _NAME}}
    binding = {**role, "kind": "ClusterRoleBinding"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": _NAME}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER.name}
    return {**role, "rules": rules}, {**binding, "roleRef": reference, "subjects": [subject]}
