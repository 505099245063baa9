"""The decision: references, and input that cannot be rendered."""

import json
from dataclasses import replace

import pytest

from stoker.api.crd import object_schema
from stoker.api.structural import check
from stoker.plan.snapshot import ReferenceView
from stoker.reconcile.decision import EventIntent
from tests.builders import last_words as said
from tests.builders.configs import a_config
from tests.builders.failures import crashed
from tests.builders.snapshots import an_object
from tests.builders.specs import SpecBuilder, a_spec
from tests.unit.reconcile.support import (
    H100,
    TOO_LARGE,
    WITH_SECRET,
    a_life,
    condition_of,
    kinds,
    revision_of,
    secret,
    stalled,
)


# ---- references (N19) and bad input --------------------------------------------------------------------------------
def test_N19_the_content_of_a_secret_in_the_environment_makes_a_revision() -> None:
    life = a_life(WITH_SECRET, references=(secret("d1"),))
    life.reconcile()
    first = revision_of(life)
    assert life.reconcile().create_revision is None
    life.references = (secret("d2"),)
    assert life.reconcile().create_revision is not None
    assert revision_of(life) != first


def test_N19_the_credentials_of_the_hub_make_none() -> None:
    view = ReferenceView("Secret", "hub", "spec.model.credentialsSecret", exists=True, digest="d1")
    life = a_life(a_spec().on(H100).set("model.credentialsSecret", "hub"), references=(view,))
    life.reconcile()
    life.references = (replace(view, digest="d2"),)
    assert life.reconcile().create_revision is None


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Secret", "spec.pod.env[0].valueFrom.secretKeyRef.name"),
        ("Secret", "spec.model.credentialsSecret"),
        ("ConfigMap", "spec.model.facts.configMapName"),
        ("PersistentVolumeClaim", "spec.model.source"),
        ("ServiceAccount", "spec.pod.serviceAccountName"),
    ],
)
def test_a_missing_object_stalls_until_it_appears(kind: str, path: str) -> None:
    life = a_life(references=(ReferenceView(kind, "x", path, exists=False),))
    decision = life.reconcile()
    condition = stalled(decision)
    assert condition is not None
    assert condition["reason"] == f"{kind}NotFound"
    assert path in condition["message"]
    assert (decision.create_revision, decision.apply) == (None, ())
    assert decision.requeue_after_seconds is not None
    assert [event.reason for event in decision.events] == [f"{kind}NotFound"]
    life.references = (ReferenceView(kind, "x", path, exists=True, digest="d"),)
    decision = life.reconcile()
    assert stalled(decision) is None
    assert "Deployment" in kinds(decision)


def test_an_event_is_sent_once() -> None:
    life = a_life(references=(secret(None),))
    assert life.reconcile().events
    assert not life.reconcile().events


@pytest.mark.parametrize(
    ("first", "then", "events"),
    [
        (said.VLLM_KV, said.VLLM_KV.replace("(8.7 GiB)", "(9.1 GiB)"), 1),
        (said.LLAMA_CUT, said.LLAMA_MAGIC, 1),
        (said.VLLM_KV, said.VLLM_OOM, 2),
    ],
    ids=["a figure", "words of the engine", "another cause"],
)
def test_what_moves_in_a_message_is_no_new_event(first: str, then: str, events: int) -> None:
    life = a_life()
    life.reconcile()
    life.ready = 0
    seen: list[EventIntent] = []
    told: set[str] = set()
    for each in (first, then):
        life.pods = (replace(crashed(each), revision=revision_of(life)),)
        decision = life.reconcile()
        seen += decision.events
        told.add(condition_of(decision, "Stalled")["message"])
    assert len(told) == 2
    assert len(seen) == events


def test_another_field_or_another_spec_is_a_new_event() -> None:
    two = (secret(None), ReferenceView("Secret", "b", "spec.model.credentialsSecret", exists=False))
    life = a_life(WITH_SECRET, references=two)
    assert life.reconcile().events
    life.references = two[:1]
    assert life.reconcile().events
    life.set("model.names", ["x"])
    life.references = (replace(two[0], name="again"),)
    assert life.reconcile().events


