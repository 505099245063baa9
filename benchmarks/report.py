"""The table of a run, on the screen and in ``docs/performance.md``."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from benchmarks.apply_fleet import Measured

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
RATIO_GOAL = 1.5
IDLE_SECONDS = 60.0


def rows(measured: Measured) -> Iterator[tuple[str, str, str]]:
    """Yield what was measured, its value and its goal."""
    count = measured.services
    children = measured.children / count
    writes = sum(measured.writes.values()) / count
    budget = 150 + 20 * count / 1000
    idle = measured.idle_cpu_seconds / IDLE_SECONDS * 100
    allowed = max(1.0, count / 1000)
    yield "bare client, all bodies written (s)", f"{measured.bare_seconds:.1f}", ""
    yield "operator, all children and first status (s)", f"{measured.operator_seconds:.1f}", ""
    yield "ratio", f"{measured.operator_seconds / measured.bare_seconds:.2f}", f"<= {RATIO_GOAL}"
    yield "operator, all Ready (s)", f"{measured.ready_seconds:.1f}", ""
    yield "children a service, revision included", f"{children:.1f}", ""
    yield "writes a service", f"{writes:.2f}", f"<= {children + 2:.0f}"
    statuses = measured.writes.get("update inferenceservices/status", 0)
    yield "of these, of the status", f"{statuses / count:.2f}", ""
    yield "writes while idle for 60 s", str(measured.idle_writes), "0"
    yield "CPU seconds a service, operator", f"{measured.cpu_seconds / count:.3f}", ""
    yield "CPU seconds a service, bare client", f"{measured.bare_cpu_seconds / count:.3f}", ""
    yield "CPU while idle, % of a core", f"{idle:.2f}", f"< {allowed:.0f}"
    yield "a change to one service, until its Deployment is written (ms)", f"{measured.change_seconds * 1000:.0f}", ""
    yield "the same writes by the bare client (ms)", f"{measured.bare_change_seconds * 1000:.0f}", ""
    yield "writes of a new process that takes over", str(measured.restart_writes), "0"
    yield "lists of it, of the kind that it listed most", str(measured.restart_lists), "1"
    yield "resident memory at start (MB)", f"{measured.resident_before_bytes / 1e6:.0f}", ""
    yield "resident memory (MB)", f"{measured.resident_bytes / 1e6:.0f}", f"<= {budget:.0f}"


def publish(results: Sequence[Measured]) -> None:
    """Print the table, and write it into the page."""
    columns = [list(rows(result)) for result in results]
    table = Table("", *(f"N = {result.services}" for result in results), "goal")
    lines = [
        f"| | {' | '.join(f'N = {result.services}' for result in results)} | goal |",
        "|---" * (len(results) + 2) + "|",
    ]
    for cells in zip(*columns, strict=True):
        values = [cell[1] for cell in cells]
        table.add_row(cells[0][0], *values, cells[-1][2])
        lines.append(f"| {cells[0][0]} | {' | '.join(values)} | {cells[-1][2]} |")
    Console().print(table)
    stamp = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, Python {platform.python_version()}"
    replace(
        "apply_fleet",
        "\n".join([f"Measured {stamp} on {machine}; API server, controllers and kwok share the cores.", "", *lines]),
    )


def replace(part: str, text: str) -> None:
    """Put a text between the marks of one part of the page."""
    begin, end = f"<!-- {part}: begin -->", f"<!-- {part}: end -->"
    before, rest = PAGE.read_text(encoding="utf-8").split(begin, 1)
    after = rest.split(end, 1)[1]
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")
