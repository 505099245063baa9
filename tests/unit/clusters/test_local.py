"""What a local cluster writes for its programs, and where it puts what it makes on the host."""

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusters import cgroups, components, containerd, identities, kubelet, mounts, network
from clusters.errors import ClusterError
from clusters.identities import User
from clusters.local import LocalCluster

CGROUP_V1 = """\
tmpfs /sys/fs/cgroup tmpfs rw 0 0
cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0
cgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0
cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0
/dev/vda / ext4 rw 0 0
"""


def test_clusters_of_one_name_in_two_caches_share_nothing_on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for cache in ("/one", "/two"):
        monkeypatch.setenv("STOKER_CACHE", cache)
        made.append(LocalCluster("stoker-demo"))
    first, second = made
    assert first.cgroup != second.cgroup
    assert first.host_interface != second.host_interface
    assert len(first.host_interface) <= 15


def test_every_hierarchy_of_either_version_is_found() -> None:
    found = cgroups.hierarchies(CGROUP_V1)
    assert found == [Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup/unified")]


def test_a_cluster_that_is_down_has_no_members_and_no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STOKER_CACHE", str(tmp_path))
    cluster = LocalCluster("stoker-demo")
    assert cgroups.members(cluster.cgroup) == []
    assert not cluster.is_up()
    with pytest.raises(ClusterError, match="stoker-demo is not up"):
        _ = cluster.network


def test_a_network_record_that_cannot_be_read_counts_as_none(tmp_path: Path) -> None:
    (tmp_path / "network.json").write_text('{"address": 1')
    assert network.load(tmp_path / "network.json") is None
    assert network.load(tmp_path / "absent.json") is None


def test_the_mounts_of_the_host_are_never_touched(tmp_path: Path) -> None:
    before = Path("/proc/self/mountinfo").read_text()
    with pytest.raises(ClusterError, match="shares the mounts of this one"):
        mounts.prepare(os.getpid(), tmp_path)
    assert Path("/proc/self/mountinfo").read_text() == before


def test_containerd_runs_where_oom_scores_cannot_be_lowered() -> None:
    settings = tomllib.loads(containerd.configuration(Path("/state/network")))
    cri: dict[str, Any] = settings["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["restrict_oom_score_adj"] is True
    assert cri["netns_mounts_under_state_dir"] is True
    assert cri["cni"]["conf_dir"] == "/state/network"


def test_the_kubelet_keeps_to_the_cgroup_of_its_cluster_and_lets_nobody_in_unknown() -> None:
    settings = yaml.safe_load(kubelet.configuration("/stoker-demo-1", "10.254.0.2", Path("/ca.crt")))
    assert settings["cgroupRoot"] == "/stoker-demo-1"
    assert settings["failCgroupV1"] is False
    assert settings["clusterDNS"] == ["10.254.0.2"]
    assert settings["authentication"]["anonymous"]["enabled"] is False
    assert settings["authorization"]["mode"] == "Webhook"


def test_kwok_leaves_real_nodes_alone() -> None:
    at = components.Addresses("127.0.0.1", "127.0.0.1", "192.0.2.1", 1, 2, 3, 4, 5, 6)
    argv = components.kwok(Path("kwok"), Path("stages.yaml"), at, Path("kubeconfig"))
    assert f"--manage-nodes-with-annotation-selector={components.FAKE_NODES}" in argv
    assert not any("manage-all-nodes" in word for word in argv)


def test_tokens_are_read_back_as_they_were_written_and_by_their_owner_alone(tmp_path: Path) -> None:
    users = [User("jane"), User("joe", ("developers", "on-call"))]
    written = identities.write_token_file(tmp_path / "tokens.csv", users)
    assert identities.read_token_file(tmp_path / "tokens.csv") == written
    assert len(set(written.values())) == 2
    assert (tmp_path / "tokens.csv").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("level", ["privileged", "baseline", "restricted"])
def test_pod_security_is_enforced_by_default_and_never_on_the_system(level: components.PodSecurityLevel) -> None:
    (plugin,) = yaml.safe_load(components.admission_configuration(level))["plugins"]
    assert plugin["configuration"]["defaults"]["enforce"] == level
    assert plugin["configuration"]["exemptions"] == {"namespaces": ["kube-system"]}
