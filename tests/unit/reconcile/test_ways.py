"""The ways that a status tells a user are ways: they can be read, and none of them would be refused itself."""

import pytest

from stoker.plan.snapshot import ReferenceView
from stoker.reconcile.decision import Decision
from tests.builders.specs import SpecBuilder, a_spec
from tests.unit.reconcile.support import H100, TOO_LARGE, a_life, condition_of, stalled

NUMBERS = {
    "layers": 28,
    "attentionHeads": 28,
    "kvHeads": 4,
    "hiddenSize": 3584,
    "parameterCount": 7 * 10**9,
    "vocabularySize": 150_000,
    "maxContextLength": 32_768,
}
TOO_SMALL = a_spec().on_cpu().facts(**NUMBERS).set("resources.memory", "20Gi").max_length(32_768)
LONG = a_spec().on(H100).max_length(131_072).memory_fraction("0.3")


def suggestions(decision: Decision) -> tuple[str, ...]:
    """The ways in the layout that the status tells."""
    assert decision.status is not None
    return tuple(decision.status["layout"].get("suggestions") or ())


@pytest.mark.parametrize("spec", [LONG, TOO_SMALL], ids=["GPUs", "CPU"])
def test_every_way_stands_for_itself_wherever_it_is_told(spec: SpecBuilder) -> None:
    decision = a_life(spec).reconcile()
    ways = suggestions(decision)
    assert len(ways) > 1
    told = "would fit: " + "; or ".join(ways)
    for kind in ("Ready", "UpToDate", "Fits", "Stalled"):
        assert told in condition_of(decision, kind)["message"]
    assert told in decision.events[0].message


def test_what_would_be_refused_for_another_fault_is_not_suggested() -> None:
    """More memory makes the sequence fit, and it would still be longer than the model was made for."""
    decision = a_life(TOO_SMALL.max_length(1_000_000)).reconcile()
    condition = stalled(decision)
    assert condition is not None
    assert condition["reason"] == "LongerThanModel"
    (way,) = suggestions(decision)
    assert way.startswith("spec.context.maxLength 29696: ")


def test_a_container_that_is_too_small_grows_with_the_ways() -> None:
    """This fault is mended by each of them, so that it hides none."""
    decision = a_life(a_spec().on(H100).model(TOO_LARGE).set("resources.memory", "1Gi")).reconcile()
    assert suggestions(decision)
    assert all("spec.resources.memory" in way for way in suggestions(decision))


def test_a_missing_configmap_is_told_once_and_nothing_is_said_to_start() -> None:
    view = ReferenceView("ConfigMap", "c", "spec.model.facts.configMapName", exists=False)
    decision = a_life(a_spec().on(H100).set("model.facts.configMapName", "c"), references=(view,)).reconcile()
    assert condition_of(decision, "Ready")["reason"] == "ConfigMapNotFound"
    told = condition_of(decision, "Fits")["message"]
    assert "start all the same" not in told
    assert "state the numbers" not in told
