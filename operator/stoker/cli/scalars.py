"""YAML's plain scalars as Kubernetes reads them: YAML 1.1 without what its parser never had.

``12:30`` is a string to Kubernetes and a number of minutes to PyYAML, ``1e3`` is a number there and a string here.
Source: resolve.go of sigs.k8s.io/yaml.
"""

import re
from collections.abc import Callable
from typing import Any, Final

import yaml

_INTEGER: Final = re.compile(r"^[-+]?(?:0[bB][01_]+|0[oO][0-7_]+|0[xX][0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$")
_FLOAT: Final = re.compile(
    r"^(?:[-+]?(?:\.[0-9]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9][0-9_]*)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_TAG: Final = "tag:yaml.org,2002:"
_NULLS: Final = ("", "~", "null", "Null", "NULL")
_REPLACED: Final = {f"{_TAG}{name}" for name in ("timestamp", "value", "int", "float")}


class Loader(yaml.CSafeLoader):
    """The safe loader with the scalars of Kubernetes. Time stamps and ``=`` are strings."""


def _integer(loader: Loader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node)).replace("_", "").lower()
    digits = text.lstrip("+-")
    is_octal = len(digits) > 1 and digits.isdigit() and digits.startswith("0")
    return int(digits, 8 if is_octal else 0) * (-1 if text.startswith("-") else 1)


def _number(loader: Loader, node: yaml.ScalarNode) -> float:
    """PyYAML would read ``1:30`` as minutes here too."""
    is_float = _FLOAT.match(str(loader.construct_scalar(node)))
    return float(loader.construct_yaml_float(node)) if is_float else float(_integer(loader, node))


def _null(loader: Loader, node: yaml.ScalarNode) -> None:
    if loader.construct_scalar(node) not in _NULLS:
        raise ValueError


def _read(construct: Callable[[Loader, Any], object], what: str) -> Callable[[Loader, yaml.Node], object]:
    """Read a scalar under a tag. PyYAML takes any text under it, and fails in its own ways where it is another one."""

    def read(loader: Loader, node: yaml.Node) -> object:
        if not isinstance(node, yaml.ScalarNode):  # PyYAML looks for one in an object, under the key "="
            problem = "expected a scalar, but found a list or an object"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        try:
            return construct(loader, node)
        except (ValueError, LookupError, AttributeError):
            problem = f"{str(node.value)[:40]!r} is no {what}"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from None

    return read


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _REPLACED]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(f"{_TAG}int", _INTEGER, list("-+0123456789"))
Loader.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-+0123456789."))
Loader.add_constructor(f"{_TAG}int", _read(_integer, "integer that can be read"))
Loader.add_constructor(f"{_TAG}float", _read(_number, "number"))
Loader.add_constructor(f"{_TAG}bool", _read(Loader.construct_yaml_bool, "true or false"))
Loader.add_constructor(f"{_TAG}null", _read(_null, "null"))
Loader.add_constructor(f"{_TAG}timestamp", _read(Loader.construct_yaml_timestamp, "time stamp"))
