"""The decision, as an ordered chain of small steps.

Each step adds to a Draft. A step that finds a reason against a new revision says so (a Finding), and the later ones go
on with the revision that runs: a spec that cannot be rendered touches nothing that already serves, while healing,
scaling and status go on.
"""

from collections.abc import Callable
from dataclasses import replace

from stoker.api.inferenceservice import InferenceService
from stoker.api.parse import parse_inference_service
from stoker.plan.snapshot import Snapshot
from stoker.reconcile import findings
from stoker.reconcile.decision import Decision
from stoker.reconcile.draft import Draft
from stoker.reconcile.objects import children_of_any_revision, children_to_apply, foreign_children, key_of, surplus
from stoker.reconcile.planning import Plan, effective_strategy, make_plan, make_revision, make_template
from stoker.reconcile.report import events, status
from stoker.reconcile.settings import Settings
from stoker.render.children import Rollout, render_children
from stoker.render.identity import identity_of
from stoker.render.outdated import outdated
from stoker.render.revision import (
    RevisionData,
    RevisionTooLargeError,
    build_revision,
    known_revision,
    parse_revision,
    revision_inputs,
)
from stoker.status.outcome import Finding

Step = Callable[[Draft], Draft]


def decide(snapshot: Snapshot, settings: Settings) -> Decision:
    """Return what to write for one service. Pure: equal snapshots give equal decisions."""
    if snapshot.service.get("metadata", {}).get("deletionTimestamp"):
        return Decision()  # the garbage collector deletes the children; nothing is created any more (N5)
    draft = Draft(snapshot, settings, identity_of(snapshot.service))
    for step in STEPS:
        draft = step(draft)
    said = status(draft)
    return Decision(
        create_revision=draft.revision_object,
        apply=draft.apply,
        delete=draft.delete,
        status=said,
        events=events(draft, said),
        requeue_after_seconds=_requeue_after(draft),
    )


def read_revisions(draft: Draft) -> Draft:
    """Read the stored revisions; those of a format that this operator does not know are left alone."""
    read = (parse_revision(view) for view in draft.snapshot.revisions if not view.ref.terminating)
    return replace(draft, revisions=tuple(revision for revision in read if revision is not None))


def check_spec(draft: Draft) -> Draft:
    """Parse the stored spec; its faults stall the service."""
    parsed = parse_inference_service(draft.snapshot.service)
    if isinstance(parsed, InferenceService):
        return replace(draft, spec=parsed.spec)
    return _found(draft, findings.from_faults(parsed))


def check_references(draft: Draft) -> Draft:
    """Look for objects that the service names and that are missing or cannot be read."""
    references = draft.snapshot.references
    return _found(draft, (*findings.missing_references(references), *findings.unreadable_references(references)))


def find_revision(draft: Draft) -> Draft:
    """Find the stored revision that the spec asks for; a known one is run as it is stored (N6)."""
    if draft.findings:
        return draft
    inputs = revision_inputs(draft.raw_spec, draft.snapshot.references)
    return replace(draft, inputs=inputs, target=known_revision(inputs, draft.revisions, _current_key(draft)))


def make_todays_plan(draft: Draft) -> Draft:
    """Plan the spec as today's operator does. Its faults count only where a new revision is needed."""
    if draft.spec is None:
        return draft
    plan = make_plan(draft.spec, draft.snapshot)
    draft = replace(draft, plan=plan)
    return draft if draft.target else _found(draft, findings.from_faults(plan.faults))


def stay_while_paused(draft: Draft) -> Draft:
    """Stay with what runs while the service is paused, whichever revision the spec asks for."""
    if not draft.paused:
        return draft
    running = running_revision(draft)
    if draft.target is None or (running is not None and running.key != draft.target.key):
        paused = Finding("Paused", "spec.paused is true: no new revision is rolled out", stalled=False)
        draft = _found(replace(draft, target=None), (paused,))
    return draft


