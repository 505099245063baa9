"""From a spec to its layout and its pod template: the part that the operator and the command line share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.api.faults import Fault
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.engines.arguments import unwritable
from stoker.engines.interface import Engine
from stoker.engines.registry import get_engine
from stoker.plan.inputs import resolve_device, resolve_facts
from stoker.plan.layout import plan_layout
from stoker.plan.rollout import choose_strategy
from stoker.plan.snapshot import Snapshot
from stoker.plan.types import Layout, Verdict
from stoker.reconcile.settings import Settings
from stoker.render.identity import ServiceIdentity
from stoker.render.revision import CURRENT_PROTOCOL, RevisionData, RevisionInputs
from stoker.render.template import TemplateInputs, pod_template
from stoker.render.warmup import warmup_faults


@dataclass(frozen=True, slots=True)
class Plan:
    """A spec with its layout. ``faults`` is what no waiting cures; with any of them nothing is rendered."""

    spec: InferenceServiceSpec
    engine: Engine
    layout: Layout
    faults: tuple[Fault, ...]


def make_plan(spec: InferenceServiceSpec, snapshot: Snapshot) -> Plan:
    """Return the plan of ``spec``."""
    engine = get_engine(spec.engine.name)
    facts, device = resolve_facts(spec, snapshot.references), resolve_device(spec, snapshot.nodes)
    layout = plan_layout(spec, engine.traits(spec), facts, device)
    warmup = warmup_faults(spec, layout.max_length)
    faults = (*unwritable(spec), *engine.faults(spec), *(layout.faults or _too_small(layout)), *warmup)
    return Plan(spec, engine, layout, tuple(dict.fromkeys(faults)))


def make_template(plan: Plan, service: ServiceIdentity, settings: Settings, key: str) -> dict[str, Any]:
    """Return the pod template of a plan without faults, as today's renderer makes it."""
    invocation = plan.engine.invocation(plan.spec, plan.layout, service.name)
    return pod_template(TemplateInputs(service, plan.spec, plan.layout, invocation, settings.agent_image, key))


def make_revision(
    plan: Plan, service: ServiceIdentity, inputs: RevisionInputs, snapshot: Snapshot, settings: Settings
) -> RevisionData:
    """Return a new revision: everything that is frozen from now on, the way to replace among it (N18).

    The way is chosen as ``Auto`` would; a way that the user sets acts when the Deployment is rendered, and its removal
    leads back to this one.
    """
    free_choice = plan.spec.model_copy(update={"rollout": None})
    strategy, reason = choose_strategy(free_choice, plan.layout, snapshot)
    return RevisionData(
        key=inputs.key,
        number=max((view.number for view in snapshot.revisions), default=0) + 1,
        inputs=inputs,
        engine=plan.spec.engine.name.value,
        template=make_template(plan, service, settings, inputs.key),
        layout=plan.layout,
        agent_image=settings.agent_image,
        agent_protocol=CURRENT_PROTOCOL,
        renderer_version=settings.renderer_version,
        strategy=strategy.value,
        strategy_reason=reason,
    )


def effective_strategy(spec: Mapping[str, Any], revision: RevisionData) -> str:
    """Return the way to replace pods: the one that the stored ``spec`` sets, else the one frozen in the revision."""
    chosen = (spec.get("rollout") or {}).get("strategy")
    return str(chosen) if chosen in {"Surge", "Replace", "Recreate"} else revision.strategy


def _too_small(layout: Layout) -> tuple[Fault, ...]:
    if layout.verdict != Verdict.TOO_SMALL:
        return ()
    ways = "; or ".join(suggestion.summary for suggestion in layout.suggestions)
    remedy = f"would fit: {ways}" if ways else "use a larger GPU, a smaller model or a stronger quantization"
    where = "spec.accelerator" if layout.gpus_per_pod else "spec.resources.memory"
    return (
        Fault(where, ", ".join(layout.reasons).replace("; ", ", ") or "the model does not fit", remedy, "DoesNotFit"),
    )
