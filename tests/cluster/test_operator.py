"""The operator at work: from an applied object to running children and a truthful status."""

from __future__ import annotations

from tests.builders.specs import a_spec
from tests.cluster.support import Stage, condition_of


async def test_an_applied_service_gets_its_children_and_becomes_ready(stage: Stage, team: str) -> None:
    await stage.create(a_spec().manifest("chat", team))
    await stage.until_ready(team)
    for kind in ("Deployment", "Service", "ServiceAccount", "NetworkPolicy"):
        child = await stage.child(kind, team)
        assert child is not None, kind
        (owner,) = child["metadata"]["ownerReferences"]
        assert (owner["controller"], owner["blockOwnerDeletion"]) == (True, False)
    assert await stage.child("PodDisruptionBudget", team) is None
    service = await stage.service(team)
    assert service["status"]["observedGeneration"] == service["metadata"]["generation"]
    assert condition_of(service, "Available")["status"] == "True"
    assert "finalizers" not in service["metadata"]
    assert "annotations" not in service["metadata"]
