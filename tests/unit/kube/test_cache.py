"""The cache: the newest version wins, what was deleted stays deleted."""

from __future__ import annotations

import pytest

from stoker.kube.cache import Cache
from tests.builders.objects import a_stored_pod, an_object

KINDS = ("Deployment", "Service")


@pytest.fixture
def cache() -> Cache:
    found = Cache(KINDS)
    found.put("InferenceService", an_object("InferenceService", uid="svc"))
    return found


def test_an_older_version_changes_nothing(cache: Cache) -> None:
    assert cache.put("Deployment", an_object("Deployment", version=5, owner="svc", spec={"replicas": 2}))
    assert not cache.put("Deployment", an_object("Deployment", version=4, owner="svc", spec={"replicas": 1}))
    deployment = cache.children["Deployment"].of("svc")[0].deployment
    assert deployment is not None
    assert deployment.spec_replicas == 2


def test_N2_the_echo_of_our_own_write_is_no_change(cache: Cache) -> None:
    written = an_object("Service", version=7, owner="svc")
    assert cache.put("Service", written)
    assert not cache.put("Service", written)


def test_N2_a_newer_version_without_a_difference_is_no_change(cache: Cache) -> None:
    cache.put("Deployment", an_object("Deployment", version=5, owner="svc", status={"replicas": 1}))
    heartbeat = an_object("Deployment", version=6, owner="svc", status={"replicas": 1, "conditions": []})
    assert not cache.put("Deployment", heartbeat)
    assert cache.put("Deployment", an_object("Deployment", version=7, owner="svc", status={"replicas": 2}))


def test_a_late_answer_about_a_deleted_object_does_not_bring_it_back(cache: Cache) -> None:
    written = an_object("Service", version=7, owner="svc")
    cache.put("Service", written)
    cache.remove("Service", "uid-Service-chat")
    assert not cache.put("Service", written)
    assert cache.children["Service"].named("team-a", "chat") is None


def test_a_successor_of_the_same_name_is_another_object(cache: Cache) -> None:
    cache.put("Service", an_object("Service", uid="old", version=5, owner="svc"))
    cache.put("Service", an_object("Service", uid="new", version=9, owner="svc"))
    cache.remove("Service", "old")
    found = cache.children["Service"].named("team-a", "chat")
    assert found is not None
    assert found.uid == "new"


def test_N22_a_late_end_of_the_predecessor_leaves_the_names_of_a_service_watched(cache: Cache) -> None:
    """The stream keeps the order of one object only: its end may be told after the beginning of its successor."""
    cache.put("InferenceService", an_object("InferenceService", uid="new", version=9))
    cache.remove("InferenceService", "svc", 8)
    assert cache.key_of("Service", an_object("Service", "chat", owner="other")) == ("team-a", "chat")
    cache.remove("InferenceService", "new", 10)
    assert cache.key_of("Service", an_object("Service", "chat", owner="other")) is None


def test_a_child_is_found_by_its_owner_and_follows_a_change_of_owner(cache: Cache) -> None:
    cache.put("Service", an_object("Service", version=1, owner="svc"))
    assert cache.put("Service", an_object("Service", version=2, owner="other"))
    assert (cache.children["Service"].of("svc"), len(cache.children["Service"].of("other"))) == ([], 1)


def test_an_object_that_lost_our_label_is_known_again_when_the_label_is_back(cache: Cache) -> None:
    cache.put("Service", an_object("Service", version=5, owner="svc"))
    cache.remove("Service", "uid-Service-chat", version=6)
    assert not cache.put("Service", an_object("Service", version=6, owner="svc"))
    assert cache.put("Service", an_object("Service", version=7, owner="svc"))


def test_an_object_concerns_the_service_that_owns_it_or_whose_childs_name_it_has(cache: Cache) -> None:
    assert cache.key_of("Service", an_object("Service", "x", owner="svc")) == ("team-a", "chat")
    assert cache.key_of("Service", an_object("Service", "chat", owner="other")) == ("team-a", "chat")
    assert cache.key_of("ServiceAccount", an_object("ServiceAccount", "chat-engine")) == ("team-a", "chat")
    assert cache.key_of("Pod", a_stored_pod()) == ("team-a", "chat")
    assert cache.key_of("Pod", a_stored_pod(service="unknown")) is None
    assert cache.key_of("Service", an_object("Service", "chat", namespace="team-b")) is None
    cache.remove("InferenceService", "svc")
    assert cache.key_of("Service", an_object("Service", "chat")) is None


def test_N15_pods_of_a_service_with_a_long_name_are_found_by_its_shortened_label() -> None:
    from stoker.render.names import label_value

    cache, name = Cache(KINDS), "1." + "x" * 251
    cache.put("InferenceService", an_object("InferenceService", name, uid="svc"))
    assert cache.key_of("Pod", a_stored_pod(service=label_value(name))) == ("team-a", name)


def test_what_our_pods_hold_is_counted_as_they_come_move_and_go(cache: Cache) -> None:
    waiting = a_stored_pod(version=1)
    placed = a_stored_pod(version=2, spec={"nodeName": "n1"}, status={"phase": "Running"})
    cache.put("Pod", waiting)
    assert cache.held == {}
    cache.put("Pod", placed)
    cache.put("Pod", a_stored_pod("chat-1", spec={"nodeName": "n1"}))
    assert cache.held == {"n1": {"nvidia.com/gpu": 4}}
    cache.put("Pod", a_stored_pod(version=3, spec={"nodeName": "n1"}, status={"phase": "Succeeded"}))
    assert cache.held == {"n1": {"nvidia.com/gpu": 2}}
    cache.remove("Pod", "uid-Pod-chat-1")
    assert cache.held == {}


def test_services_with_a_pod_that_has_no_place_wait_for_nodes(cache: Cache) -> None:
    cache.put("Pod", a_stored_pod())
    assert cache.waiting_services() == set()
    message = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "0/3 nodes are available",
    }
    cache.put("Pod", a_stored_pod(version=2, status={"conditions": [message]}))
    assert cache.waiting_services() == {("team-a", "chat")}
