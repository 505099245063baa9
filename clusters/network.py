"""The network of a cluster: the veth pair that joins its namespace to the host, and the addresses of both ends.

The namespace has no name, it lives as long as its processes: `ip netns add` would leave a mount behind, and
`ip netns exec` would remount /sys, where the kubelet then finds no cgroups.
"""

import ipaddress
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from clusters import paths
from clusters.errors import ClusterError
from clusters.run import run

COMMAND_SECONDS = 30
POOL = ipaddress.ip_network("10.254.0.0/24")


@dataclass(frozen=True, slots=True)
class Network:
    """`address` is the cluster's end of the pair, `host_address` the host's, on the link `host_interface`."""

    host_interface: str
    address: str
    host_address: str


def enter(pid: int) -> list[str]:
    """The words before a command that run it in the network namespace of a process."""
    return ["nsenter", f"--target={pid}", "--net"]


def create(host_interface: str, pid: int, record: Path) -> Network:
    """Join the network namespace of process `pid` to the host, and write down the addresses, for `load`."""
    network = _plan(host_interface)
    paths.write_atomically(record, json.dumps(asdict(network)))
    host = network.host_interface
    for words in (
        ["ip", "link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", str(pid)],
        ["ip", "address", "add", f"{network.host_address}/30", "dev", host],
        ["ip", "link", "set", host, "up"],
        [*enter(pid), "ip", "link", "set", "lo", "up"],
        [*enter(pid), "ip", "address", "add", f"{network.address}/30", "dev", "eth0"],
        [*enter(pid), "ip", "link", "set", "eth0", "up"],
        [*enter(pid), "ip", "route", "add", "default", "via", network.host_address],
        [*enter(pid), "sysctl", "-q", "-w", "net.ipv4.ip_forward=1"],
    ):
        run(words, timeout_seconds=COMMAND_SECONDS)
    return network


def load(record: Path) -> Network | None:
    """What `create` wrote down; None where there is nothing."""
    try:
        return Network(**json.loads(record.read_text()))
    except (FileNotFoundError, json.JSONDecodeError, TypeError):
        return None


def delete(host_interface: str) -> None:
    """Remove the veth pair; the kernel may have done so when the namespace ended."""
    if _has(host_interface):
        try:
            run(["ip", "link", "delete", host_interface], timeout_seconds=COMMAND_SECONDS)
        except ClusterError:
            if _has(host_interface):
                raise


def _plan(host_interface: str) -> Network:
    taken = {
        ipaddress.ip_address(address["local"])
        for link in json.loads(run(["ip", "-j", "-4", "address"], timeout_seconds=COMMAND_SECONDS))
        for address in link.get("addr_info", [])
    }
    for subnet in POOL.subnets(new_prefix=30):
        if not any(address in subnet for address in taken):
            host, inside = subnet.hosts()
            return Network(host_interface, str(inside), str(host))
    raise ClusterError(f"every /30 of {POOL} is in use on this machine; remove a cluster with `make down`")


def _has(interface: str) -> bool:
    return Path("/sys/class/net", interface).exists()
