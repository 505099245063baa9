"""What the commands work on: InferenceServices, the model's config.json and nodes, each from a file."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from stoker.api.faults import Fault, join
from stoker.api.inferenceservice import KIND, InferenceService
from stoker.api.parse import MAX_FAULTS, parse_inference_service
from stoker.api.types import LABEL_PATTERN, SUBDOMAIN_PATTERN
from stoker.cli.documents import MEBIBYTE, UnusableError, read_text, yaml_documents
from stoker.facts.config import facts_from_config
from stoker.facts.model import FactsError, FactsProblem
from stoker.facts.reading import parse_json_object
from stoker.kube.quantities import is_quantity, quantity
from stoker.kube.views import node_view
from stoker.plan.inputs import CONFIG_KEY
from stoker.plan.snapshot import NodeView, ReferenceView

SERVICE_LIMIT: Final = 3 * MEBIBYTE
"""Largest object that an API server takes."""
NODES_LIMIT: Final = 64 * MEBIBYTE
CONFIG_LIMIT: Final = 4 * MEBIBYTE
OTHER_CONFIG: Final = "give the config.json of the model's repository, or describe it in spec.model.facts.inline"
OTHER_KIND: Final = (
    "leave out --model-config and describe the model in spec.model.facts.inline, or serve a model of another kind"
)
MODEL_CONFIG: Final = "--model-config"
FACTS_FIELD: Final = "spec.model.facts.configMapName"


@dataclass(frozen=True, slots=True)
class ServiceFile:
    """An InferenceService and the file that it was read from; ``raw`` is the object as the file has it."""

    file: str
    raw: Mapping[str, Any]
    service: InferenceService


def read_service(file: str) -> ServiceFile:
    """Return the one InferenceService of a file. Raises ``UnusableError`` with every fault that it has."""
    documents = yaml_documents(read_text(file, SERVICE_LIMIT))
    if len(documents) != 1:
        raise UnusableError(_wrong_count(len(documents)))
    raw = documents[0]
    if not isinstance(raw, Mapping):
        raise UnusableError(Fault("document", "is no object", f"write an {KIND}"))
    if raw.get("kind") != KIND:
        raise UnusableError(Fault("kind", f"is {_shown(raw.get('kind'))}", f"give a file with one {KIND}"))
    parsed = parse_inference_service(raw)
    faults = [*(parsed if isinstance(parsed, list) else ()), *_metadata_faults(raw.get("metadata"))]
    if faults or isinstance(parsed, list):
        raise UnusableError(*faults)
    return ServiceFile(file, raw, parsed)


def read_model_config(file: str) -> ReferenceView:
    """Return the config.json of a model as if a ConfigMap of the cluster held it. Raises ``UnusableError``."""
    text = read_text(file, CONFIG_LIMIT)
    try:
        facts_from_config(parse_json_object(text, CONFIG_KEY))
    except FactsError as error:
        raise UnusableError(*map(_config_fault, error.problems)) from None
    return ReferenceView("ConfigMap", MODEL_CONFIG, FACTS_FIELD, exists=True, data={CONFIG_KEY: text})


def _config_fault(found: FactsProblem) -> Fault:
    """Return the fault of a config.json: a field without a remedy is right, and of a model that nobody plans here."""
    return Fault(found.key or "document", found.problem, found.remedy or (OTHER_KIND if found.key else OTHER_CONFIG))


def read_nodes(file: str) -> tuple[NodeView, ...]:
    """Return the nodes of a file, as ``kubectl get nodes -o yaml`` writes it. Raises ``UnusableError``."""
    documents = yaml_documents(read_text(file, NODES_LIMIT))
    nodes = [node for number, document in enumerate(documents, 1) for node in _nodes(document, number)]
    if not nodes:
        remedy = "write it with: kubectl get nodes -o yaml"
        raise UnusableError(Fault("document", "holds no node", remedy))
    counts = Counter(node["metadata"]["name"] for node in nodes)
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise UnusableError(Fault("document", f"the node {_shown(twice[0])} stands there twice", "keep one of the two"))
    return tuple(node_view(node) for node in nodes)


def _nodes(document: object, number: int) -> Iterator[Mapping[str, Any]]:
    path = "" if number == 1 else f"document {number}"
    kind = document.get("kind") if isinstance(document, Mapping) else None
    if isinstance(document, Mapping) and kind in ("List", "NodeList"):
        items = document.get("items")
        if not isinstance(items, list):
            raise UnusableError(Fault(join(path, "items"), "is no list", "write it with: kubectl get nodes -o yaml"))
        for index, item in enumerate(items):
            yield _node(item, join(path, "items", index))
    else:
        yield _node(document, path or "document")


def _node(document: object, path: str) -> Mapping[str, Any]:
    if not isinstance(document, Mapping) or document.get("kind", "Node") != "Node":
        raise UnusableError(Fault(path, "is no Node", "write the file with: kubectl get nodes -o yaml"))
    for steps, is_right in _NODE_SHAPE:
        value: object = document
        for step in steps:
            value = value.get(step) if isinstance(value, Mapping) else None
        if not is_right(value):
            where = join("" if path == "document" else path, *steps)
            raise UnusableError(Fault(where, "is not what a Node has there", "write it as kubectl does"))
    faults = list(_amount_faults(document, "" if path == "document" else path))
    if faults:
        raise UnusableError(*faults[:MAX_FAULTS])
    return document


def _amount_faults(node: Mapping[str, Any], path: str) -> Iterator[Fault]:
    """Yield what is wrong with the amounts that a node offers, as the API server judges them."""
    for name, value in ((node.get("status") or {}).get("allocatable") or {}).items():
        if value is not None and (found := _amount_problem(name, value)):
            yield Fault(join(path, "status", "allocatable", name), *found)


def _amount_problem(name: str, value: object) -> tuple[str, str] | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not is_quantity(str(value)):
        return f"{_shown(value)} is no quantity", "write one such as 8, 3920m, 64Gi or 1e9"
    amount = quantity(str(value))
    if amount < 0:
        return f"{_shown(value)} is less than nothing", "write 0 or more"
    # Of what vendors name there are whole ones only (IsExtendedResourceName of Kubernetes).
    if "/" in name and "kubernetes.io/" not in name and amount != int(amount):
        return f"{_shown(value)} is no whole number", "write how many there are, such as 8"
    return None


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= 253 and re.fullmatch(SUBDOMAIN_PATTERN, value) is not None


def _is_flag(value: object) -> bool:
    return value is None or isinstance(value, bool)


def _is_texts(value: object) -> bool:
    return value is None or (isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values()))


def _is_object(value: object) -> bool:
    return value is None or isinstance(value, Mapping)


def _is_taints(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(_has_texts(item, "key", "effect") for item in value))


def _is_conditions(value: object) -> bool:
    texts = ("type", "status")
    return value is None or (
        isinstance(value, list)
        and all(isinstance(i, Mapping) and all(isinstance(i.get(text), str) for text in texts) for i in value)
    )


def _has_texts(value: object, *names: str) -> bool:
    return isinstance(value, Mapping) and _is_texts(value) and all(value.get(name) for name in names)


_NODE_SHAPE: Final[tuple[tuple[tuple[str, ...], Callable[[object], bool]], ...]] = (
    (("metadata",), _is_object),
    (("metadata", "name"), _is_name),
    (("metadata", "labels"), _is_texts),
    (("spec",), _is_object),
    (("spec", "taints"), _is_taints),
    (("spec", "unschedulable"), _is_flag),
    (("status",), _is_object),
    (("status", "allocatable"), _is_object),
    (("status", "conditions"), _is_conditions),
)
"""What is read of a node, and the check that it must pass; all but the name may be absent."""


def _wrong_count(count: int) -> Fault:
    if count == 0:
        return Fault("document", "is empty", f"write an {KIND}")
    return Fault("document", f"the file holds {count} documents", f"give each {KIND} a file and a -f of its own")


def _metadata_faults(metadata: object) -> Iterator[Fault]:
    """Names are checked by the API server, and there is none here."""
    if not isinstance(metadata, Mapping):
        return
    name, namespace = metadata.get("name"), metadata.get("namespace")
    if isinstance(name, str) and not _is_name(name):
        remedy = "write at most 253 lower-case letters, digits, - and ., with a letter or digit at both ends"
        yield Fault("metadata.name", f"{_shown(name)} is no name of an object", remedy)
    if isinstance(namespace, str) and (len(namespace) > 63 or not re.fullmatch(LABEL_PATTERN, namespace)):
        remedy = "write at most 63 lower-case letters, digits and -, with a letter or digit at both ends"
        yield Fault("metadata.namespace", f"{_shown(namespace)} is no name of a namespace", remedy)


def _shown(value: object) -> str:
    return "missing" if value is None else repr(value if isinstance(value, str) else str(value))[:80]
