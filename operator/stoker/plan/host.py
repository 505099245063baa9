"""What the engine's container takes of the node besides GPUs, and how long it may take to start."""

from __future__ import annotations

from typing import Final

from stoker.api.engine import Resources
from stoker.api.faults import Fault
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.api.types import cpu_millicores, memory_bytes
from stoker.facts.model import ModelFacts
from stoker.plan.demand import Demand, Facts
from stoker.plan.memory import Fit
from stoker.plan.types import EngineTraits
from stoker.plan.units import GIB, MIB, quantity, shown

DEFAULT_CPU_ENGINE_BYTES: Final = 8 * GIB
"""Container of a CPU engine whose model is not known."""
DEFAULT_CPU_ENGINE_MILLICORES: Final = 4000
AGENT_CPU_MILLICORES: Final = 50
AGENT_MEMORY_BYTES: Final = 96 * MIB
"""What the agent beside the engine asks for; the scheduler counts it with the pod."""
_ENGINE_BYTES: Final = 8 * GIB
"""Python, the API server, and a window of page cache to load through."""
_WORKER_BYTES: Final = 2 * GIB
"""Each worker process: libraries and pinned buffers."""
_MULTIMODAL_BYTES: Final = 8 * GIB
"""Caches of decoded images in the API server and in the engine, 4 GiB each by default."""
_START_SECONDS: Final = 480
_LOAD_BYTES_PER_SECOND: Final = 110_000_000
"""The slow end of downloads from the Hub and of network volumes."""
_UNKNOWN_START_SECONDS: Final = 1800
_MOST_START_SECONDS: Final = 24 * 3600
"""Ten terabytes from a slow source; probes count in 32 bits, and numbers of models have no such bound."""
_MOST_SEQUENCES_BY_DEFAULT: Final = 4
_MOST_KV_BYTES_BY_DEFAULT: Final = 8 * GIB
_TOO_SMALL: Final = "ContainerTooSmall"


def shm_bytes(traits: EngineTraits, world: int, on_gpu: bool) -> int:
    """Return the size of ``/dev/shm``; 0 where the engine needs none.

    vLLM's broadcast queues take 160 MiB each, NCCL several hundred without peer access; the container's default of
    64 MiB kills both. 2 GiB for one GPU, then 4 GiB and 2 GiB for each GPU, at most 16 GiB. What leaves the KV cache of
    the GPUs for the memory of the container lies there too.
    """
    if not traits.shares_memory:
        return 0
    if not on_gpu:
        return GIB
    queues = 2 * GIB if world == 1 else min(16 * GIB, 4 * GIB + 2 * GIB * world)
    return queues + traits.shared_cache_bytes


def offloaded_bytes(fitted: Fit | None, demand: Demand, traits: EngineTraits) -> int:
    """Return the weights of all ranks that lie in the memory of the container instead of on their GPUs."""
    if not demand.on_gpu or not traits.offloaded_weight_bytes:
        return 0
    if fitted is None:
        return traits.offloaded_weight_bytes * demand.world
    kept = (min(rank.weight_bytes, traits.offloaded_weight_bytes) for rank in fitted.ranks)
    return demand.tensor * sum(kept)


def cpu_request(spec: InferenceServiceSpec, demand: Demand) -> int:
    """Return the CPU request in millicores: two cores and one for each worker, which polls without sleeping."""
    if stated := (spec.resources or Resources()).cpu:
        return cpu_millicores(stated)
    return 1000 * (2 + demand.world) if demand.on_gpu else DEFAULT_CPU_ENGINE_MILLICORES


def stated_memory(spec: InferenceServiceSpec) -> int | None:
    """Return ``spec.resources.memory`` in bytes."""
    stated = (spec.resources or Resources()).memory
    return memory_bytes(stated) if stated else None