def test_an_object_in_the_way_that_is_another_one_is_a_new_event() -> None:
    life = a_life()
    life.children[("Service", "chat")] = an_object("Service", uid="somebody-else")
    assert life.reconcile().events
    assert not life.reconcile().events
    life.children[("NetworkPolicy", "chat")] = an_object("NetworkPolicy", uid="somebody-else")
    assert life.reconcile().events


def test_a_missing_secret_touches_nothing_that_serves() -> None:
    life = a_life(WITH_SECRET, references=(secret("d1"),))
    life.reconcile()
    before = life.template()
    life.references = (secret(None),)
    decision = life.reconcile()
    assert stalled(decision) is not None
    assert (decision.create_revision, decision.apply, decision.delete) == (None, (), ())
    assert life.template() == before


def test_an_optional_secret_may_be_missing() -> None:
    life = a_life(WITH_SECRET, references=(secret(None, optional=True),))
    assert "Deployment" in kinds(life.reconcile())
    first = revision_of(life)
    life.references = (secret("d1", optional=True),)
    life.reconcile()
    assert revision_of(life) != first


def test_N19_a_secret_that_cannot_be_read_rolls_nothing() -> None:
    life = a_life(WITH_SECRET, references=(secret("d1"),))
    life.reconcile()
    life.references = (secret(None, exists=None, problem="forbidden"),)
    decision = life.reconcile()
    assert (decision.create_revision, decision.apply) == (None, ())
    assert stalled(decision) is None
    assert decision.requeue_after_seconds is not None
    assert decision.status is not None
    ready = next(c for c in decision.status["conditions"] if c["type"] == "Ready")
    assert "forbidden" in ready["message"] + next(
        (c["message"] for c in decision.status["conditions"] if c["type"] == "UpToDate"), ""
    )


WARM = a_spec().on(H100).max_length(100)
SHORT = {
    "layers": 4,
    "attentionHeads": 4,
    "hiddenSize": 512,
    "parameterCount": 10**8,
    "vocabularySize": 1000,
    "maxContextLength": 512,
}
NEVER_WARM = {
    "the built-in prompt": (WARM.max_length(9), "spec.context.maxLength", "to 10 at least"),
    "the second built-in prompt": (WARM.max_length(80).set("warmup.requests", 2), "spec.context.maxLength", "to 88"),
    "a prompt": (WARM.set("warmup.prompts", ["a", "b " * 93]), "spec.warmup.prompts[1]", "takes 101 tokens or more"),
    "a prompt beyond what the model was made for": (
        WARM.set("context", None).facts(**SHORT).set("warmup.prompts", ["b " * 1000]), "spec.warmup.prompts[0]",
        "limited to 512",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "path", "says"), NEVER_WARM.values(), ids=NEVER_WARM)
def test_a_warmup_that_no_sequence_can_hold_is_told_before_a_pod_waits_for_it(
    spec: SpecBuilder, path: str, says: str
) -> None:
    decision = a_life(spec).reconcile()
    condition = stalled(decision)
    assert condition is not None
    assert condition["reason"] == "WarmupTooLong"
    assert condition["message"].startswith(path)
    assert says in condition["message"]
    assert decision.create_revision is None


@pytest.mark.parametrize(
    "spec",
    [
        WARM.max_length(10),
        WARM.max_length(80),
        WARM.max_length(9).set("warmup.requests", 0),
        WARM.set("warmup.prompts", ["a", "b " * 92]),
        WARM.model("hf://acme/unheard-of").set("context", None).set("warmup.prompts", ["b " * 1000]),
    ],
)
def test_a_warmup_that_may_fit_is_tried(spec: SpecBuilder) -> None:
    assert stalled(a_life(spec).reconcile()) is None


