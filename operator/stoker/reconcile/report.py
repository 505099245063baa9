"""What a decision says: the status, and events for what a user should act on."""

import re
from collections.abc import Mapping
from typing import Any

from stoker.plan.types import Layout
from stoker.reconcile.decision import EventIntent
from stoker.reconcile.draft import Draft
from stoker.reconcile.planning import effective_strategy
from stoker.render.labels import selector_text
from stoker.render.names import revision_name, service_name
from stoker.render.service import HTTP_PORT
from stoker.status.outcome import Outcome, TargetRevision
from stoker.status.project import project

_FIELD = re.compile(r"\bspec(?:\.\w+|\[[^]\s]*\])+")
_FIGURE = re.compile(r"\d+(?:[.,:]\d+)*")


def status(draft: Draft) -> Mapping[str, Any]:
    """Return the whole status."""
    return project(draft.snapshot, outcome(draft))


def outcome(draft: Draft) -> Outcome:
    """Return what the decision came to."""
    return Outcome(
        spec=draft.spec,
        layout=_layout(draft),
        revision=_revision(draft),
        findings=draft.findings,
        url=_url(draft),
        selector=selector_text(draft.service.name),
        replicas=draft.replicas,
        paused=draft.paused,
    )


def events(draft: Draft, status: Mapping[str, Any]) -> tuple[EventIntent, ...]:
    """Return a warning where somebody has to act, unless the last status asked for the same already.

    A figure or an engine's word that moves in a message asks for nothing new; whoever has changed the spec since shall
    be told whatever is said differently.
    """
    last = draft.snapshot.service.get("status") or {}
    now, before = _stalled(status), _stalled(last)
    if now is None or now == before:
        return ()
    is_same_spec = last.get("observedGeneration") == status.get("observedGeneration")
    if is_same_spec and before is not None and _asked_for(*now) == _asked_for(*before):
        return ()
    return (EventIntent("Warning", *now),)


def _asked_for(reason: str, message: str) -> tuple[str, frozenset[str]]:
    """Return what somebody has to act on: the reason and the fields that are named, else the words without figures."""
    fields = frozenset(_FIELD.findall(message))
    return reason, fields or frozenset({_FIGURE.sub("#", message)})


def _layout(draft: Draft) -> Layout | None:
    if draft.target is not None and is_wanted(draft) and draft.target.layout is not None:
        return draft.target.layout
    if draft.plan is not None:
        return draft.plan.layout
    return draft.target.layout if draft.target else None


def is_wanted(draft: Draft) -> bool:
    """Return whether the target is the revision that the spec asks for, and not one that stays in its place."""
    return draft.target is not None and not draft.is_fallback


def _revision(draft: Draft) -> TargetRevision | None:
    target = draft.target
    if target is None:
        return None
    strategy = effective_strategy(draft.raw_spec, target)
    frozen = (draft.raw_spec.get("rollout") or {}).get("strategy") != strategy
    return TargetRevision(
        key=target.key,
        name=revision_name(draft.service.name, target.key),
        number=target.number,
        strategy=strategy,
        strategy_reason=target.strategy_reason if frozen else f"spec.rollout.strategy is {strategy}",
        is_wanted=is_wanted(draft),
        is_new=draft.is_new,
        layout=target.layout,
        outdated=draft.outdated,
    )


def _url(draft: Draft) -> str | None:
    name = service_name(draft.service.name)
    own = any(
        ref.kind == "Service" and ref.name == name and ref.controller_uid == draft.service.uid
        for ref in draft.snapshot.children
    )
    rendered = any(child["kind"] == "Service" for child in draft.apply)
    return f"http://{name}.{draft.service.namespace}.svc:{HTTP_PORT}" if own or rendered else None


def _stalled(status: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return reason and message of the condition ``Stalled``; None where it is not true."""
    for condition in status.get("conditions") or ():
        if isinstance(condition, Mapping) and (condition.get("type"), condition.get("status")) == ("Stalled", "True"):
            return str(condition.get("reason")), str(condition.get("message"))
    return None