def gpu_engine_memory(facts: Facts, fitted: Fit | None, demand: Demand, traits: EngineTraits, shm: int) -> int:
    """Return the memory of a GPU engine's container in bytes, ``/dev/shm`` included (it counts against the limit)."""
    if traits.splits_layers:
        return _round_up(shm + traits.host_overhead_bytes + (fitted.host_bytes if fitted else 8 * GIB), 256 * MIB)
    multimodal = isinstance(facts, ModelFacts) and facts.encoder_parameters > 0
    processes = _ENGINE_BYTES + _WORKER_BYTES * demand.world + (_MULTIMODAL_BYTES if multimodal else 0)
    return shm + processes + _round_up(offloaded_bytes(fitted, demand, traits), 256 * MIB)


def cpu_engine_memory(fitted: Fit, demand: Demand, traits: EngineTraits) -> int:
    """Return the memory that a CPU engine's container needs, where the spec leaves it to the layout.

    Weights, overhead, and the KV cache: what its slots hold, or for a shared pool up to four sequences of full length
    as long as they stay within 8 GiB, and one in any case.
    """
    needed = fitted.needed_kv_bytes or GIB
    if traits.context_is_shared:
        wanted = needed * min(demand.max_sequences, _MOST_SEQUENCES_BY_DEFAULT)
        needed = max(needed, min(wanted, _MOST_KV_BYTES_BY_DEFAULT))
    return container_for(fitted, demand, traits, needed)


def container_for(fitted: Fit, demand: Demand, traits: EngineTraits, kv_bytes: int) -> int:
    """Return the least container, in steps of 256 MiB, whose fraction holds weights, overhead and ``kv_bytes``."""
    fixed = max(it.weight_bytes + it.activation_bytes + it.graph_bytes + it.overhead_bytes for it in fitted.ranks)
    total = fixed + _round_up(kv_bytes, traits.kv_cache_step_bytes)
    numerator, denominator = demand.memory_fraction.as_integer_ratio()
    return _round_up(-(-total * denominator // numerator), 256 * MIB)


def startup_budget_seconds(weight_bytes: int | None) -> int:
    """Return how long a start may take: 8 min, and the time that a slow source needs for the weights.

    About 10 min for 8B, 30 min for 70B in 16 bits, two hours for 671B in 8.
    """
    if weight_bytes is None:
        return _UNKNOWN_START_SECONDS
    return min(_round_up(_START_SECONDS + weight_bytes // _LOAD_BYTES_PER_SECOND, 60), _MOST_START_SECONDS)


def container_fault(
    spec: InferenceServiceSpec, demand: Demand, fitted: Fit | None, traits: EngineTraits
) -> Fault | None:
    """Return what is wrong with ``spec.resources.memory``: it must hold what never leaves the host.

    A known model on the CPU has its verdict; of an unknown one no container that is too small for any may pass.
    """
    stated, least = stated_memory(spec), least_container(demand, fitted, traits)
    if stated is None or stated >= least or (fitted and not demand.on_gpu):
        return None
    shm, on_host = shm_bytes(traits, demand.world, demand.on_gpu), fitted.host_bytes if fitted else 0
    offloaded = offloaded_bytes(fitted, demand, traits)
    parts = [f"shared memory ({shown(shm)})"] * (demand.on_gpu and bool(shm))
    parts += [f"layers outside the GPU ({shown(on_host)})"] * bool(on_host)
    parts += [f"weights that leave the GPUs ({shown(offloaded)})"] * bool(offloaded)
    problem = f"{shown(stated)} cannot hold {' and '.join(['the processes of the engine', *parts])}"
    return Fault("spec.resources.memory", problem, f"set it to at least {quantity(least)}, or remove it", _TOO_SMALL)


def least_container(demand: Demand, fitted: Fit | None, traits: EngineTraits) -> int:
    """Return the memory that the container cannot do without, in bytes and steps of 256 MiB."""
    if demand.on_gpu:
        shm, on_host = shm_bytes(traits, demand.world, on_gpu=True), fitted.host_bytes if fitted else 0
        on_host += offloaded_bytes(fitted, demand, traits)
        return _round_up(shm + traits.host_overhead_bytes * demand.world + on_host, 256 * MIB)
    numerator, denominator = demand.memory_fraction.as_integer_ratio()
    return _round_up(-(-traits.host_overhead_bytes * denominator // numerator), 256 * MIB)


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step