BAD = {
    "a model that does not fit": a_spec().on(H100).model(TOO_LARGE),
    "a tensor size that does not divide the heads": a_spec().on(H100).tensor(3),
    "an unknown quantization": a_spec().on(H100).weights("nonsense"),
    "an argument with two owners": a_spec().on(H100).set("engine.args", ["--max-model-len", "1"]),
    "a malformed source": a_spec().on(H100).model("nonsense"),
    "a field that does not exist": a_spec().on(H100).set("engine.nonsense", 1),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_stalls_within_one_reconcile_and_creates_nothing(name: str) -> None:
    decision = a_life(BAD[name]).reconcile()
    condition = stalled(decision)
    assert condition is not None
    assert "spec." in condition["message"]
    assert (decision.create_revision, decision.apply, decision.delete) == (None, (), ())


@pytest.mark.parametrize("name", BAD)
def test_bad_input_touches_nothing_that_serves(name: str) -> None:
    life = a_life()
    life.reconcile()
    before = dict(life.bodies)
    life.spec = BAD[name]
    decision = life.reconcile()
    assert stalled(decision) is not None
    assert (decision.create_revision, decision.apply, decision.delete) == (None, (), ())
    assert life.bodies == before


def test_bad_input_does_not_stop_healing_and_scaling() -> None:
    life = a_life()
    life.reconcile()
    before = life.template()
    life.spec = BAD["a tensor size that does not divide the heads"].replicas(3)
    life.touch("Service")
    assert kinds(life.reconcile()) == ["Service", "PodDisruptionBudget", "Deployment"]
    assert life.template() == before


def test_bad_input_that_is_corrected_goes_on() -> None:
    life = a_life(BAD["a model that does not fit"])
    life.reconcile()
    life.spec = a_spec().on(H100)
    decision = life.reconcile()
    assert stalled(decision) is None
    assert "Deployment" in kinds(decision)


def test_every_fault_is_told_at_once() -> None:
    spec = a_spec().on(H100).tensor(3).set("engine.args", ["--max-model-len", "1"])
    condition = stalled(a_life(spec).reconcile())
    assert condition is not None
    assert "spec.parallelism.tensor" in condition["message"]
    assert "spec.engine.args" in condition["message"]


@pytest.mark.parametrize("kind", ["Ready", "UpToDate", "Stalled"])
def test_a_missing_object_hides_no_other_fault(kind: str) -> None:
    spec = a_spec().on(H100).tensor(3).set("engine.args", ["--port", "1"])
    missing = ReferenceView("Secret", "hub", "spec.model.credentialsSecret", exists=False)
    life = a_life(spec, references=(missing, secret(None, exists=None, problem="forbidden")))
    life.children[("Service", "chat")] = an_object("Service", uid="somebody-else")
    condition = condition_of(life.reconcile(), kind)
    assert condition["reason"] == "SecretNotFound"
    for part in ("no Secret hub", "spec.parallelism.tensor", "spec.engine.args[0]", "Service chat exists"):
        assert part in condition["message"]
    assert ("forbidden" in condition["message"]) is (kind != "Stalled")  # nobody has to act on that


@pytest.mark.parametrize(("replicas", "conflicts"), [(1, False), (2, True)])
def test_N22_only_names_that_are_wanted_conflict_before_anything_is_rendered(replicas: int, conflicts: bool) -> None:
    life = a_life(a_spec().on(H100).replicas(replicas), references=(secret(None),))
    life.children[("PodDisruptionBudget", "chat")] = an_object("PodDisruptionBudget", uid="somebody-else")
    condition = stalled(life.reconcile())
    assert condition is not None
    assert ("PodDisruptionBudget chat exists" in condition["message"]) is conflicts


def test_all_faults_together_stay_within_a_message_that_tells_what_serves() -> None:
    life = a_life()
    life.reconcile()
    named = (ReferenceView("Secret", f"s{i}", f"spec.pod.env[{i}]", exists=False) for i in range(64))
    life.references = tuple(named)
    ready = condition_of(life.reconcile(), "Ready")
    assert len(ready["message"].encode()) <= 1024
    assert ready["message"].endswith("(meanwhile 1 pod serves)")


def test_a_model_that_does_not_fit_is_told_beside_other_faults() -> None:
    condition = stalled(a_life(BAD["a model that does not fit"].set("engine.args", ["--port", "1"])).reconcile())
    assert condition is not None
    assert "spec.accelerator" in condition["message"]
    assert "spec.engine.args" in condition["message"]


def test_an_unknown_model_starts_all_the_same() -> None:
    decision = a_life(a_spec().on(H100).model("hf://acme/unheard-of")).reconcile()
    assert "Deployment" in kinds(decision)
    assert stalled(decision) is None


INLINE = {"layers": 1024, "attentionHeads": 4096, "headDim": 2**20, "hiddenSize": 2**20, "parameterCount": 10**15}
ABSURD = {
    "memory of a CPU engine": a_spec().on_cpu("999Ti"),
    "memory of a GPU": a_spec().on(memory="999Ti"),
    "a model": a_spec().on(H100).facts(**INLINE, maxContextLength=10**8),
    "a vocabulary": a_spec().on(H100).facts(**{**INLINE, "vocabularySize": 10**15, "parameterCount": 10**15}),
}


@pytest.mark.parametrize("spec", ABSURD.values(), ids=ABSURD)
def test_numbers_beyond_every_device_get_a_status(spec: SpecBuilder) -> None:
    """A layout that the status cannot hold would end every reconcile of the service without a word."""
    status = a_life(spec).reconcile().status
    assert status is not None
    assert not list(check(object_schema()["properties"]["status"], status, "status"))


def test_a_model_that_keeps_nothing_in_a_container_beyond_measure_gets_a_status() -> None:
    config = json.dumps(a_config(layer_types=["mlp", "mlp"]))
    view = ReferenceView(
        "ConfigMap", "c", "spec.model.facts.configMapName", exists=True, data={"config.json": config}, digest="d"
    )
    spec = a_spec().on_cpu("999Ti").set("model.facts.configMapName", "c").max_length(1)
    status = a_life(spec, references=(view,)).reconcile().status
    assert status is not None
    assert not list(check(object_schema()["properties"]["status"], status, "status"))


@pytest.mark.parametrize("kind", ["linear", "dynamic"])
def test_a_model_whose_scaling_leaves_no_token_is_unknown(kind: str) -> None:
    config = json.dumps(a_config(rope_scaling={"rope_type": kind, "factor": 1e-9}))
    view = ReferenceView(
        "ConfigMap", "c", "spec.model.facts.configMapName", exists=True, data={"config.json": config}, digest="d"
    )
    life = a_life(a_spec().on(H100).set("model.facts.configMapName", "c"), references=(view,))
    status = life.reconcile().status
    assert status is not None
    assert status["layout"]["verdict"] == "Unknown"
    assert "rope_scaling.factor" in status["layout"]["reasons"][0]


@pytest.mark.parametrize("spec", [a_spec(), a_spec().llama_cpp()], ids=["vllm", "llama.cpp"])
@pytest.mark.parametrize(
    ("field", "value", "path"),
    [
        ("engine.args", ["--seed", "1\0"], "spec.engine.args[1]"),
        ("pod.env", [{"name": "A", "value": "x"}, {"name": "B", "value": "\0"}], "spec.pod.env[1].value"),
    ],
)
def test_N11_what_no_program_can_be_given_is_refused(spec: SpecBuilder, field: str, value: object, path: str) -> None:
    """The API server takes a NUL byte, and no pod with it ever starts: the kernel ends words with one."""
    decision = a_life(spec.set(field, value)).decide()
    condition = stalled(decision)
    assert condition is not None
    assert f"{path}: holds a NUL byte" in condition["message"]
    assert decision.create_revision is None
