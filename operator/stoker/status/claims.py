"""Claims of a pod that do not exist or have no volume, and the fields that name them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stoker.api.faults import join
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.api.types import ClaimSource, model_source
from stoker.status.case import Case, Diagnosis
from stoker.status.text import bounded, scheduler_said

MAX_CLAIMS = 5
"""Most claims that a message lists."""

_CLAIM_MISSING = re.compile(r'persistentvolumeclaim "([^"]{1,253})" not found')
_UNBOUND = re.compile(
    r"unbound immediate PersistentVolumeClaims|available persistent volumes to bind|volume node affinity conflict"
    r"|non-existent persistentvolume|ephemeral volume controller|did not have enough free storage"
)
_VOLUMES = "spec.pod.volumes"


@dataclass(frozen=True, slots=True)
class _Claim:
    name: str
    field: str
    """The field that names it."""
    is_made: bool = False
    """It is made for the pod, from a template: ``name`` is the volume's."""

    def __str__(self) -> str:
        return f"{'of volume ' * self.is_made}{self.name} ({self.field})"


def _claims(spec: InferenceServiceSpec) -> Iterator[_Claim]:
    """Yield the claims of a pod, the model's first."""
    source = model_source(spec.model.source)
    if isinstance(source, ClaimSource):
        yield _Claim(source.claim, "spec.model.source")
    for index, volume in enumerate((spec.pod.volumes if spec.pod else None) or ()):
        if volume.persistent_volume_claim is not None:
            field = join(_VOLUMES, index, "persistentVolumeClaim", "claimName")
            yield _Claim(str(volume.persistent_volume_claim.get("claimName")), field)
        elif volume.ephemeral is not None:
            yield _Claim(volume.name, join(_VOLUMES, index, "ephemeral"), is_made=True)


def claim_missing(case: Case) -> Diagnosis | None:
    """The pod names a claim that does not exist."""
    found = _CLAIM_MISSING.search(case.pod.unschedulable_message or "")
    if not found:
        return None
    name = found[1]
    claims = _claims(case.spec) if case.spec else iter(())
    field = next((claim.field for claim in claims if claim.name == name and not claim.is_made), _VOLUMES)
    message = f"there is no PersistentVolumeClaim {name} in this namespace; create it, or name another one in {field}"
    return Diagnosis("PersistentVolumeClaimNotFound", message, stalled=True)


def volume_unbound(case: Case) -> Diagnosis | None:
    """A claim of the pod has no volume, or one that no fitting node can reach. Which of them, the scheduler keeps."""
    said = case.pod.unschedulable_message or ""
    if not _UNBOUND.search(said):
        return None
    hint = "look at the claim (kubectl describe pvc): its StorageClass, size and access mode, or the zone of its volume"
    message = f"no volume for {_named(case)}: {scheduler_said(said, 250)}; {hint}"
    return Diagnosis("VolumeNotBound", message, stalled=False)


def _named(case: Case) -> str:
    """Return the claims that can be meant, with their fields: every one of the pod."""
    claims = [str(claim) for claim in _claims(case.spec)] if case.spec else []
    if not claims:
        return f"a claim of the pod (spec.model.source or {_VOLUMES})"
    if len(claims) == 1:
        return bounded(f"the claim {claims[0]}", 400)
    *front, last = claims if len(claims) <= MAX_CLAIMS else [*claims[:MAX_CLAIMS], f"{len(claims) - MAX_CLAIMS} more"]
    return bounded(f"one of the claims {', '.join(front)} and {last}", 500)
