"""What the tests of the decision share."""

from dataclasses import replace
from typing import Any

from stoker.plan.snapshot import ReferenceView
from stoker.reconcile.decision import Decision
from stoker.render.labels import REVISION
from tests.builders.snapshots import Life
from tests.builders.specs import SpecBuilder, a_spec
from tests.builders.views import a_node

H100 = "NVIDIA-H100-80GB-HBM3"
T1, T2 = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
TOO_LARGE = "hf://meta-llama/Llama-3.1-70B-Instruct"


def a_life(spec: SpecBuilder | None = None, **changes: Any) -> Life:
    """A service on a cluster with one node of eight GPUs."""
    return Life(spec or a_spec().on(H100), nodes=(a_node(gpus=8),), **changes)


def kinds(decision: Decision) -> list[str]:
    """The kinds that are applied, in order."""
    return [child["kind"] for child in decision.apply]


def stalled(decision: Decision) -> dict[str, Any] | None:
    """The condition Stalled, where it is true."""
    assert decision.status is not None
    found = [c for c in decision.status["conditions"] if c["type"] == "Stalled" and c["status"] == "True"]
    return found[0] if found else None


def condition_of(decision: Decision, kind: str) -> dict[str, Any]:
    """A condition, whatever its status."""
    assert decision.status is not None
    (found,) = (condition for condition in decision.status["conditions"] if condition["type"] == kind)
    return dict(found)


def secret(digest: str | None = "d1", **changes: Any) -> ReferenceView:
    """The Secret of `WITH_SECRET`; without a digest it does not exist."""
    view = ReferenceView(
        "Secret", "keys", "spec.pod.env[0].valueFrom.secretKeyRef.name", exists=digest is not None, digest=digest
    )
    return replace(view, **changes)


WITH_SECRET = (
    a_spec().on(H100).set("pod.env", [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}}])
)


def revision_of(life: Life) -> str:
    """The key of the revision that the Deployment runs."""
    label: str = life.template()["metadata"]["labels"][REVISION]
    return label


def strategy_of(life: Life) -> str:
    """The way in which the Deployment replaces pods."""
    spec = life.bodies[("Deployment", "chat")]["spec"]["strategy"]
    if spec["type"] == "Recreate":
        return "Recreate"
    return "Surge" if spec["rollingUpdate"]["maxSurge"] else "Replace"
