"""Section 4 of the design: what makes a revision, and what never does (N6, N19)."""

import json
from dataclasses import replace
from typing import Any

import pytest

from stoker.plan.snapshot import ObjectRef, ReferenceView, RevisionView
from stoker.render.canonical import canonical
from stoker.render.revision import (
    MAX_BYTES,
    RevisionData,
    RevisionInputs,
    RevisionTooLargeError,
    build_revision,
    known_revision,
    parse_revision,
    revision_inputs,
)
from tests.builders.layouts import a_layout
from tests.builders.specs import a_spec
from tests.builders.templates import CHAT, template

SPEC = a_spec().set("pod.env", [{"name": "A", "value": "1"}]).raw()


def inputs(spec: dict[str, Any] | None = None, *references: ReferenceView) -> RevisionInputs:
    return revision_inputs(SPEC if spec is None else spec, references)


def revision(
    number: int = 1, spec: dict[str, Any] | None = None, restarted_at: str | None = None, **changes: Any
) -> RevisionData:
    wanted = replace(inputs(spec), restarted_at=restarted_at)
    data = RevisionData(
        key=wanted.key,
        number=number,
        inputs=wanted,
        engine="vllm",
        template=template(),
        layout=a_layout(),
        agent_image="example.com/stoker:1",
        agent_protocol=1,
        renderer_version="0.1.0",
        strategy="Surge",
        strategy_reason="two GPUs are free",
    )
    return replace(data, **changes)


def stored(data: RevisionData) -> RevisionView:
    """What comes back from the API server for a revision."""
    sent = json.loads(json.dumps(build_revision(CHAT, data)))
    ref = ObjectRef("ControllerRevision", "team-a", sent["metadata"]["name"], "u", "1", CHAT.uid, None, 1, True, False)
    return RevisionView(ref, sent["revision"], sent["data"])


def secret(digest: str | None, path: str = "spec.pod.env[0].valueFrom.secretKeyRef.name") -> ReferenceView:
    return ReferenceView("Secret", "s", path, exists=digest is not None, digest=digest)


# ---- what makes a new revision -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("replicas", 4),
        ("paused", True),
        ("rollout.strategy", "Recreate"),
        ("scaling", {"mode": "Act"}),
        ("slo", {"ttft": {"p95": "500ms"}}),
        ("routing", {"policy": "PrefixAware"}),
        ("access", {"apiKeysSecret": "k"}),
        ("monitoring", {"alerts": "Enabled"}),
    ],
)
def test_N6_what_concerns_no_pod_makes_no_revision(path: str, value: object) -> None:
    assert inputs(a_spec().set("pod.env", SPEC["pod"]["env"]).set(path, value).raw()).key == inputs().key


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model.source", "hf://a/b"),
        ("model.credentialsSecret", "hub"),
        ("engine.version", "0.33.0"),
        ("engine.args", ["--x"]),
        ("parallelism.tensor", 2),
        ("accelerator.memory", "80Gi"),
        ("resources.memory", "64Gi"),
        ("warmup.requests", 3),
        ("pod.labels", {"a": "b"}),
        ("model.facts", {"configMapName": "c"}),
    ],
)
def test_what_concerns_pods_makes_a_revision(path: str, value: object) -> None:
    assert inputs(a_spec().set("pod.env", SPEC["pod"]["env"]).set(path, value).raw()).key != inputs().key


def test_the_order_of_keys_makes_no_revision() -> None:
    assert inputs(dict(reversed(SPEC.items()))).key == inputs().key


def test_a_field_that_is_present_counts_even_where_it_says_the_default() -> None:
    """Defaults belong to an operator's version; what is written belongs to the user."""
    assert inputs({**SPEC, "parallelism": {"tensor": 1}}).key != inputs().key


@pytest.mark.parametrize(
    ("view", "rolls"),
    [
        (secret("d2"), True),
        (
            ReferenceView("ConfigMap", "c", "spec.pod.env[0].valueFrom.configMapKeyRef.name", exists=True, digest="x"),
            True,
        ),
        (secret("d2", "spec.model.credentialsSecret"), False),
        (
            ReferenceView("ConfigMap", "c", "spec.model.facts.configMapName", exists=True, digest="x", data={"a": "b"}),
            False,
        ),
        (ReferenceView("PersistentVolumeClaim", "p", "spec.model.source", exists=True), False),
        (ReferenceView("Secret", "r", "spec.pod.imagePullSecrets[0].name", exists=True, digest="x"), False),
        (ReferenceView("Secret", "v", "spec.pod.volumes[0].secret.secretName", exists=True, digest="x"), False),
    ],
)
def test_N19_each_reference_has_its_declared_effect(view: ReferenceView, rolls: bool) -> None:
    before = replace(view, digest="before" if view.digest else None)
    assert (inputs(None, view).key != inputs(None, before).key) is rolls


def test_N19_an_optional_secret_that_appears_makes_a_revision() -> None:
    absent = replace(secret(None), optional=True)
    assert inputs(None, absent).key != inputs(None, secret("d1")).key


