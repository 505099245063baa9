"""What a layout is computed from: the model's facts and the device, each with where it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.api.types import HubSource, memory_bytes, model_source
from stoker.facts.config import facts_from_config
from stoker.facts.families import known_model
from stoker.facts.gpus import known_gpu
from stoker.facts.model import FactsError, ModelFacts, UnknownFacts
from stoker.facts.quantization import Capability
from stoker.facts.reading import MAX_INDEX_BYTES, parse_json_object
from stoker.plan.landing import GPU_RESOURCE, NOWHERE, PRODUCT_LABEL, Landing, landing_of
from stoker.plan.numbers import facts_from_numbers
from stoker.plan.snapshot import NodeView, ReferenceView
from stoker.plan.units import MIB

MEMORY_LABEL: Final = "nvidia.com/gpu.memory"
STATED_MEMORY: Final = "spec.accelerator.memory"
CONFIG_KEY: Final = "config.json"
INDEX_KEY: Final = "model.safetensors.index.json"
_CAPABILITY_LABELS: Final = ("nvidia.com/gpu.compute.major", "nvidia.com/gpu.compute.minor")
_MAX_LABEL_MIB: Final = 2**24


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU of the replica, and the nodes on which its pods may land."""

    memory_bytes: int
    origin: str
    product: str | None = None
    capability: Capability | None = None
    landing: Landing = NOWHERE
    resource_name: str = GPU_RESOURCE
    observed_bytes: int | None = None
    """What nodes and the table know of its memory, where the spec states another figure."""
    observed_origin: str = ""


@dataclass(frozen=True, slots=True)
class UnknownDevice:
    """A GPU whose memory is not known, and why, in a sentence for people."""

    reason: str
    capability: Capability | None = None
    landing: Landing = NOWHERE
    resource_name: str = GPU_RESOURCE


# ---- the model -----------------------------------------------------------------------------------------------------
def resolve_facts(spec: InferenceServiceSpec, references: Sequence[ReferenceView]) -> ModelFacts | UnknownFacts:
    """Return the model's facts: from ``spec.model.facts``, else from the table of known models; else why not."""
    facts = spec.model.facts
    try:
        if facts is not None and facts.inline is not None:
            return facts_from_numbers(facts.inline)
        if facts is not None and facts.config_map_name is not None:
            return _from_config_map(spec, facts.config_map_name, references)
    except FactsError as error:
        return UnknownFacts(f"{facts_origin(spec)}: {error}")
    return _from_table(spec)


def facts_origin(spec: InferenceServiceSpec) -> str:
    """Return where :func:`resolve_facts` looks."""
    facts = spec.model.facts
    if facts is None:
        return "table of known models"
    return "spec.model.facts.inline" if facts.inline else f"spec.model.facts.configMapName ({facts.config_map_name})"


def _from_config_map(
    spec: InferenceServiceSpec, name: str, references: Sequence[ReferenceView]
) -> ModelFacts | UnknownFacts:
    found = next((it for it in references if it.kind == "ConfigMap" and it.name == name), None)
    if found is None or found.data is None:
        missing = found is not None and found.exists is False
        cause = "does not exist" if missing else (found and found.problem) or "was not read"
        return UnknownFacts(f"the ConfigMap {name} {cause}; it shall hold the model's config.json")
    if CONFIG_KEY not in found.data:
        return UnknownFacts(f"the ConfigMap {name} has no key {CONFIG_KEY}")
    # The index is of the 16-bit checkpoint, and says nothing of the size of a GGUF file.
    index = None if spec.model.source.endswith(".gguf") else found.data.get(INDEX_KEY)
    config = parse_json_object(found.data[CONFIG_KEY], CONFIG_KEY)
    return facts_from_config(config, parse_json_object(index, INDEX_KEY, MAX_INDEX_BYTES) if index else None)


def _from_table(spec: InferenceServiceSpec) -> ModelFacts | UnknownFacts:
    source = model_source(spec.model.source)
    if not isinstance(source, HubSource):
        return UnknownFacts("the model lies on a volume, whose files are not read; describe it in spec.model.facts")
    known = known_model(source.repository)
    return known or UnknownFacts(
        f"{source.repository} is not in the table of known models; describe it in spec.model.facts"
    )


# ---- the device ----------------------------------------------------------------------------------------------------
def resolve_device(spec: InferenceServiceSpec, nodes: Sequence[NodeView]) -> Device | UnknownDevice | None:
    """Return the GPU of a replica; None where the engine computes on the CPU.

    Its memory comes from ``spec.accelerator.memory``, else from the label of the nodes that have the product, else from
    the table; the least of all GPUs on which a pod may land counts.
    """
    accelerator = spec.accelerator
    if accelerator is None:
        return None
    products = accelerator.products or ()
    matching = [node for node in nodes if _has_product(node, products)]
    capability = _least_capability(matching, products)
    landing = landing_of(spec, nodes)
    known = min(_memories(matching, products), key=lambda found: found[:2], default=None)
    if accelerator.memory is not None:
        device = Device(memory_bytes(accelerator.memory), STATED_MEMORY, known and known[2], capability, landing)
        return replace(device, observed_bytes=known[0], observed_origin=known[1]) if known else device
    if known is None:
        return UnknownDevice(_why_unknown(products), capability, landing)
    return Device(known[0], known[1], known[2], capability, landing)


def _has_product(node: NodeView, products: Sequence[str]) -> bool:
    product = node.labels.get(PRODUCT_LABEL)
    if products:
        return product in products
    return product is not None or node.allocatable.get(GPU_RESOURCE, 0) > 0


def _memories(nodes: Iterable[NodeView], products: Sequence[str]) -> Iterable[tuple[int, str, str | None]]:
    """(bytes, origin, product) of every GPU that is known: by its node's label, and by the table where no node is."""
    labelled: set[str] = set()
    unlabelled = set(products)
    for node in nodes:
        product = node.labels.get(PRODUCT_LABEL, "")
        if mib := _number(node.labels, MEMORY_LABEL):
            labelled.add(product)
            yield mib * MIB, f"label {MEMORY_LABEL} of node {node.name}", product or None
        else:
            unlabelled.add(product)
    for product in sorted(unlabelled - labelled):
        if gpu := known_gpu(product):
            yield gpu.memory_mib * MIB, f"table of known GPUs ({product})", product


def _least_capability(nodes: Iterable[NodeView], products: Sequence[str]) -> Capability | None:
    found = [pair for node in nodes if (pair := _capability(node.labels))]
    return min(found + [gpu.capability for product in products if (gpu := known_gpu(product))], default=None)


def _capability(labels: Mapping[str, str]) -> Capability | None:
    if major := _number(labels, _CAPABILITY_LABELS[0]):
        return major, _number(labels, _CAPABILITY_LABELS[1]) or 0
    gpu = known_gpu(labels.get(PRODUCT_LABEL, ""))
    return gpu.capability if gpu else None


def _number(labels: Mapping[str, str], key: str) -> int | None:
    text = labels.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 and int(text) <= _MAX_LABEL_MIB else None


def _why_unknown(products: Sequence[str]) -> str:
    if products:
        names = ", ".join(products)
        remedy = f"set spec.accelerator.memory, or write spec.accelerator.products as the label {PRODUCT_LABEL} has it"
        return f"no node has the label {MEMORY_LABEL} for {names}, and the table does not know it; {remedy}"
    return f"no node has the label {MEMORY_LABEL}; set spec.accelerator.memory or spec.accelerator.products"
