"""How the commands speak: manifests as YAML, faults as lines."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from stoker.api.faults import Fault


class _Dumper(yaml.CSafeDumper):
    """Writes equal values out each time: an alias reads badly, and some tools refuse it."""

    def ignore_aliases(self, data: object) -> bool:
        """Return that no value becomes an alias."""
        return True


def to_yaml(documents: Iterable[Mapping[str, Any]]) -> str:
    """Return objects as a YAML stream, in the order of their keys, a ``---`` before each."""
    return yaml.dump_all(
        documents, Dumper=_Dumper, explicit_start=True, sort_keys=False, allow_unicode=True, width=1 << 20
    )


def print_faults(file: str, faults: Sequence[Fault]) -> None:
    """Print one line per fault to standard error: ``FILE: spec.path: what is wrong; what would be right``."""
    for fault in faults:
        where = fault.path or "document"
        print(one_line(f"{file or '(no name)'}: {where}: {fault.problem}; {fault.remedy}"), file=sys.stderr)


def one_line(text: str) -> str:
    """Return text that a terminal shows as one line: control characters are written out (N20)."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
