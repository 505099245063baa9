"""``stoker render``."""

import sys
from collections.abc import Sequence
from typing import Any

from stoker.cli.collect import Case, Collector, collect
from stoker.cli.output import to_yaml
from stoker.reconcile.first_apply import first_apply
from stoker.reconcile.settings import Settings
from stoker.render.revision import RevisionTooLargeError


def render_files(files: Sequence[str], model_config: str | None, nodes: str | None) -> int:
    """Print the children of every service; nothing where any input has a fault. Return the exit code."""
    collector = Collector()
    rendered = [
        child for case in collect(files, model_config, nodes, collector) for child in _children(case, collector)
    ]
    if collector.report():
        return 1
    sys.stdout.write(to_yaml(rendered))
    return 0


def _children(case: Case, collector: Collector) -> list[dict[str, Any]]:
    if case.plan.faults:
        collector.add(case.source.file, case.plan.faults)
        return []
    try:
        return first_apply(case.plan, case.snapshot, Settings())
    except RevisionTooLargeError as error:
        collector.add(case.source.file, [error.fault])
        return []
