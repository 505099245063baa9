"""``stoker plan``."""

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stoker.cli.collect import Case, Collector, collect
from stoker.plan.explain import explain_rows, layout_status

WIDTH = 160
"""Columns of a table that goes to no terminal."""


def plan_files(files: Sequence[str], model_config: str | None, nodes: str | None, *, as_json: bool) -> int:
    """Print the plan of every service. A layout that is too small is an answer; a contradiction is a fault.

    Return the exit code.
    """
    collector = Collector()
    cases = collect(files, model_config, nodes, collector)
    for case in cases:
        too_small = [fault for fault in case.plan.faults if fault.reason == "DoesNotFit"]
        collector.add(case.source.file, [fault for fault in case.plan.faults if fault not in too_small])
    if collector.report():
        return 1
    _print_json(cases) if as_json else _print_tables(cases)
    return 0


def _print_json(cases: Sequence[Case]) -> None:
    plans = [_as_json(case) for case in cases]
    json.dump(plans[0] if len(plans) == 1 else {"items": plans}, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")


def _as_json(case: Case) -> dict[str, Any]:
    service = case.source.service
    return {
        "name": service.name,
        "namespace": service.namespace,
        "engine": service.spec.engine.name.value,
        "layout": layout_status(case.plan.layout),
    }


def _print_tables(cases: Sequence[Case]) -> None:
    # Into a file or a pipe lines are as long as they need to be; a cell is folded, never cut off.
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False, markup=False)
    for case in cases:
        service = case.source.service
        table = Table(title=Text(f"{service.namespace}/{service.name}"), title_justify="left")
        for heading in ("what", "value", "how"):
            table.add_column(heading, overflow="fold")
        traits = case.plan.engine.traits(service.spec)
        for row in explain_rows(case.plan.layout, service.spec, traits):
            table.add_row(Text(row.name), Text(row.value), Text(row.how))
        console.print(table)