def make_new_revision(draft: Draft) -> Draft:
    """Render and freeze a new revision where none is known and nothing speaks against it."""
    if draft.findings or draft.target or draft.plan is None or draft.inputs is None:
        return draft
    revision = make_revision(draft.plan, draft.service, draft.inputs, draft.snapshot, draft.settings)
    try:
        stored = build_revision(draft.service, revision)
    except RevisionTooLargeError as error:
        return _found(draft, findings.from_faults([error.fault]))
    conflicts = findings.name_conflicts([key_of(stored)], foreign_children(draft))
    if conflicts:
        return _found(draft, conflicts)
    return replace(draft, target=revision, is_new=True, revision_object=stored)


def fall_back(draft: Draft) -> Draft:
    """Go on with the revision that runs, where the wanted one cannot be had."""
    return draft if draft.target else replace(draft, target=running_revision(draft), is_fallback=True)


def render(draft: Draft) -> Draft:
    """Render the children from the target's stored template."""
    if draft.target is None:
        return draft
    target = draft.target
    rollout = Rollout(target.engine, target.template, draft.replicas, effective_strategy(draft.raw_spec, target))
    return replace(draft, wanted=tuple(render_children(draft.service, rollout)))


def check_names(draft: Draft) -> Draft:
    """Never write what somebody else controls (N22).

    A service that has nothing yet gets nothing: engines that no Service reaches would only hold GPUs.
    """
    conflicts = findings.name_conflicts(children_of_any_revision(draft), foreign_children(draft))
    draft = _found(draft, conflicts)
    if conflicts and draft.snapshot.deployment is None:
        return replace(draft, wanted=(), target=None, is_new=False, revision_object=None)
    return draft


def choose_writes(draft: Draft) -> Draft:
    """Apply what differs and delete what is no longer wanted."""
    return replace(draft, apply=children_to_apply(draft), delete=surplus(draft))


def compare_with_today(draft: Draft) -> Draft:
    """Tell how today's renderer would differ from the stored template; nothing rolls because of it (N6)."""
    if draft.is_new or draft.target is None or draft.plan is None or draft.inputs is None:
        return draft
    if draft.target.inputs.hash != draft.inputs.hash:
        return draft  # another spec's revision runs on; that is not what outdated means
    if draft.plan.faults:
        return replace(draft, outdated=tuple(f"today this is refused: {fault}" for fault in draft.plan.faults))
    if _rendered_alike(draft.target, draft.plan, draft.settings):
        return draft
    today = make_template(draft.plan, draft.service, draft.settings, draft.target.key)
    return replace(draft, outdated=outdated(draft.target.template, today))


STEPS: tuple[Step, ...] = (
    read_revisions,
    check_spec,
    check_references,
    find_revision,
    make_todays_plan,
    stay_while_paused,
    make_new_revision,
    fall_back,
    render,
    check_names,
    choose_writes,
    compare_with_today,
)
"""The chain, in the order in which it runs."""


def running_revision(draft: Draft) -> RevisionData | None:
    """Return the revision that the Deployment runs, else the one of the last status, else the newest."""
    by_key = {revision.key: revision for revision in draft.revisions}
    deployed = _deployed_key(draft)
    newest = max(draft.revisions, key=lambda revision: revision.number, default=None)
    return by_key.get(deployed or "") or by_key.get(_last_key(draft) or "") or newest


def _last_key(draft: Draft) -> str | None:
    """Return the key of the revision that the last status told of."""
    key = ((draft.snapshot.service.get("status") or {}).get("revision") or {}).get("key")
    return key if isinstance(key, str) else None


def _deployed_key(draft: Draft) -> str | None:
    return draft.snapshot.deployment.revision if draft.snapshot.deployment else None


def _current_key(draft: Draft) -> str | None:
    """Return the revision that was decided on last: what somebody else put into the Deployment is no decision."""
    return _last_key(draft) or _deployed_key(draft)


def _rendered_alike(target: RevisionData, plan: Plan, settings: Settings) -> bool:
    """Return whether today's renderer, given what it is given, is known to make the stored template again."""
    made_by = (target.renderer_version, target.agent_image, target.layout)
    return made_by == (settings.renderer_version, settings.agent_image, plan.layout)


def _found(draft: Draft, found: tuple[Finding, ...]) -> Draft:
    return replace(draft, findings=(*draft.findings, *found))


def _requeue_after(draft: Draft) -> float | None:
    return min((f.retry_after_seconds for f in draft.findings if f.retry_after_seconds is not None), default=None)
