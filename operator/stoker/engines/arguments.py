"""What a list of arguments says, whatever the spelling, and who owns each of its options.

A reader per engine (``vllm_arguments``, ``llama_arguments``) turns the items of ``engine.args`` into arguments: the
options that an item may mean, the values that follow it. An owner says why an option is not the user's, and what to
write instead. Where an item may mean several options, one owned option is enough to refuse it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache

from stoker.api.faults import Fault, join
from stoker.api.inferenceservice import InferenceServiceSpec
from stoker.engines.options import OptionTable
from stoker.engines.spans import Span

ARGS_PATH = "spec.engine.args"
ENV_PATH = "spec.pod.env"


@dataclass(frozen=True, slots=True)
class Argument:
    """One option of the list, or one item that is none.

    ``options`` holds the names that the item may mean (of any version, by exact spelling or by abbreviation);
    ``accepted`` says whether the engine's version takes it as it is written, None where that is not known;
    ``keys`` is the dotted path into a JSON value (``cudagraph_mode`` in ``--compilation-config.cudagraph_mode``).
    """

    index: int
    text: str
    options: tuple[str, ...] = ()
    accepted: bool | None = None
    keys: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    problem: str | None = None
    """What is wrong with the item itself: it is no option, or its value is missing."""
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Owner:
    """Why an option is not the user's to set, and what to write instead."""

    problem: str
    remedy: str


def by_field(path: str) -> Owner:
    """Return the owner of an option that a field of the spec sets."""
    return Owner(f"is what {path} sets", f"set {path} and remove it")


STOKER = Owner("is set by Stoker", "remove it")
ACCESS = Owner(
    "is access control of the engine, which leaves most of its paths open; access does not exist yet",
    "remove it, and let only those in who may call (NetworkPolicy, gateway)",
)
CODE = Owner(
    "runs code that is not the image's, which cannot be allowed yet", "remove it, or build the code into the image"
)
LATER = Owner("is not supported yet: the layout over GPUs does not know it", "remove it")
ENDS = Owner("prints something and ends the engine", "remove it")


def owned(arguments: Sequence[Argument], owners: Mapping[str, Owner]) -> Iterator[Fault]:
    """Yield a fault for every argument that may mean an option with an owner."""
    for argument in arguments:
        owner = next((owners[name] for name in argument.options if name in owners), None)
        if owner is not None:
            yield _fault(argument, "OwnedArgument", owner.problem, owner.remedy)


def malformed(arguments: Sequence[Argument]) -> Iterator[Fault]:
    """Yield a fault for every item that is no option and no value of one."""
    for argument in arguments:
        if argument.problem is not None:
            yield _fault(argument, "MalformedArgument", argument.problem, argument.remedy)


def unknown(arguments: Sequence[Argument], table: OptionTable, engine: str) -> Iterator[Fault]:
    """Yield a fault for every option that ``engine`` (its name and version) does not take: it would end with it."""
    for argument in arguments:
        if argument.accepted is False and argument.problem is None:
            problem = f"is no option of {engine}{_elsewhere(argument, table)}"
            yield _fault(argument, "UnknownArgument", problem, _near(argument, table))


def _elsewhere(argument: Argument, table: OptionTable) -> str:
    option = table.options[argument.options[0]] if argument.options else None
    return f"; {option.name} exists {option.span}" if option and option.span != Span() else ""


def _near(argument: Argument, table: OptionTable) -> str:
    head = argument.text.partition("=")[0]
    near = _nearest(head.replace("_", "-"), tuple(table.by_spelling))
    return f"remove it, or write {near}" if near and near != head else "remove it"


@lru_cache(maxsize=1024)
def _nearest(head: str, spellings: tuple[str, ...]) -> str | None:
    """Return the spelling most like a word. Comparing takes milliseconds, and a faulty spec is looked at often."""
    return next(iter(get_close_matches(head, spellings, n=1, cutoff=0.8)), None)


def _fault(argument: Argument, reason: str, problem: str, remedy: str) -> Fault:
    return Fault(join(ARGS_PATH, argument.index), f"{_shown(argument.text)} {problem}", remedy, reason)


def _shown(text: str) -> str:
    # The value may be a key: only the option itself is repeated.
    head = text.partition("=")[0].split(maxsplit=1)[:1]
    return head[0][:60] if head else '""'


def unwritable(spec: InferenceServiceSpec) -> Iterator[Fault]:
    """Yield a fault for every argument and variable that no program can be started with: a NUL byte ends a word."""
    words = {join(ARGS_PATH, index): text for index, text in enumerate(spec.engine.args or ())}
    variables = enumerate((spec.pod.env if spec.pod else None) or ())
    words |= {join(ENV_PATH, index, "value"): variable.value or "" for index, variable in variables}
    for path, text in words.items():
        if "\0" in text:
            yield Fault(path, "holds a NUL byte, which no program can be given", "remove it", "NulByte")


def owned_variables(
    names: Sequence[str], owners: Mapping[str, Owner], prefixes: Mapping[str, Owner]
) -> Iterator[Fault]:
    """Yield a fault for every variable of ``pod.env`` (by its names, in order) that has an owner."""
    for index, name in enumerate(names):
        owner = owners.get(name) or next((prefixes[start] for start in prefixes if name.startswith(start)), None)
        if owner is not None:
            yield Fault(join(ENV_PATH, index, "name"), f"{name} {owner.problem}", owner.remedy)
