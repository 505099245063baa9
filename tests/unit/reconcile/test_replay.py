"""N6: what an earlier release stored goes on running, whatever today's renderer would do."""

import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from stoker.plan.snapshot import ReferenceView, RevisionView
from stoker.reconcile.settings import Settings
from stoker.render.labels import REVISION
from tests.builders.configs import a_config
from tests.builders.snapshots import Life, an_object
from tests.builders.specs import SpecBuilder
from tests.revisions.harness import Stored, stored, versions
from tests.unit.reconcile.support import a_life, revision_of

OTHER_KEY = "0123456789"
LATER = Settings(agent_image="registry.example.com/stoker:99.0.0", renderer_version="99.0.0")


def upgraded(found: Stored) -> Life:
    """The service as a later operator finds it: its revision is stored, its children are not known to be applied."""
    name = found.revision["metadata"]["name"]
    view = RevisionView(an_object("ControllerRevision", name), found.revision["revision"], found.revision["data"])
    life = Life(SpecBuilder(found.service["spec"]), name=found.service["metadata"]["name"], settings=LATER)
    life.revisions[name] = view
    return life


@pytest.fixture(params=stored(), ids=lambda found: f"{found.file.parent.name}/{found.file.stem}")
def found(request: pytest.FixtureRequest) -> Stored:
    result: Stored = request.param
    return result


def test_there_are_revisions_to_replay() -> None:
    assert "0.1.0" in versions()
    assert len(stored()) >= 12


def test_N6_an_upgrade_applies_the_stored_template_as_it_is(found: Stored) -> None:
    life = upgraded(found)
    assert life.reconcile().create_revision is None
    assert life.template() == found.revision["data"]["template"]


def test_N6_an_upgrade_says_what_would_differ(found: Stored) -> None:
    life = upgraded(found)
    life.reconcile()
    assert life.status is not None
    assert any("99.0.0" in line for line in life.status["revision"]["outdated"])


def test_N6_after_an_upgrade_a_restart_renders_afresh_and_its_removal_rolls_nothing(found: Stored) -> None:
    life = upgraded(found)
    life.reconcile()
    assert life.set("rollout.restartedAt", "2030-01-01T00:00:00Z").reconcile().create_revision is not None
    fresh = life.template()
    assert fresh["spec"]["initContainers"][0]["image"] == LATER.agent_image
    assert life.set("rollout.restartedAt", None).reconcile().create_revision is None
    assert life.template() == fresh


def test_N6_after_an_upgrade_going_back_reuses_the_stored_revision(found: Stored) -> None:
    life = upgraded(found)
    life.reconcile()
    spec = life.spec
    life.set("pod.priorityClassName", "other").reconcile()
    assert life.template() != found.revision["data"]["template"]
    life.spec = spec
    assert life.reconcile().create_revision is None
    assert life.template() == found.revision["data"]["template"]


def test_N6_a_revision_of_a_format_to_come_is_kept_and_not_run(found: Stored) -> None:
    life = upgraded(found)
    (name, view) = next(iter(life.revisions.items()))
    life.revisions[name] = replace(view, data={**view.data, "format": 2, "key": "ffffffffff"})
    decision = life.decide()
    assert decision.create_revision is not None
    assert not [ref for ref in decision.delete if ref.kind == "ControllerRevision"]


# ---- inputs that an earlier operator told apart, and that are one input to this one ---------------------------------
def under_another_key(view: RevisionView) -> dict[str, Any]:
    """The data of a revision as an operator stored it to whom its inputs were others."""
    data = deepcopy(dict(view.data))
    data["key"] = data["template"]["metadata"]["labels"][REVISION] = OTHER_KEY
    return data


def test_N6_a_stored_revision_whose_inputs_hold_an_empty_list_goes_on_running() -> None:
    life = a_life().set("engine.args", [])
    life.reconcile()
    ((_, view),) = life.revisions.items()
    data = under_another_key(view)
    data["inputs"]["spec"]["engine"]["args"] = []
    life.revisions = {f"chat-{OTHER_KEY}": replace(view, data=data)}
    assert life.reconcile().create_revision is None
    assert revision_of(life) == OTHER_KEY


@pytest.mark.parametrize("status_is_lost", [False, True])
def test_N6_of_several_stored_revisions_that_are_one_input_the_one_that_runs_stays(status_is_lost: bool) -> None:
    life = a_life()
    life.reconcile()
    before = revision_of(life)
    if status_is_lost:
        life.status = None
    ((_, view),) = life.revisions.items()
    name = f"chat-{OTHER_KEY}"
    life.revisions[name] = RevisionView(an_object("ControllerRevision", name), view.number + 1, under_another_key(view))
    assert life.reconcile().apply == ()
    assert revision_of(life) == before


def test_N6_a_changed_configmap_of_facts_shows_as_outdated_and_rolls_nothing() -> None:
    """Renderer and agent are the same: only the layout tells that the same input would be rendered otherwise."""
    path = "spec.model.facts.configMapName"
    view = ReferenceView("ConfigMap", "facts", path, exists=True, data={"config.json": json.dumps(a_config())})
    life = a_life(references=(view,)).set("model.facts.configMapName", "facts")
    life.reconcile()
    before = life.template()
    assert life.reconcile().create_revision is None
    assert life.status is not None
    assert life.status["revision"].get("outdated") is None

    larger = json.dumps(a_config(num_hidden_layers=64, intermediate_size=100_000))
    life.references = (replace(view, data={"config.json": larger}),)
    assert life.reconcile().create_revision is None
    assert life.template() == before
    assert life.status["revision"]["outdated"]
