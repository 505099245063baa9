"""Revisions: what rolls pods, and what never does.

A pod template is rendered once per input and kept in a ControllerRevision, whose data is immutable. The input is what
people wrote that concerns pods, and the content of the objects that they named (N19). What was only observed (nodes,
free GPUs, tables of facts) and the operator's own version are not part of it: they are frozen in the revision, so that
neither a new node nor an upgrade of the operator rolls a pod (N6).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stoker.agent.config import PROTOCOL
from stoker.api.faults import Fault
from stoker.plan.rollout import Strategy
from stoker.plan.snapshot import ReferenceView, RevisionView
from stoker.plan.types import Layout
from stoker.render.canonical import canonical, digest, short_digest
from stoker.render.deployment import startup_budget
from stoker.render.identity import ServiceIdentity
from stoker.render.labels import REVISION
from stoker.render.layout_codec import layout_from_json, layout_to_json
from stoker.render.meta import child_meta, with_applied_hash
from stoker.render.names import revision_name
from stoker.render.pod_inputs import of_pods, pod_inputs

FORMAT = 1
"""Version of the shape of a revision's data."""

MAX_BYTES = 64 * 1024
"""Largest data of a revision, in bytes."""

KEPT = 5
"""How many revisions of a service stay."""

ABSENT = "absent"
"""Stands for the digest of an optional object that does not exist."""


class RevisionTooLargeError(ValueError):
    """The data of a revision exceeds ``MAX_BYTES``; ``fault`` says it to the person who wrote the spec."""

    def __init__(self, size_bytes: int) -> None:
        problem = f"the rendered pods take {size_bytes} bytes, and at most {MAX_BYTES} are stored"
        self.fault = Fault("spec", problem, "shorten engine.args, warmup.prompts or pod", "RevisionTooLarge")
        super().__init__(problem)


@dataclass(frozen=True, slots=True)
class RevisionInputs:
    """What people wrote that concerns pods: ``spec`` as stored, digests by ``Kind/name``, the restart mark."""

    spec: Mapping[str, Any]
    references: Mapping[str, str]
    restarted_at: str | None

    @property
    def hash(self) -> str:
        """The input hash: equal for equal intent about pods, whenever it was written."""
        return input_hash(self.spec, self.references)

    @property
    def key(self) -> str:
        """The revision's key: the input hash, and the time at which a fresh render was asked for."""
        return short_digest({"inputs": self.hash, "restartedAt": self.restarted_at})


@dataclass(frozen=True, slots=True)
class RevisionData:
    """A revision as it is stored. ``layout`` is None where an operator of another version wrote it in other words."""

    key: str
    number: int
    inputs: RevisionInputs
    engine: str
    template: Mapping[str, Any]
    layout: Layout | None
    agent_image: str
    agent_protocol: int
    renderer_version: str
    strategy: str
    """The way to replace that the free GPUs allowed when the revision was made: Surge, Replace or Recreate."""
    strategy_reason: str


def input_hash(spec: Mapping[str, Any], references: Mapping[str, str]) -> str:
    """Return the hash over the part of the stored ``spec`` that concerns pods, and over the digests of references."""
    return digest({"spec": of_pods(spec), "references": dict(references)})


def revision_inputs(spec: Mapping[str, Any], references: Sequence[ReferenceView]) -> RevisionInputs:
    """Return the inputs of the revision that ``spec`` asks for."""
    found: dict[str, set[str]] = {}
    for view in references:
        if view.rolls:
            found.setdefault(f"{view.kind}/{view.name}", set()).add(view.digest or ABSENT)
    digests = {name: "+".join(sorted(several)) for name, several in found.items()}
    return RevisionInputs(pod_inputs(spec), digests, (spec.get("rollout") or {}).get("restartedAt"))


def known_revision(
    inputs: RevisionInputs, revisions: Sequence[RevisionData], current: str | None = None
) -> RevisionData | None:
    """Return the stored revision that answers ``inputs``; None where a new one has to be made.

    A restart mark asks for its own revision. Without one the newest revision of the same input stays: taking the mark
    away (a self-heal does) must roll nothing. Of several that answer, ``current``, the one decided on last, stays:
    marks may come back, and an earlier operator told inputs apart that are one input to this one.
    """
    same = [revision for revision in revisions if revision.inputs.hash == inputs.hash]
    if inputs.restarted_at is not None:
        same = [revision for revision in same if revision.inputs.restarted_at == inputs.restarted_at]
    return max(same, key=lambda revision: (revision.key == current, revision.number), default=None)


def build_revision(service: ServiceIdentity, data: RevisionData) -> dict[str, Any]:
    """Return the ControllerRevision. Raises ``RevisionTooLargeError``."""
    content = _content(data)
    size = len(canonical(content).encode())
    if size > MAX_BYTES:
        raise RevisionTooLargeError(size)
    meta = child_meta(service, data.engine, revision_name(service.name, data.key))
    meta["labels"][REVISION] = data.key
    head = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": meta}
    return with_applied_hash({**head, "revision": data.number, "data": content})


def parse_revision(view: RevisionView) -> RevisionData | None:
    """Return a stored revision; None for one whose format this operator does not know, or that is none of ours."""
    if view.data.get("format") != FORMAT:
        return None
    try:
        revision = _parsed(view)
        return revision if _can_be_rendered(revision) else None
    except (AttributeError, KeyError, StopIteration, TypeError, ValueError):
        return None


def _can_be_rendered(revision: RevisionData) -> bool:
    """Whether everything has the type that rendering takes for granted. Raises as ``startup_budget`` does."""
    texts = (
        revision.key,
        revision.engine,
        revision.agent_image,
        revision.renderer_version,
        revision.strategy_reason,
        "" if revision.inputs.restarted_at is None else revision.inputs.restarted_at,
    )
    objects = (revision.inputs.spec, revision.inputs.references)
    return (
        startup_budget(revision.template) > 0
        and revision.strategy in list(Strategy)
        and all(isinstance(text, str) for text in texts)
        and all(isinstance(value, Mapping) for value in objects)
    )


def _parsed(view: RevisionView) -> RevisionData:
    content = view.data
    inputs, strategy = content["inputs"], content["strategy"]
    return RevisionData(
        key=content["key"],
        number=view.number,
        inputs=RevisionInputs(inputs["spec"], inputs["references"], inputs.get("restartedAt")),
        engine=content["engine"],
        template=content["template"],
        layout=layout_from_json(content["layout"]),
        agent_image=content["agent"]["image"],
        agent_protocol=content["agent"]["protocol"],
        renderer_version=content["rendererVersion"],
        strategy=strategy["type"],
        strategy_reason=strategy["reason"],
    )


def _content(data: RevisionData) -> dict[str, Any]:
    inputs = {"spec": data.inputs.spec, "references": data.inputs.references}
    if data.inputs.restarted_at is not None:
        inputs["restartedAt"] = data.inputs.restarted_at  # type: ignore[assignment]
    return {
        "format": FORMAT,
        "key": data.key,
        "rendererVersion": data.renderer_version,
        "engine": data.engine,
        "agent": {"image": data.agent_image, "protocol": data.agent_protocol},
        "inputs": inputs,
        "strategy": {"type": data.strategy, "reason": data.strategy_reason},
        "layout": layout_to_json(data.layout) if data.layout else None,
        "template": data.template,
    }


CURRENT_PROTOCOL = PROTOCOL
"""The agents' protocol that today's renderer writes; agents of the two versions before are understood too."""
