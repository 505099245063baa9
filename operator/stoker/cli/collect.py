"""Reading all inputs of a command before it says anything, so that every fault is told at once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from stoker.api.faults import Fault
from stoker.api.model import ModelFacts
from stoker.cli.documents import UnusableError
from stoker.cli.inputs import ServiceFile, read_model_config, read_nodes, read_service
from stoker.cli.output import print_faults
from stoker.plan.snapshot import NodeView, ReferenceView, Snapshot
from stoker.reconcile.planning import Plan, make_plan

Result = TypeVar("Result")

NO_CLOCK = "1970-01-01T00:00:00Z"
"""Rendering and planning read no clock; a snapshot has to name a time."""


@dataclass(slots=True)
class Collector:
    """Remembers faults by file, in the order in which they were found."""

    faults: list[tuple[str, Sequence[Fault]]] = field(default_factory=list)

    def read(self, reader: Callable[[str], Result], file: str) -> Result | None:
        """Return what ``reader`` makes of ``file``; None where it cannot be used."""
        try:
            return reader(file)
        except UnusableError as error:
            self.add(file, error.faults)
            return None

    def add(self, file: str, faults: Sequence[Fault]) -> None:
        """Remember the faults of a file."""
        if faults:
            self.faults.append((file, faults))

    def report(self) -> bool:
        """Print all faults to standard error; return whether there were any."""
        for file, faults in self.faults:
            print_faults(file, faults)
        return bool(self.faults)


@dataclass(frozen=True, slots=True)
class Case:
    """One InferenceService of the command line, planned."""

    source: ServiceFile
    snapshot: Snapshot
    plan: Plan


def collect(files: Sequence[str], model_config: str | None, nodes: str | None, collector: Collector) -> list[Case]:
    """Return a case for each file that can be used; the others leave faults with the collector."""
    if [*files, model_config, nodes].count("-") > 1:
        fault = Fault("file", "standard input can be read once only", "name a file for the others")
        collector.add("-", [fault])
        return []
    config = collector.read(read_model_config, model_config) if model_config is not None else None
    known = (collector.read(read_nodes, nodes) if nodes is not None else None) or ()
    services = [collector.read(read_service, file) for file in files]
    if collector.faults:
        return []
    return [_case(service, known, config) for service in services if service is not None]


def _case(source: ServiceFile, nodes: Sequence[NodeView], config: ReferenceView | None) -> Case:
    spec = source.service.spec
    snapshot = Snapshot(service=source.raw, now=NO_CLOCK, nodes=tuple(nodes), references=(config,) if config else ())
    if config is None:
        return Case(source, snapshot, make_plan(spec, snapshot))
    # The given config.json stands for what spec.model.facts names: the planned spec names it, the stored one does not.
    facts = ModelFacts.model_construct(config_map_name=config.name)
    named = spec.model_copy(update={"model": spec.model.model_copy(update={"facts": facts})})
    return Case(source, snapshot, make_plan(named, snapshot))
