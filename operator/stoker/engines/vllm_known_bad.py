"""Combinations that a version of vLLM takes and then ends with, or serves wrong answers with: refused by name.

Each rule says in which versions, what beside what, and why. A version of which nobody knows passes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from stoker.api.engine import Parallelism
from stoker.api.faults import Fault, join
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.engines.arguments import ARGS_PATH, Argument
from stoker.engines.moves import above_zero, last_words
from stoker.engines.spans import Span
from stoker.engines.versions import Version
from stoker.engines.vllm_memory import is_off

_LEAVES_THE_GPU: Final = ("OffloadingConnector", "SimpleCPUOffloadConnector", "LMCacheConnectorV1")
"""Connectors that move KV cache of a pod into its memory."""
_STAGES: Final = "spec.parallelism.pipeline"


@dataclass(frozen=True, slots=True)
class _Rule:
    """One combination: an option in effect with a field that is set. ``beside`` names the field."""

    option: str
    beside: str
    holds: Callable[[InferenceServiceSpec, Argument], bool]
    span: Span
    effect: str


def _has_stages(spec: InferenceServiceSpec, _: Argument) -> bool:
    return ((spec.parallelism or Parallelism()).pipeline or 1) > 1


def _drafts(spec: InferenceServiceSpec, _: Argument) -> bool:
    return spec.speculation is not None


def _offloads_stages(spec: InferenceServiceSpec, argument: Argument) -> bool:
    return _has_stages(spec, argument) and above_zero(argument.values)


def _connects_stages(spec: InferenceServiceSpec, argument: Argument) -> bool:
    return _has_stages(spec, argument) and any(name in _connector(argument) for name in _LEAVES_THE_GPU)


def _connector(argument: Argument) -> str:
    """Return the text of ``kv_connector``, dotted or inside the JSON; empty where there is none."""
    value = argument.values[0] if argument.values else ""
    if argument.keys:
        return value if argument.keys == ("kv_connector",) else ""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return ""
    return str(found.get("kv_connector", "")) if isinstance(found, dict) else ""


_NO_STAGES: Final = "does not know stages, and answers slowly or wrongly"
_RULES: Final[Sequence[_Rule]] = (
    # Read in 0.12, 0.20 and 0.32: only drafts by a model may be computed asynchronously.
    _Rule("--async-scheduling", "spec.speculation", _drafts, Span(), "ends with a draft by lookup"),
    # Read in 0.12; 0.20 takes both.
    _Rule("--async-scheduling", _STAGES, _has_stages, Span(until=Version(0, 13)), "ends with more than one stage"),
    # kaito-project/kaito#1851 switched it off; 0.32 hands its connectors the number of stages.
    _Rule("--kv-offloading-size", _STAGES, _offloads_stages, Span(until=Version(0, 32)), _NO_STAGES),
    _Rule("--kv-transfer-config", _STAGES, _connects_stages, Span(until=Version(0, 32)), _NO_STAGES),
)


def known_bad(spec: InferenceServiceSpec, arguments: Sequence[Argument], version: Version | None) -> Iterator[Fault]:
    """Yield a fault for every combination that this version is known to be bad at."""
    given: Mapping[str, Argument] = last_words(arguments, is_off)
    for rule in _RULES:
        argument = given.get(rule.option)
        if argument is not None and rule.span.covers(version) and rule.holds(spec, argument):
            at = "vLLM" if rule.span == Span() else f"vLLM {version}"
            problem = f"{rule.option} of {at} {rule.effect} ({rule.beside})"
            remedy = f"remove it, or change {rule.beside}" + _later(rule.span)
            yield Fault(join(ARGS_PATH, argument.index), problem, remedy, "KnownBadCombination")


def _later(span: Span) -> str:
    return f", or set spec.engine.version to {span.until} or later" if span.until else ""
