"""Which layers lie where: the stages of a pipeline, and the part that stays in the memory of the container."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stoker.facts.model import Layer, ModelFacts


@dataclass(frozen=True, slots=True)
class Stage:
    """A run of layers on one device, with what stands before the first and after the last layer. Counts parameters."""

    groups: tuple[tuple[Layer, int], ...]
    """Its layers, equal ones together with their number."""
    embedding_parameters: int = 0
    head_parameters: int = 0
    encoder_parameters: int = 0
    is_last: bool = False

    @property
    def layer_count(self) -> int:
        """The number of its layers."""
        return sum(count for _, count in self.groups)


def _grouped(layers: tuple[Layer, ...]) -> tuple[tuple[Layer, int], ...]:
    """Count equal layers. Those of one kind are one object, so that comparing them costs nothing."""
    counts: dict[int, int] = {}
    firsts: dict[int, Layer] = {}
    for layer in layers:
        key = id(layer)
        counts[key] = counts.get(key, 0) + 1
        firsts.setdefault(key, layer)
    return tuple((firsts[key], count) for key, count in counts.items())


def layers_per_stage(layers: int, stages: int) -> tuple[int, ...]:
    """Return how many layers each stage gets: 61 over 2 are 31 and 30.

    As vLLM divides them (``get_pp_indices``): the rest goes to the stages before the last, from the back, since the
    last one also holds the output projection.
    """
    counts = [layers // stages] * stages
    for offset in range(2, layers % stages + 2):
        counts[-offset] += 1
    return tuple(counts)


def cut(facts: ModelFacts, pipeline: int) -> tuple[Stage, ...]:
    """Cut a model into stages. Tied embeddings lie on the first and on the last stage where those differ."""
    return _run_of(facts, facts.layers, pipeline, with_embedding=True)


def split(facts: ModelFacts, gpu_layers: int | None, devices: int) -> tuple[Stage, tuple[Stage, ...]]:
    """Return (what stays in the memory of the container, the stages on the GPUs), as llama.cpp splits a model.

    The last ``gpu_layers`` layers go to the GPUs, and the output projection too where the number exceeds the layers;
    ``None`` puts everything there but the input embeddings, which never leave the container.
    """
    count = len(facts.layers)
    on_gpu = count if gpu_layers is None else min(gpu_layers, count)
    head_on_gpu = gpu_layers is None or gpu_layers > count
    output = facts.head_parameters or facts.embedding_parameters
    host = Stage(
        groups=_grouped(facts.layers[: count - on_gpu]),
        embedding_parameters=facts.embedding_parameters,
        head_parameters=0 if head_on_gpu else facts.head_parameters,
        encoder_parameters=0 if on_gpu else facts.encoder_parameters,
        is_last=not head_on_gpu,
    )
    stages = _run_of(facts, facts.layers[count - on_gpu :], devices, with_embedding=False)
    *front, last = stages
    return host, (*front, Stage(last.groups, 0, output if head_on_gpu else 0, last.encoder_parameters, head_on_gpu))


def without_experts(facts: ModelFacts, count: int) -> tuple[ModelFacts, int]:
    """Return a model whose first ``count`` layers have no routed experts, and the parameters of those."""
    if not count:
        return facts, 0
    stripped: dict[int, Layer] = {}
    layers = list(facts.layers)
    taken = 0
    for index in range(min(count, len(layers))):
        layer = layers[index]
        taken += layer.parameters.experts
        bare = replace(layer, parameters=replace(layer.parameters, experts=0))
        layers[index] = stripped.setdefault(id(layer), bare)
    return replace(facts, layers=tuple(layers)), taken


def _run_of(facts: ModelFacts, layers: tuple[Layer, ...], stages: int, *, with_embedding: bool) -> tuple[Stage, ...]:
    made, start = [], 0
    for index, count in enumerate(layers_per_stage(len(layers), stages)):
        first, last = index == 0, index == stages - 1
        tied_copy = facts.embedding_parameters if facts.tied and stages > 1 else 0
        made.append(
            Stage(
                groups=_grouped(layers[start : start + count]),
                embedding_parameters=facts.embedding_parameters if first and with_embedding else 0,
                head_parameters=(facts.head_parameters or tied_copy) if last else 0,
                encoder_parameters=facts.encoder_parameters if first else 0,
                is_last=last,
            )
        )
        start += count
    return tuple(made)
