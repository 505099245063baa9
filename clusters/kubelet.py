"""The kubelet and kube-proxy of one cluster: their configuration and their command lines."""

from pathlib import Path
from typing import Any

import yaml

from clusters import components, containerd


def configuration(cgroup: str, dns_address: str, client_ca: Path) -> str:
    """The kubelet's configuration file.

    `cgroup` is the cluster's own root, such as `/stoker-demo`; `client_ca` signs for the API server when it fetches
    logs or forwards ports. Eviction and image collection are put off: this node shares its disk with everything else.
    """
    return _dump(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "cgroupRoot": cgroup,
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            "enforceNodeAllocatable": [],
            "containerRuntimeEndpoint": f"unix://{containerd.SOCKET}",
            "clusterDomain": "cluster.local",
            "clusterDNS": [dns_address],
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(client_ca)},
            },
            "authorization": {"mode": "Webhook"},
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1%",
                "nodefs.inodesFree": "1%",
                "imagefs.available": "1%",
            },
            "imageGCHighThresholdPercent": 100,
            "serializeImagePulls": False,
            "registryPullQPS": 0,
            "eventRecordQPS": 0,
            "kubeAPIQPS": 200,
            "kubeAPIBurst": 400,
        }
    )


def command(program: Path, configuration_file: Path, kubeconfig: Path, node: str, address: str) -> list[str]:
    """The kubelet's command line."""
    return [
        str(program),
        f"--config={configuration_file}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={node}",
        f"--node-ip={address}",
    ]


def proxy_configuration(kubeconfig: Path, node: str) -> str:
    """kube-proxy's configuration file.

    All traffic to Services is masqueraded, so that it is answered through the same way even between two pods on the one
    bridge; connection-tracking limits are the host's and stay as they are.
    """
    return _dump(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "hostnameOverride": node,
            "mode": "iptables",
            "clusterCIDR": components.POD_CIDR,
            "bindAddress": "0.0.0.0",  # noqa: S104
            "healthzBindAddress": "127.0.0.1:10256",
            "metricsBindAddress": "127.0.0.1:10249",
            "iptables": {"masqueradeAll": True, "minSyncPeriod": "100ms"},
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        }
    )


def proxy_command(program: Path, configuration_file: Path) -> list[str]:
    """kube-proxy's command line."""
    return [str(program), f"--config={configuration_file}"]


def _dump(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False)
