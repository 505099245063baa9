"""Documents of Kubernetes, read and written fast: PyYAML's own parser takes ten seconds for a CRD of a megabyte."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import yaml


def load(text: str) -> Any:  # noqa: ANN401 - whatever stands there
    """Read one YAML document by libyaml. Raises yaml.YAMLError."""
    return yaml.load(text, Loader=yaml.CSafeLoader)


def load_all(text: str) -> list[Any]:
    """Read all YAML documents by libyaml, empty ones left out. Raises yaml.YAMLError."""
    return [document for document in yaml.load_all(text, Loader=yaml.CSafeLoader) if document]


def stream(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return documents one after the other as kubectl reads them from its standard input: as JSON."""
    return "\n".join(json.dumps(document) for document in documents)
