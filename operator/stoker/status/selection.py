"""Nodes that the pod does not want: which field leaves them out, and which label none of them has."""

import re
from collections.abc import Iterator, Mapping

from stoker.plan.landing import PRODUCT_LABEL
from stoker.status.case import Case

MAX_NAMES = 5
"""Most labels or products that a message lists."""

_PRODUCTS, _SELECTOR, _AFFINITY = "spec.accelerator.products", "spec.pod.nodeSelector", "spec.pod.affinity"
_ALL = re.compile(r"\b0/(\d{1,9}) nodes are available: (?:[^\n]{0,2000}, )?(\d{1,9}) node\(s\) didn't match Pod's node")


def left_out(case: Case, said: str) -> str | None:
    """Return which field leaves which nodes out; None where the scheduler says of none that it does."""
    if "node affinity/selector" not in said and "node selector" not in said:
        return None
    return _no_product(case) or _no_label(case, said) or _no_match(case, said)


def _no_product(case: Case) -> str | None:
    """Return that no node has the GPUs that are asked for."""
    products = _products(case)
    known = sorted({node.labels[PRODUCT_LABEL] for node in case.nodes if PRODUCT_LABEL in node.labels})
    if not products or not case.nodes_are_known or set(products) & set(known):
        return None
    offered = ", ".join(known[:MAX_NAMES]) or "none"
    asked = " or ".join(products[:MAX_NAMES])
    return f"no node has {PRODUCT_LABEL} {asked} ({_PRODUCTS}); the nodes have: {offered}"


def _no_label(case: Case, said: str) -> str | None:
    """Return which labels of ``nodeSelector`` no node has.

    A node that has too little of something was looked at after its labels, and so has them; the nodes as they are
    known here lack some labels that no decision reads.
    """
    wanted, products = _selector(case), _products(case)
    if not wanted or not case.nodes_are_known or "Insufficient" in said:
        return None
    nodes = [node.labels for node in case.nodes if not products or node.labels.get(PRODUCT_LABEL) in products]
    if any(wanted.items() <= labels.items() for labels in nodes):
        return None
    missing = [f"{key}={value}" for key, value in sorted(wanted.items()) if all(it.get(key) != value for it in nodes)]
    listed = missing or [f"{key}={value}" for key, value in sorted(wanted.items())]
    who = f"no node of {_PRODUCTS} has" if products else "no node has"
    labels = f"the label{'s' * (len(listed) > 1)} {', '.join(listed[:MAX_NAMES])}"
    return f"{who} {labels}{'' if missing else ' together'} ({_SELECTOR})"


def _no_match(case: Case, said: str) -> str | None:
    """Return the fields that leave nodes out; of products it is known that some node has one."""
    fields = list(_set_fields(case))
    if not fields:
        asked = f"{_PRODUCTS}, {_SELECTOR}, {_AFFINITY}"
        return None if _products(case) else f"no node matches what the pod asks of it ({asked})"
    found = _ALL.search(said)
    if found and found[1] == found[2]:
        return f"no node matches {' and '.join(fields)}"
    return f"nodes that do not match {' and '.join(fields)} are left out"


def _set_fields(case: Case) -> Iterator[str]:
    if _products(case) and not case.nodes_are_known:
        yield _PRODUCTS
    if _selector(case):
        yield _SELECTOR
    if case.spec and case.spec.pod and (case.spec.pod.affinity or {}).get("nodeAffinity"):
        yield _AFFINITY


def _products(case: Case) -> tuple[str, ...]:
    return (case.spec.accelerator.products if case.spec and case.spec.accelerator else None) or ()


def _selector(case: Case) -> Mapping[str, str]:
    return (case.spec.pod.node_selector if case.spec and case.spec.pod else None) or {}
