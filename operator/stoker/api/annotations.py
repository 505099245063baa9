"""Annotations of pods that Kubernetes itself reads, and checks (``ValidatePodSpecificAnnotations``)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from stoker.api.cel import Rule, quoted, raw
from stoker.api.types import PROFILE_PATH_PATTERN

MIRROR: Final = "kubernetes.io/config.mirror"
TOLERATIONS: Final = "scheduler.alpha.kubernetes.io/tolerations"
DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
SECCOMP: Final = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_PREFIX: Final = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR_PREFIX: Final = "container.apparmor.security.beta.kubernetes.io/"
CONTAINERS: Final = ("engine", "agent")
"""The containers of a pod of ours."""

_COST: Final = "^(0|-[0-9]{1,10}|[1-9][0-9]{0,9})$"
_MOST: Final = 2**31
_SECCOMP_VALUE: Final = f"^(runtime/default|docker/default|unconfined|localhost/{PROFILE_PATH_PATTERN[1:-1]})$"
_APPARMOR_VALUE: Final = r"^((runtime/default|unconfined)?|localhost/[\s\S]*)$"

Annotations = Mapping[str, str]


def annotation_rules(annotations: Callable[[Any], Annotations]) -> tuple[Rule, ...]:
    """Return the rules over ``annotations`` of an object, which the function reads."""
    return tuple(each.rule(annotations) for each in _OF_EACH)


@dataclass(frozen=True, slots=True)
class _Each:
    """A rule over one annotation: in CEL, where ``k`` is its key, and in Python, over its key and value."""

    problem: str
    remedy: str
    expression: str
    holds: Callable[[str, str], bool]

    def rule(self, annotations: Callable[[Any], Annotations]) -> Rule:
        """Return the rule over all annotations."""
        return Rule(
            field="annotations",
            problem=self.problem,
            remedy=self.remedy,
            expression=f"!has(self.annotations) || self.annotations.all(k, {self.expression})",
            holds=lambda it: all(self.holds(key, value) for key, value in annotations(it).items()),
        )


def _is_cost(text: str) -> bool:
    return bool(re.fullmatch(_COST, text)) and -_MOST <= int(text) < _MOST


def _is_of_seccomp(key: str) -> bool:
    return key == SECCOMP or key.startswith(SECCOMP_PREFIX)


def _apparmor_keys() -> tuple[str, ...]:
    return tuple(APPARMOR_PREFIX + container for container in CONTAINERS)


def _is_of_apparmor(key: str, value: str) -> bool:
    return key in _apparmor_keys() and bool(re.fullmatch(_APPARMOR_VALUE, value))


_OF_EACH: Final = (
    _Each(
        problem=f"{MIRROR} and {TOLERATIONS} are Kubernetes' own",
        remedy="remove them; tolerations are written under pod.tolerations",
        expression=f"!(k in {quoted((MIRROR, TOLERATIONS))})",
        holds=lambda key, _: key not in (MIRROR, TOLERATIONS),
    ),
    _Each(
        problem=f"{DELETION_COST} is no whole number of 32 bits",
        remedy='write one such as "100" or "-1"',
        expression=f"k != '{DELETION_COST}' || (self.annotations[k].matches('{_COST}') && "
        f"int(self.annotations[k]) >= {-_MOST} && int(self.annotations[k]) < {_MOST})",
        holds=lambda key, value: key != DELETION_COST or _is_cost(value),
    ),
    _Each(
        problem="an annotation of seccomp names no profile",
        remedy="write runtime/default, unconfined or localhost/PATH, or better pod.securityContext.seccompProfile",
        expression=f"!(k == '{SECCOMP}' || k.startsWith('{SECCOMP_PREFIX}')) || "
        f"self.annotations[k].matches({raw(_SECCOMP_VALUE)})",
        holds=lambda key, value: not _is_of_seccomp(key) or bool(re.fullmatch(_SECCOMP_VALUE, value)),
    ),
    _Each(
        problem="an annotation of AppArmor names no profile, or no container of the pod",
        remedy=f"write runtime/default, unconfined or localhost/NAME, for {' or '.join(CONTAINERS)}, or better "
        "pod.securityContext.appArmorProfile",
        expression=f"!k.startsWith('{APPARMOR_PREFIX}') || (k in {quoted(_apparmor_keys())} && "
        f"self.annotations[k].matches({raw(_APPARMOR_VALUE)}))",
        holds=lambda key, value: not key.startswith(APPARMOR_PREFIX) or _is_of_apparmor(key, value),
    ),
)
