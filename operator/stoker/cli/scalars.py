"""YAML's plain scalars as Kubernetes reads them: YAML 1.1 without what its parser never had.

``12:30`` is a string to Kubernetes and a number of minutes to PyYAML, ``1e3`` is a number there and a string here.
Source: resolve.go of sigs.k8s.io/yaml.
"""

import re
from typing import Final

import yaml

_INTEGER: Final = re.compile(r"^[-+]?(?:0[bB][01_]+|0[oO][0-7_]+|0[xX][0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$")
_FLOAT: Final = re.compile(
    r"^(?:[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9][0-9_]*)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_TAG: Final = "tag:yaml.org,2002:"
_REPLACED: Final = {f"{_TAG}{name}" for name in ("timestamp", "value", "int", "float")}


class Loader(yaml.CSafeLoader):
    """The safe loader with the scalars of Kubernetes. Time stamps and ``=`` are strings."""


def _integer(loader: Loader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node)).replace("_", "").lower()
    digits = text.lstrip("+-")
    is_octal = len(digits) > 1 and digits.isdigit() and digits.startswith("0")
    return int(digits, 8 if is_octal else 0) * (-1 if text.startswith("-") else 1)


def _timestamp(loader: Loader, node: yaml.ScalarNode) -> object:
    try:
        return loader.construct_yaml_timestamp(node)
    except AttributeError:  # PyYAML takes any text under this tag for one
        raise ValueError(f"{str(node.value)[:40]!r} is no time stamp") from None


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _REPLACED]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(f"{_TAG}int", _INTEGER, list("-+0123456789"))
Loader.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-+0123456789."))
Loader.add_constructor(f"{_TAG}int", _integer)
Loader.add_constructor(f"{_TAG}timestamp", _timestamp)
