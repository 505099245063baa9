"""N21: whatever goes wrong with one service never delays another."""

from __future__ import annotations

import time

from tests.builders.specs import a_spec
from tests.cluster.support import Stage

SLOW_SERVICES = 24
UNREACHABLE = "https://10.255.255.1:443/"
GOOD_SECONDS = 30.0


def a_dead_webhook(team: str) -> dict[str, object]:
    """Return a webhook that nothing answers: creating a Service in the namespace takes 10 s and is refused."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "dead"},
        "webhooks": [
            {
                "name": "dead.example.com",
                "clientConfig": {"url": UNREACHABLE},
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


async def test_N21_services_behind_a_dead_webhook_delay_no_other(stage: Stage, team: str, new_team: object) -> None:
    good = new_team()  # type: ignore[operator]
    stage.plane.apply(a_dead_webhook(team))
    try:
        for index in range(SLOW_SERVICES):
            await stage.create(a_spec().manifest(f"slow-{index}", team))
        start = time.monotonic()
        await stage.create(a_spec().manifest("good", good))
        await stage.until_ready(good, "good")
        assert time.monotonic() - start < GOOD_SECONDS
        failed = await stage.until_condition(team, "Ready", "False", name="slow-0")
        assert "no answer" in failed["message"] or "webhook" in failed["message"], failed
    finally:
        stage.plane.kubectl("delete", "validatingwebhookconfiguration", "dead")
    await stage.until_ready(team, "slow-0", f"slow-{SLOW_SERVICES - 1}")
