"""Bad input that the schema cannot know is told by the first status that observes it; what serves is not touched."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from stoker.api.inferenceservice import GROUP, PLURAL, VERSION
from stoker.kube.resources import CONTROLLER_REVISION
from tests.builders.specs import a_spec
from tests.cluster.support import Json, Stage, condition_of
from tests.cluster.test_rule_references import an_env

HISTORY_SECONDS = 1
"""How long the API server is listened to for versions of an object; it begins with those of the past."""

CLAIM = {"name": "v", "mountPath": "/v", "persistentVolumeClaim": {"claimName": "absent"}}
FAR_TOO_LARGE = {
    "parameterCount": 2_000_000_000_000, "layers": 80, "attentionHeads": 64, "kvHeads": 8, "hiddenSize": 8192,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bad:
    """A change of a good spec, and what has to be said of it: the reason, the field, the way out."""

    change: Json
    reason: str
    path: str
    remedy: str
    before: Json = field(default_factory=dict)


CASES = {
    "tensor": Bad({"parallelism": {"tensor": 3}}, "TensorDoesNotDivideHeads", "spec.parallelism.tensor",
                  "set it to one of 1, 2, 4"),
    "size": Bad({"model": {"facts": {"inline": FAR_TOO_LARGE}}}, "DoesNotFit", "spec.accelerator",
                "would fit: spec.parallelism.tensor 64"),
    "quantization": Bad({"quantization": {"weights": "mxfp8"}}, "UnsupportedByEngine", "spec.quantization.weights",
                        "0.12", before={"engine": {"name": "vllm", "version": "0.12.0"}}),
    "argument": Bad({"engine": {"args": ["--max-model-len", "1"]}}, "OwnedArgument", "spec.engine.args[0]",
                    "set spec.context.maxLength and remove it"),
    "secret": Bad({"pod": {"env": an_env("secretKeyRef", "absent")}}, "SecretNotFound",
                  "spec.pod.env[0].valueFrom.secretKeyRef", "create it, or name another one"),
    "volume": Bad({"pod": {"volumes": [CLAIM]}}, "PersistentVolumeClaimNotFound", "spec.pod.volumes[0]",
                  "create it, or name another one"),
}  # fmt: skip


def statuses_since(stage: Stage, team: str, version: str) -> list[Json]:
    """Return every version of the service that was stored after one."""
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{team}/{PLURAL}"
    query = f"watch=1&resourceVersion={version}&timeoutSeconds={HISTORY_SECONDS}"
    printed = stage.plane.kubectl("get", "--raw", f"{path}?{query}")
    return [json.loads(line)["object"] for line in printed.splitlines()]


async def what_serves(stage: Stage, team: str) -> Json:
    """Return what bad input may not touch: the Deployment, its pods, the revisions."""
    deployment = await stage.child("Deployment", team)
    assert deployment is not None
    return {
        "deployment": deployment["spec"],
        "pods": {pod["metadata"]["uid"] for pod in await stage.pods(team)},
        "revisions": {each["metadata"]["uid"] for each in await stage.every(CONTROLLER_REVISION, team)},
    }


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
async def test_bad_input_is_told_by_the_first_status_that_observes_it(stage: Stage, team: str, case: Bad) -> None:
    spec = a_spec()
    for path, value in case.before.items():
        spec = spec.set(path, value)
    await stage.create(spec.manifest("chat", team))
    await stage.until_ready(team)
    before = await what_serves(stage, team)
    changed = await stage.change(team, "chat", **case.change)
    await stage.until_condition(team, "Stalled", "True", case.reason)
    await stage.until_quiet(2.0, team)
    generation, version = changed["metadata"]["generation"], changed["metadata"]["resourceVersion"]
    seen = [each["status"] for each in statuses_since(stage, team, version)]
    observing = [status for status in seen if status["observedGeneration"] == generation]
    assert observing
    for status in observing:
        stalled = condition_of({"status": status}, "Stalled")
        assert (stalled.get("status"), stalled.get("reason")) == ("True", case.reason)
        assert case.path in stalled["message"]
        assert case.remedy in stalled["message"]
        assert condition_of({"status": status}, "Available")["status"] == "True"
    assert await what_serves(stage, team) == before
