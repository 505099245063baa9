"""containerd for one cluster: its configuration, its network plugin, and its command line.

It runs in a mount namespace where the usual folders are the cluster's own (see `mounts`), so the usual paths are right.
"""

import json
from pathlib import Path

SOCKET = Path("/run/containerd/containerd.sock")
PLUGINS = Path("/usr/lib/cni")
STORE = "/var/lib/containerd"
# What the CRI plugin remembers of containers, beside containerd's own records of them.
REMEMBERED = ("io.containerd.grpc.v1.cri/containers", "io.containerd.grpc.v1.cri/sandboxes")
PAUSE_IMAGE = "stoker.local/pause:1"


def configuration(network_folder: Path) -> str:
    """containerd's configuration file (version 2, as containerd 1.6 and 1.7 read it).

    `restrict_oom_score_adj` is for machines that withhold CAP_SYS_RESOURCE: without it no sandbox starts there. A
    profile of AppArmor would be loaded for the whole machine, and stay.
    """
    return f"""\
version = 2
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "{PLUGINS}"
  conf_dir = "{network_folder}"
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
"""


def network_configuration(pod_cidr: str) -> str:
    """The network of pods: a bridge in the cluster's namespace. It enforces no NetworkPolicy."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": pod_cidr}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, portmap]}, indent=1)


def command(configuration_file: Path) -> list[str]:
    """containerd's command line."""
    return ["containerd", f"--config={configuration_file}", "--log-level=warn"]


def ctr(*words: str) -> list[str]:
    """A command of containerd's own client, in the kubelet's part of the image store."""
    return ["ctr", f"--address={SOCKET}", "--namespace=k8s.io", *words]
