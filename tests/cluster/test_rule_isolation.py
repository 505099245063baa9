"""N21: whatever goes wrong with one service never delays another."""

from __future__ import annotations

import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests.builders.specs import a_spec
from tests.cluster.support import Stage

WORKERS = 2
SLOW_SERVICES = 8
"""Were they worked on like all others, the last one would wait for some 30 s: three calls of 10 s."""
GOOD_SECONDS = 15.0


def a_dead_webhook(team: str, port: int) -> dict[str, object]:
    """Return a webhook at a port of this machine, which is asked before a Service is created in a namespace."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "dead"},
        "webhooks": [
            {
                "name": "dead.example.com",
                "clientConfig": {"url": f"https://127.0.0.1:{port}/"},
                "rules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"], "operations": ["CREATE"]},
                ],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": team}},
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": 10,
            }
        ],
    }  # fmt: skip


@pytest.fixture
async def few_workers(stage: Stage) -> AsyncIterator[None]:
    """Operators that work on few services at the same time."""
    stage.stop_operator()
    stage.start_operator(workers=str(WORKERS))
    await stage.leader()
    yield
    stage.stop_operator()
    del stage.settings["workers"]
    stage.start_operator()
    await stage.leader()


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word: whoever asks waits for as long as it can."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as server:
        yield server.getsockname()[1]


@pytest.mark.usefixtures("few_workers")
async def test_N21_services_behind_a_dead_webhook_delay_no_other(
    stage: Stage, team: str, new_team: Callable[[], str], silent_port: int
) -> None:
    good = new_team()
    names = [f"slow-{index}" for index in range(SLOW_SERVICES)]
    stage.plane.apply(a_dead_webhook(team, silent_port))
    try:
        for name in names:
            await stage.create(a_spec().manifest(name, team))
        for name in names:  # from now on all of them are tried again and again
            failed = await stage.until_condition(team, "Ready", "False", name=name)
            assert "no answer" in failed["message"] or "webhook" in failed["message"], failed
        start = time.monotonic()
        await stage.create(a_spec().manifest("good", good))
        await stage.until_ready(good, "good")
        assert time.monotonic() - start < GOOD_SECONDS
    finally:
        stage.plane.kubectl("delete", "validatingwebhookconfiguration", "dead")
    await stage.until_ready(team, names[0], names[-1])
