"""The NetworkPolicy of the engines.

In: the API from everywhere (a ClusterIP without access control is for everybody who reaches it), the agent's port from
the pods of the cluster (metrics). Kubelet's probes come from the node, which network plugins let through.
Out: everything but the link-local addresses, where clouds hand out credentials: an engine that is made to fetch a URL
must not reach those. Names are resolved wherever the resolver is, link-local caches included.
"""

from typing import Any

from stoker.render.agent_container import AGENT_PORT
from stoker.render.identity import ServiceIdentity
from stoker.render.labels import selector_labels
from stoker.render.meta import child_meta
from stoker.render.names import network_policy_name
from stoker.render.service import HTTP_PORT

_ANY_POD: dict[str, Any] = {"namespaceSelector": {}}
_OUTSIDE = (
    {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["169.254.0.0/16"]}},
    {"ipBlock": {"cidr": "::/0", "except": ["fd00:ec2::254/128", "fe80::/10"]}},
)


def network_policy(service: ServiceIdentity, engine: str) -> dict[str, Any]:
    """Return the NetworkPolicy."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": child_meta(service, engine, network_policy_name(service.name)),
        "spec": {
            "podSelector": {"matchLabels": selector_labels(service.name)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {"ports": [_port(HTTP_PORT)]},
                {"from": [_ANY_POD], "ports": [_port(AGENT_PORT)]},
            ],
            "egress": [
                {"ports": [_port(53, "UDP"), _port(53)]},
                {"to": [_ANY_POD, *_OUTSIDE]},
            ],
        },
    }


def _port(number: int, protocol: str = "TCP") -> dict[str, Any]:
    return {"protocol": protocol, "port": number}
