"""Rules over fields of Kubernetes' own types, as its API server checks them in a pod template.

A value that breaks one would pass admission here, and its Deployment would be refused later, where only a condition
tells. Source: ``pkg/apis/core/validation`` of Kubernetes. None is stricter than Kubernetes is.
"""

from collections.abc import Iterable, Mapping, Sized
from typing import Any, Final

from stoker.api.cel import Rule, exactly_one_of
from stoker.api.divisors import divisor_rules
from stoker.api.keys import are_keys, is_key
from stoker.api.types import EXAMPLES, LABEL_KEY_PATTERN, MAX_KEY_PREFIX

Value = Mapping[str, Any]

_LABELS: Final = "self.operator in ['In', 'NotIn'] ? has(self.values) && self.values.size() > 0 : {others}"
_NO_VALUES: Final = "!has(self.values) || self.values.size() == 0"
_ONE_VALUE: Final = "self.operator in ['Gt', 'Lt'] ? has(self.values) && self.values.size() == 1 : ({others})"
_NODE_FIELDS: Final = (
    "!has(self.matchFields) || self.matchFields.all(x, x.key == 'metadata.name' && x.operator in ['In', 'NotIn'] && "
    "has(x.values) && x.values.size() == 1)"
)

_PROJECTED: Final = ("configMap", "downwardAPI", "secret", "serviceAccountToken")


def _count(value: Value, field: str) -> int:
    items: Sized = value.get(field) or ()
    return len(items)


def _values_fit(value: Value) -> bool:
    operator, count = value.get("operator"), _count(value, "values")
    if operator in {"In", "NotIn"}:
        return count > 0
    return count == (1 if operator in {"Gt", "Lt"} else 0)


def _values_rule(counts: str, others: str) -> Rule:
    """Return the rule of a requirement's values; ``others`` says how many go with other operators than In and NotIn."""
    return Rule(
        field="values",
        problem="the number of values does not go with the operator",
        remedy=f"give {counts}, Exists and DoesNotExist none",
        expression=_LABELS.format(others=f"({others})"),
        holds=_values_fit,
    )


def _is_node_name(requirement: Value) -> bool:
    is_one = requirement.get("operator") in {"In", "NotIn"} and _count(requirement, "values") == 1
    return is_one and requirement.get("key") == "metadata.name"


def _selected_keys(selector: Value | None) -> set[str]:
    written = selector or {}
    return {*(written.get("matchLabels") or ()), *(one["key"] for one in written.get("matchExpressions") or ())}


def _narrowing_rule(what: str) -> Rule:
    """Return the rule that no key narrows a selector which names it: a Deployment goes through, its pods do not."""
    return Rule(
        field="matchLabelKeys",
        problem=f"the labelSelector of {what} names a key of matchLabelKeys",
        remedy="remove the key from one of them",
        expression=(
            "!has(self.matchLabelKeys) || !has(self.labelSelector) || !self.matchLabelKeys.exists(k, "
            "(has(self.labelSelector.matchLabels) && k in self.labelSelector.matchLabels) || "
            "(has(self.labelSelector.matchExpressions) && self.labelSelector.matchExpressions.exists(x, x.key == k)))"
        ),
        holds=lambda it: not {*(it.get("matchLabelKeys") or ())} & _selected_keys(it.get("labelSelector")),
    )


def _profile_rules(kind: str) -> tuple[Rule, Rule]:
    return (
        Rule(
            field="localhostProfile",
            problem=f"type Localhost of {kind} names no profile of the node",
            remedy="add localhostProfile, or write another type",
            expression="self.type != 'Localhost' || has(self.localhostProfile)",
            holds=lambda it: it.get("type") != "Localhost" or it.get("localhostProfile") is not None,
        ),
        Rule(
            field="localhostProfile",
            problem=f"only type Localhost of {kind} has a profile of the node",
            remedy="write type: Localhost, or remove localhostProfile",
            expression="self.type == 'Localhost' || !has(self.localhostProfile)",
            holds=lambda it: it.get("type") == "Localhost" or it.get("localhostProfile") is None,
        ),
    )


RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "V1Toleration": (
        Rule(
            field="operator",
            problem="without a key only Exists is possible, which tolerates every taint",
            remedy="name a key, or write operator: Exists",
            expression=("(has(self.key) && self.key != '') || (has(self.operator) && self.operator == 'Exists')"),
            holds=lambda it: bool(it.get("key")) or it.get("operator") == "Exists",
        ),
        Rule(
            field="value",
            problem="Exists takes no value",
            remedy="remove it, or write operator: Equal",
            expression="!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
            holds=lambda it: it.get("operator") != "Exists" or not it.get("value"),
        ),
        Rule(
            field="tolerationSeconds",
            problem="only the effect NoExecute has a time",
            remedy="write effect: NoExecute, or remove it",
            expression="!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
            holds=lambda it: it.get("tolerationSeconds") is None or it.get("effect") == "NoExecute",
        ),
    ),
    "V1NodeSelectorRequirement": (
        _values_rule("In and NotIn one or more, Gt and Lt one", _ONE_VALUE.format(others=_NO_VALUES)),
    ),
    "V1LabelSelectorRequirement": (_values_rule("In and NotIn one or more", _NO_VALUES),),
    "V1LabelSelector": (
        Rule(
            field="matchLabels",
            problem="a key of the selector is no valid label key",
            remedy=f"{EXAMPLES[LABEL_KEY_PATTERN]}, the prefix at most {MAX_KEY_PREFIX}",
            expression=f"!has(self.matchLabels) || self.matchLabels.all(k, {is_key('k', LABEL_KEY_PATTERN)})",
            holds=lambda it: are_keys(it.get("matchLabels"), LABEL_KEY_PATTERN),
        ),
    ),
    "V1NodeSelectorTerm": (
        Rule(
            field="matchFields",
            problem="the only field of a node that selects is its name",
            remedy="write key metadata.name, operator In or NotIn, and one value",
            expression=_NODE_FIELDS,
            holds=lambda it: all(_is_node_name(one) for one in it.get("matchFields") or ()),
        ),
    ),
    "V1PodAffinityTerm": (
        _narrowing_rule("an affinity"),
        Rule(
            field="matchLabelKeys",
            problem="a key stands both in matchLabelKeys and in mismatchLabelKeys",
            remedy="remove it from one of them",
            expression=(
                "!has(self.matchLabelKeys) || !has(self.mismatchLabelKeys) || "
                "!self.matchLabelKeys.exists(k, k in self.mismatchLabelKeys)"
            ),
            holds=lambda it: not {*(it.get("matchLabelKeys") or ())} & {*(it.get("mismatchLabelKeys") or ())},
        ),
        Rule(
            field="labelSelector",
            problem="matchLabelKeys and mismatchLabelKeys narrow a labelSelector, and there is none",
            remedy="write one, {} for every pod, or remove the keys",
            expression=(
                "has(self.labelSelector) || ((!has(self.matchLabelKeys) || self.matchLabelKeys.size() == 0) && "
                "(!has(self.mismatchLabelKeys) || self.mismatchLabelKeys.size() == 0))"
            ),
            holds=lambda it: (
                it.get("labelSelector") is not None
                or _count(it, "matchLabelKeys") + _count(it, "mismatchLabelKeys") == 0
            ),
        ),
    ),
    "V1TopologySpreadConstraint": (
        _narrowing_rule("a spread"),
        Rule(
            field="minDomains",
            problem="only whenUnsatisfiable DoNotSchedule has a least number of domains",
            remedy="write whenUnsatisfiable: DoNotSchedule, or remove it",
            expression="!has(self.minDomains) || self.whenUnsatisfiable == 'DoNotSchedule'",
            holds=lambda it: it.get("minDomains") is None or it.get("whenUnsatisfiable") == "DoNotSchedule",
        ),
    ),
    "V1PersistentVolumeClaimSpec": (
        Rule(
            field="resources",
            problem="the claim asks for no storage",
            remedy="write resources.requests.storage, such as 100Gi",
            expression="has(self.resources.requests) && 'storage' in self.resources.requests",
            holds=lambda it: "storage" in it["resources"]["requests"],
        ),
    ),
    "V1VolumeProjection": (
        Rule(
            field="",
            problem="several sources stand in one item",
            remedy=f"give each of {', '.join(_PROJECTED)} an item of its own",
            expression=f"[{', '.join(f'has(self.{one})' for one in _PROJECTED)}].filter(x, x).size() <= 1",
            holds=lambda it: sum(it.get(one) is not None for one in _PROJECTED) <= 1,
        ),
    ),
    "V1DownwardAPIVolumeFile": (
        Rule(
            field="",
            problem="exactly one of fieldRef and resourceFieldRef must be set",
            remedy="set one of them",
            expression=exactly_one_of("fieldRef", "resourceFieldRef"),
            holds=lambda it: (it.get("fieldRef") is None) != (it.get("resourceFieldRef") is None),
        ),
    ),
    "V1ResourceFieldSelector": divisor_rules("a file", lambda it: str(it["resource"]), lambda it: it.get("divisor")),
    "V1SeccompProfile": _profile_rules("seccomp"),
    "V1AppArmorProfile": _profile_rules("AppArmor"),
}
"""Rules by the client's name of the type."""


def by_message(rules: Iterable[Rule]) -> Mapping[str, Rule]:
    """Return rules by their messages, by which a schema is known to have them.

    Raises ``ValueError`` where two have the same message: one of them would never be applied.
    """
    found: dict[str, Rule] = {}
    for rule in rules:
        if found.setdefault(rule.message, rule) is not rule:
            raise ValueError(f"two rules say {rule.message!r}: let each name its type")
    return found


_BY_MESSAGE: Final = by_message(rule for rules in RULES.values() for rule in rules)


def broken_rules(schema: Value, value: Value) -> list[Rule]:
    """Return the rules in ``schema`` that ``value``, which has its shape, breaks."""
    rules = (_BY_MESSAGE[entry["message"]] for entry in schema.get("x-kubernetes-validations", ()))
    return [rule for rule in rules if not rule.holds(value)]
