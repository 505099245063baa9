"""The engine's metrics page: bounded parsing on the way in, one set of names on the way out.

Samples are summed by their exact name: a data-parallel engine has one line per rank, and newer engines have series
whose names begin with the name of another. What is missing, malformed, negative or NaN is unknown (`None`), never zero.
Format: Prometheus text exposition 0.0.4.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from stoker.agent.config import EngineMetrics

PAGE_LIMIT_BYTES: Final = 8 * 1024 * 1024
BUCKET_LIMIT: Final = 200
PROCESS_START: Final = "process_start_time_seconds"

# A sample: name, labels (quoted values may hold braces and escaped quotes), value; then a time stamp or an exemplar.
_SAMPLE: Final = re.compile(
    r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[^"{}]|"(?:[^"\\]|\\.)*")*)\})?[ \t]+(\S+)(?:[ \t]+-?\d+)?[ \t]*(?:#.*)?\r?'
)
_LE: Final = re.compile(r'(?:^|,)[ \t]*le="([^"\\]*)"')


@dataclass(frozen=True, slots=True)
class Histogram:
    """Cumulative counts by upper bound (ascending, the last is infinity), and the sum of the values in seconds."""

    buckets: tuple[tuple[float, float], ...]
    total: float

    @property
    def count(self) -> float:
        """Number of observations."""
        return self.buckets[-1][1]


@dataclass(frozen=True, slots=True)
class Reading:
    """One metrics page. Every field may be unknown. `kv_usage` (0..1) is that of the fullest cache of the engine."""

    running: float | None = None
    waiting: float | None = None
    kv_usage: float | None = None
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    steps: float | None = None
    accepted: tuple[float | None, ...] = ()
    process_start: float | None = None
    ttft: Histogram | None = None
    tpot: Histogram | None = None

    @property
    def progress(self) -> tuple[float, ...]:
        """The counters that move while work is done, those that are known."""
        return tuple(value for value in (self.prompt_tokens, self.generation_tokens, self.steps) if value is not None)


Sample = tuple[str, float]
"""Labels as they stand on the page, and the value; NaN stands for a line that could not be read."""


def read_page(page: str, names: EngineMetrics) -> Reading:
    """Read the series in `names` from a page. Never raises."""
    samples = _samples(page, _wanted(names))

    def total(name: str | None) -> float | None:
        return _combined(samples.get(name or ""), sum)

    return Reading(
        running=total(names.running),
        waiting=total(names.waiting),
        kv_usage=_combined(samples.get(names.kv_usage or ""), max),
        prompt_tokens=total(names.prompt_tokens),
        generation_tokens=total(names.generation_tokens),
        steps=total(names.steps),
        accepted=tuple(total(name) for name in names.requests_accepted),
        process_start=_combined(samples.get(PROCESS_START), max),
        ttft=_histogram(samples, names.ttft),
        tpot=_histogram(samples, names.tpot),
    )


def _wanted(names: EngineMetrics) -> frozenset[str]:
    plain = (names.running, names.waiting, names.kv_usage, names.prompt_tokens, names.generation_tokens, names.steps)
    histograms = (
        f"{name}{part}" for name in (names.ttft, names.tpot) if name for part in ("_bucket", "_sum", "_count")
    )
    return frozenset({name for name in plain if name} | {*histograms, *names.requests_accepted, PROCESS_START})


def _samples(page: str, wanted: frozenset[str]) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    prefixes = tuple(wanted)
    for line in page.split("\n"):
        if line.startswith(prefixes):
            name = re.split(r"[{ \t]", line, maxsplit=1)[0]
            if name in wanted:
                found.setdefault(name, []).append(_sample(line))
    return found


def _sample(line: str) -> Sample:
    match = _SAMPLE.fullmatch(line)
    if match is None:
        return "", math.nan
    return match[2] or "", _number(match[3])


def _number(text: str) -> float:
    """`float` reads more than the format allows (underscores, spaces), and infinity is no count."""
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        return math.nan
    return value if math.isfinite(value) and value >= 0 else math.nan


def _combined(samples: list[Sample] | None, combine: Callable[[list[float]], float]) -> float | None:
    if not samples:
        return None
    value = combine([value for _, value in samples])
    if any(math.isnan(each) for _, each in samples) or math.isinf(value):
        return None
    return float(value)


def _histogram(samples: dict[str, list[Sample]], name: str | None) -> Histogram | None:
    total = _combined(samples.get(f"{name}_sum"), sum)
    counts = _bucket_counts(samples.get(f"{name}_bucket", []))
    if total is None or not counts:
        return None
    buckets = tuple(sorted(counts.items()))
    ascending = all(low[1] <= high[1] for low, high in itertools.pairwise(buckets))
    return Histogram(buckets, total) if ascending and math.isinf(buckets[-1][0]) else None


def _bucket_counts(samples: list[Sample]) -> dict[float, float]:
    """Counts by upper bound over all other labels; empty where a line cannot be read."""
    counts: dict[float, float] = {}
    for labels, value in samples:
        bound = _bound(labels)
        if bound is None or math.isnan(value):
            return {}
        counts[bound] = counts.get(bound, 0.0) + value
    return counts if len(counts) <= BUCKET_LIMIT and not any(map(math.isinf, counts.values())) else {}


def _bound(labels: str) -> float | None:
    match = _LE.search(labels)
    try:
        bound = float(match[1]) if match else math.nan
    except ValueError:
        return None
    return None if math.isnan(bound) else bound


# ---- the way out ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Family:
    """One metric of the agent's page. One whose value is unknown is left out."""

    name: str
    kind: str
    help: str
    value: float | Histogram | None


def engine_families(reading: Reading) -> tuple[Family, ...]:
    """The families that come from the engine, under the same names for every engine."""
    return (
        Family("stoker_engine_requests_running", "gauge", "Requests that the engine computes.", reading.running),
        Family("stoker_engine_requests_waiting", "gauge", "Requests in the engine's queue.", reading.waiting),
        Family("stoker_engine_kv_usage_ratio", "gauge", "KV cache in use, 0 to 1.", reading.kv_usage),
        Family("stoker_engine_prompt_tokens_total", "counter", "Prompt tokens computed.", reading.prompt_tokens),
        Family("stoker_engine_generation_tokens_total", "counter", "Tokens generated.", reading.generation_tokens),
        Family("stoker_engine_steps_total", "counter", "Iterations of the engine.", reading.steps),
        Family("stoker_engine_ttft_seconds", "histogram", "Time to the first token.", reading.ttft),
        Family("stoker_engine_tpot_seconds", "histogram", "Time per output token.", reading.tpot),
    )


def expose(families: Iterable[Family], model: str) -> str:
    """The agent's page in the text format, with the label `model`."""
    label = f'model="{escape_label(model)}"'
    return "".join(f"{line}\n" for family in families for line in _lines(family, label))


def escape_label(value: str) -> str:
    """A label value as the text format wants it."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _lines(family: Family, label: str) -> Iterator[str]:
    if family.value is None:
        return
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} {family.kind}"
    if not isinstance(family.value, Histogram):
        yield f"{family.name}{{{label}}} {family.value:.17g}"
        return
    for bound, count in family.value.buckets:
        yield f'{family.name}_bucket{{{label},le="{_le(bound)}"}} {count:.17g}'
    yield f"{family.name}_sum{{{label}}} {family.value.total:.17g}"
    yield f"{family.name}_count{{{label}}} {family.value.count:.17g}"


def _le(bound: float) -> str:
    return "+Inf" if math.isinf(bound) else repr(bound)