def test_N19_each_key_of_one_secret_counts() -> None:
    """Two variables from two keys of one Secret come as two views."""
    one, two = secret("d1"), secret("d2", "spec.pod.env[1].valueFrom.secretKeyRef.name")
    assert inputs(None, one, two).key == inputs(None, two, one).key
    assert inputs(None, one, two).key != inputs(None, one, replace(two, digest="d3")).key


# ---- which revision runs -------------------------------------------------------------------------------------------
T1, T2 = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
OTHER = a_spec().max_length(4096).raw()


def test_N6_an_unchanged_spec_keeps_its_revision() -> None:
    known = [revision(1)]
    assert known_revision(inputs(), known) == known[0]


def test_N6_a_restart_mark_asks_for_a_revision_of_its_own() -> None:
    assert known_revision(replace(inputs(), restarted_at=T1), [revision(1)]) is None
    marked = revision(2, restarted_at=T1)
    assert known_revision(replace(inputs(), restarted_at=T1), [revision(1), marked]) == marked
    assert known_revision(replace(inputs(), restarted_at=T2), [revision(1), marked]) is None
    assert marked.key != revision(1).key


def test_N6_taking_the_restart_mark_away_rolls_nothing() -> None:
    known = [revision(1), revision(2, restarted_at=T1), revision(3, restarted_at=T2)]
    assert known_revision(inputs(), known) == known[2]


def test_N6_going_back_to_an_earlier_spec_reuses_its_revision() -> None:
    known = [revision(1), revision(2, OTHER), revision(3, OTHER, restarted_at=T1)]
    assert known_revision(inputs(), known) == known[0]


# ---- how it is stored ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("restarted_at", [None, T1])
def test_a_stored_revision_reads_back_as_it_was_made(restarted_at: str | None) -> None:
    data = revision(3, restarted_at=restarted_at)
    assert parse_revision(stored(data)) == data


def test_a_revision_is_named_and_labelled_by_its_key() -> None:
    data = revision()
    built = build_revision(CHAT, data)
    assert built["metadata"]["name"] == f"chat-{data.key}"
    assert built["metadata"]["labels"]["serving.stoker.dev/revision"] == data.key
    assert built["metadata"]["ownerReferences"][0]["uid"] == CHAT.uid
    assert built["apiVersion"] == "apps/v1"


def test_a_revision_of_a_format_to_come_is_left_alone() -> None:
    view = stored(revision())
    assert parse_revision(replace(view, data={**view.data, "format": 2})) is None


@pytest.mark.parametrize("data", [{"format": 1}, {"format": 1, "inputs": [], "strategy": "Surge"}])
def test_a_revision_that_nobody_of_us_wrote_is_left_alone(data: dict[str, Any]) -> None:
    assert parse_revision(replace(stored(revision()), data=data)) is None


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("key", 1),
        ("engine", {"name": "vllm"}),
        ("rendererVersion", None),
        ("agent", {"image": [], "protocol": 1}),
        ("inputs", {"spec": 1, "references": {}}),
        ("inputs", {"spec": {}, "references": []}),
        ("inputs", {"spec": {}, "references": {}, "restartedAt": {}}),
        ("strategy", {"type": "Wait", "reason": "none"}),
        ("strategy", {"type": [], "reason": "none"}),
        ("strategy", {"type": "Surge", "reason": 1}),
        ("template", {}),
        ("template", []),
        ("template", {"spec": {"containers": [{"name": "other"}]}}),
        ("template", {"spec": {"containers": [{"name": "engine"}]}}),
        ("template", {"spec": {"containers": [{"name": "engine", "startupProbe": {"periodSeconds": "x"}}]}}),
    ],
)
def test_a_revision_that_cannot_be_rendered_is_left_alone(field: str, value: object) -> None:
    """A restored backup or a person's edit must not fail each decision of the service from then on."""
    view = stored(revision())
    assert parse_revision(replace(view, data={**view.data, field: value})) is None


def test_a_layout_in_other_words_costs_only_the_layout() -> None:
    view = stored(revision())
    read = parse_revision(replace(view, data={**view.data, "layout": {"words": "others"}}))
    assert read is not None
    assert read.layout is None
    assert read.template == template()


def test_a_revision_that_is_too_large_is_refused_with_the_way_out() -> None:
    with pytest.raises(RevisionTooLargeError) as caught:
        build_revision(CHAT, revision(template={"x": "y" * MAX_BYTES}))
    assert caught.value.fault.path == "spec"
    assert "65536" in caught.value.fault.problem


def test_a_usual_revision_is_far_below_the_limit() -> None:
    assert len(canonical(build_revision(CHAT, revision()))) < MAX_BYTES // 4


def test_the_version_of_the_operator_is_stored_and_not_hashed() -> None:
    built = build_revision(CHAT, revision(renderer_version="9.9.9", agent_image="example.com/stoker:9"))
    assert built["data"]["rendererVersion"] == "9.9.9"
    assert built["data"]["agent"] == {"image": "example.com/stoker:9", "protocol": 1}
    assert built["data"]["key"] == revision().key
