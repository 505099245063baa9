"""What of a spec concerns pods, in one spelling: equal intent has equal inputs, so that it rolls nothing (N6)."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from stoker.api.quantities import as_text, normal_quantity
from stoker.render.canonical import canonical

NOT_OF_PODS = frozenset(
    {"replicas", "scaling", "slo", "paused", "rollout", "routing", "access", "monitoring"},
)
"""Fields of the spec that concern no pod template; a change of them makes no revision."""

MEANT_WHEN_EMPTY = frozenset({"accelerator"})
"""Sections of the spec that say something by being there: ``accelerator: {}`` asks for any GPU."""


_FILES: Final = ("pod.volumes[].downwardAPI", "pod.volumes[].projected.sources[].downwardAPI")
_CLAIM: Final = "pod.volumes[].ephemeral.volumeClaimTemplate.spec.resources"

QUANTITIES: Final = (
    "accelerator.memory",
    "resources.cpu",
    "resources.memory",
    "pod.env[].valueFrom.resourceFieldRef.divisor",
    "pod.volumes[].emptyDir.sizeLimit",
    f"{_CLAIM}.limits.{{}}",
    f"{_CLAIM}.requests.{{}}",
    *(f"{files}.items[].resourceFieldRef.divisor" for files in _FILES),
)
"""Where quantities stand: ``2`` and ``"2"``, ``1Gi`` and ``1024Mi`` are one."""

MEANS_ABSENT: Final[Mapping[str, str | bool]] = {
    **{f"pod.tolerations[].{field}": "" for field in ("key", "operator", "value", "effect")},
    "pod.env[].valueFrom.fieldRef.apiVersion": "v1",
    "pod.env[].valueFrom.resourceFieldRef.divisor": "0",
    "pod.volumes[].emptyDir.medium": "",
    "pod.volumes[].hostPath.type": "",
    **{f"pod.volumes[].{source}.readOnly": False for source in ("nfs", "persistentVolumeClaim")},
    **{f"{files}.items[].fieldRef.apiVersion": "v1" for files in _FILES},
    **{f"{files}.items[].resourceFieldRef.divisor": "0" for files in _FILES},
}
"""Values that Kubernetes' own types cannot tell from their absence; of quantities, in the normal form."""


def pod_inputs(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return what of the spec concerns pods as it is stored: as it was written, its keys in canonical order.

    In its own spelling, so that an operator from before a normal form, to which an upgrade may be rolled back, knows
    the revision too. Raises ``TypeError`` for floats.
    """
    ordered: dict[str, Any] = json.loads(canonical(_written(spec)))
    return ordered


def of_pods(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of the stored spec that concerns pods, present keys only: defaults change, intent does not.

    What is empty and means what its absence means is left out: a list anywhere (Kubernetes keeps no difference), a
    section, a field of ``pod``. Other empty objects are meant: ``emptyDir: {}`` is a volume, ``labelSelector: {}``
    selects everything. Spellings that Kubernetes stores as one value are one here too (``NORMAL_FORMS``).
    """
    return _written(_in_normal_form(spec))


def _written(spec: Mapping[str, Any]) -> dict[str, Any]:
    kept = {field: _without_empty_lists(value) for field, value in spec.items() if field not in NOT_OF_PODS}
    if isinstance(kept.get("pod"), dict):
        kept["pod"] = {field: value for field, value in kept["pod"].items() if value != {}}
    return {field: value for field, value in kept.items() if value != {} or field in MEANT_WHEN_EMPTY}


def _without_empty_lists(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, Mapping):
        return {key: _without_empty_lists(below) for key, below in value.items() if below != []}
    if isinstance(value, list):
        return [_without_empty_lists(below) for below in value]
    return value


def _in_normal_form(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    for steps, change in NORMAL_FORMS:
        if steps[0] in spec:
            spec = _changed(spec, steps, change)
    return spec


def _normal(value: object) -> object:
    """Return a quantity in its one spelling, and what is none as it is: a fault tells of it."""
    text = as_text(value)
    try:
        return value if text is None else normal_quantity(text)
    except ValueError:
        return value


def _absent(meaning: str | bool) -> Callable[[object], object]:
    return lambda value: None if (type(value), value) == (type(meaning), meaning) else value


def _changed(value: Any, steps: tuple[str, ...], change: Callable[[object], object]) -> Any:  # noqa: ANN401 - any JSON
    """Return a value in which ``change`` was applied at ``steps``, wherever they lead; None takes the field away."""
    if not steps:
        return change(value)
    step, rest = steps[0], steps[1:]
    if step == "[]" and isinstance(value, list):
        return [_changed(item, rest, change) for item in value]
    if not isinstance(value, Mapping) or step not in ("{}", *value):
        return value
    keys = value.keys() if step == "{}" else {step}
    found = {key: _changed(below, rest, change) if key in keys else below for key, below in value.items()}
    return {key: below for key, below in found.items() if below is not None or key not in keys}


def _steps(path: str) -> tuple[str, ...]:
    return tuple(path.replace("[]", ".[]").split("."))


NORMAL_FORMS: Final = (
    *((_steps(path), _normal) for path in QUANTITIES),
    *((_steps(path), _absent(meaning)) for path, meaning in MEANS_ABSENT.items()),
)
"""Where values have several spellings, and what makes one of them."""
