"""Annotations of pods that Kubernetes itself reads, and checks (``ValidatePodSpecificAnnotations``)."""

import re
from collections.abc import Callable, Mapping
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

    def rule(problem: str, remedy: str, each: str, holds: Callable[[str, str], bool]) -> Rule:
        return Rule(
            field="annotations",
            problem=problem,
            remedy=remedy,
            expression=f"!has(self.annotations) || self.annotations.all(k, {each})",
            holds=lambda it: all(holds(key, value) for key, value in annotations(it).items()),
        )

    return (
        rule(
            f"{MIRROR} and {TOLERATIONS} are Kubernetes' own",
            "remove them; tolerations are written under pod.tolerations",
            f"!(k in {quoted((MIRROR, TOLERATIONS))})",
            lambda key, _: key not in (MIRROR, TOLERATIONS),
        ),
        rule(
            f"{DELETION_COST} is no whole number of 32 bits",
            'write one such as "100" or "-1"',
            f"k != '{DELETION_COST}' || (self.annotations[k].matches('{_COST}') && "
            f"int(self.annotations[k]) >= {-_MOST} && int(self.annotations[k]) < {_MOST})",
            lambda key, value: key != DELETION_COST or _is_cost(value),
        ),
        rule(
            "an annotation of seccomp names no profile",
            "write runtime/default, unconfined or localhost/PATH, or better pod.securityContext.seccompProfile",
            f"!(k == '{SECCOMP}' || k.startsWith('{SECCOMP_PREFIX}')) || "
            f"self.annotations[k].matches({raw(_SECCOMP_VALUE)})",
            lambda key, value: not _is_of_seccomp(key) or bool(re.fullmatch(_SECCOMP_VALUE, value)),
        ),
        rule(
            "an annotation of AppArmor names no profile, or no container of the pod",
            f"write runtime/default, unconfined or localhost/NAME, for {' or '.join(CONTAINERS)}, or better "
            "pod.securityContext.appArmorProfile",
            f"!k.startsWith('{APPARMOR_PREFIX}') || (k in {quoted(_apparmor_keys())} && "
            f"self.annotations[k].matches({raw(_APPARMOR_VALUE)}))",
            lambda key, value: not key.startswith(APPARMOR_PREFIX) or _is_of_apparmor(key, value),
        ),
    )


def _is_cost(text: str) -> bool:
    return bool(re.fullmatch(_COST, text)) and -_MOST <= int(text) < _MOST


def _is_of_seccomp(key: str) -> bool:
    return key == SECCOMP or key.startswith(SECCOMP_PREFIX)


def _apparmor_keys() -> tuple[str, ...]:
    return tuple(APPARMOR_PREFIX + container for container in CONTAINERS)


def _is_of_apparmor(key: str, value: str) -> bool:
    return key in _apparmor_keys() and bool(re.fullmatch(_APPARMOR_VALUE, value))
