"""The status as a whole: times are kept, counts are told, everything is bounded and follows the schema."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.api.structural import check
from stoker.plan.types import RankMemory, Suggestion
from stoker.status.outcome import Finding
from tests.builders.layouts import a_layout
from tests.builders.views import a_pod
from tests.unit.status.support import EARLIER, NEW, NOW, SCHEMA, Seen


def test_a_transition_time_moves_with_the_status_alone() -> None:
    first = Seen(counts=(2, 2, 1, 1), now=EARLIER).status()
    then = Seen(before=first).status()
    times = {condition["type"]: condition["lastTransitionTime"] for condition in then["conditions"]}
    assert times["Ready"] == NOW
    assert times["Available"] == times["UpToDate"] == times["Fits"] == EARLIER


@pytest.mark.parametrize("before", [{}, {"conditions": None}, {"conditions": ["x", {}, {"type": "Ready"}]}, {"a": 1}])
def test_a_status_that_somebody_spoiled_is_replaced(before: Mapping[str, Any]) -> None:
    assert Seen(before=before).status() == Seen().status()


def test_the_counts_and_the_addresses_are_told() -> None:
    pods = tuple(a_pod(f"p{i}", node="a", gpus=2, ready=True, revision=NEW) for i in range(2))
    ended = replace(a_pod("gone", gpus=2), phase="Failed")
    status = Seen(counts=(3, 2, 1, 1), pods=(*pods, ended)).status()
    assert [status[key] for key in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")] == [
        3,
        2,
        1,
        1,
    ]
    assert status["gpus"] == 4
    assert status["url"] == "http://chat.team-a.svc:8000"
    assert status["selector"] == "serving.stoker.dev/service=chat"


def test_N21_a_pod_with_our_label_that_asks_for_what_nothing_has_breaks_no_status() -> None:
    """Whoever may create pods may label one so, and the API server takes any number of GPUs."""
    assert Seen(pods=(a_pod("p", gpus=2**63 - 1), a_pod("q", gpus=1))).status()["gpus"] == 2**31 - 1


def test_the_layout_and_the_revision_are_told() -> None:
    rank = RankMemory(0, 32, 16 * 2**30, 2**30, 2**29, 2**30, 131072, 0, 72 * 2**30, 40 * 2**30, 327680)
    layout = a_layout(
        ranks=(rank,),
        origins={"memory": "node label"},
        suggestions=(Suggestion({"spec.parallelism.tensor": "2"}, "use 2"),),
    )
    status = Seen(layout=layout).status()
    told = status["layout"]
    assert (told["weightBytesPerRank"], told["kvBytesPerTokenPerRank"], told["kvTokens"]) == (
        16 * 2**30,
        131072,
        400_000,
    )
    assert (told["verdict"], told["maxConcurrency"], told["gpusPerPod"]) == ("Fits", "48.8", 1)
    assert told["origins"] == [{"name": "memory", "origin": "node label"}]
    assert told["suggestions"] == ["use 2"]
    assert status["revision"] == {
        "key": NEW, "name": "chat-r2", "number": 2, "strategy": "Surge", "strategyReason": "two GPUs are free",
    }  # fmt: skip


@settings(deadline=None)
@given(st.text(max_size=5000), st.text(max_size=80))
def test_the_status_is_bounded_whatever_is_found(text: str, reason: str) -> None:
    seen = Seen(
        findings=(Finding(reason, text, stalled=True), Finding("Other", text, stalled=True)),
        layout=a_layout(reasons=(text,) * 40, origins={f"{text}{i}": text for i in range(50)}),
    )
    status = seen.status()
    assert list(check(SCHEMA, status, "status")) == []
    assert max(len(condition["message"].encode()) for condition in status["conditions"]) <= 1024
