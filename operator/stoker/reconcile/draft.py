"""The state that the steps of a decision hand on: what is known so far, and what was found."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.plan.snapshot import ObjectRef, Snapshot
from stoker.reconcile.planning import Plan
from stoker.reconcile.settings import Settings
from stoker.render.identity import ServiceIdentity
from stoker.render.revision import RevisionData, RevisionInputs
from stoker.status.outcome import Finding


@dataclass(frozen=True, slots=True)
class Draft:
    """A decision in the making. Every field is filled by one step and read by later ones."""

    snapshot: Snapshot
    settings: Settings
    service: ServiceIdentity
    revisions: tuple[RevisionData, ...] = ()
    """The stored revisions that this operator can read."""
    spec: InferenceServiceSpec | None = None
    """None where the stored spec has faults."""
    inputs: RevisionInputs | None = None
    """What the wanted revision is made of; None where it cannot be told."""
    plan: Plan | None = None
    """Today's plan of the spec."""
    target: RevisionData | None = None
    """The revision that shall run; None where there is none yet."""
    is_fallback: bool = False
    """The target is not what the spec asks for: it stays because that cannot be had."""
    is_new: bool = False
    """The target has to be stored first."""
    revision_object: Mapping[str, Any] | None = None
    """The ControllerRevision to store."""
    wanted: tuple[Mapping[str, Any], ...] = ()
    """The children as they shall be."""
    apply: tuple[Mapping[str, Any], ...] = ()
    delete: tuple[ObjectRef, ...] = ()
    findings: tuple[Finding, ...] = ()
    outdated: tuple[str, ...] = ()

    @property
    def raw_spec(self) -> Mapping[str, Any]:
        """The spec as it is stored."""
        spec: Mapping[str, Any] = self.snapshot.service.get("spec") or {}
        return spec

    @property
    def paused(self) -> bool:
        """Whether new revisions are frozen."""
        return self.raw_spec.get("paused") is True

    @property
    def replicas(self) -> int:
        """The replica count, which the API server defaults to 1."""
        count = self.raw_spec.get("replicas", 1)
        return count if isinstance(count, int) else 1
