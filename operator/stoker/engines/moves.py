"""Arguments that move memory: what is read of them exactly, and what the layout has to leave open.

An engine has a table of rows. Where a row acts, its argument is named as what the verdict cannot know. The last word of
an option counts, as it does to the engines; an item that may mean several options counts for each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Final

from stoker.api.faults import join
from stoker.engines.arguments import ARGS_PATH, Argument
from stoker.plan.types import UNBOUNDED, Concerns, Uncounted

Values = tuple[str, ...]
GIB: Final = 2**30


def always(_: Values) -> bool:
    """Return that the option acts whatever its value."""
    return True


def above_zero(values: Values) -> bool:
    """Return whether the value is not zero; what is no number is not taken for zero."""
    count = number(values)
    return count is None or count > 0


@dataclass(frozen=True, slots=True)
class Row:
    """What an option does to memory; ``acts`` says with which values."""

    effect: str
    takes: bool = False
    frees_bytes: int = 0
    concerns: Concerns = Concerns.EVERY_MODEL
    acts: Callable[[Values], bool] = always
    gpu_only: bool = False
    """It moves memory between GPU and container: without a GPU it does nothing."""


def takes(effect: str, concerns: Concerns = Concerns.EVERY_MODEL, acts: Callable[[Values], bool] = always) -> Row:
    """Return the row of an option that takes memory."""
    return Row(effect, takes=True, concerns=concerns, acts=acts)


def frees(effect: str, concerns: Concerns = Concerns.EVERY_MODEL, acts: Callable[[Values], bool] = always) -> Row:
    """Return the row of an option that moves memory from the GPU into the container."""
    return Row(effect, frees_bytes=UNBOUNDED, concerns=concerns, acts=acts, gpu_only=True)


def changes(effect: str, concerns: Concerns = Concerns.EVERY_MODEL) -> Row:
    """Return the row of an option after which more or less memory may be needed."""
    return Row(effect, takes=True, frees_bytes=UNBOUNDED, concerns=concerns)


def last_words(arguments: Sequence[Argument], is_off: Callable[[Argument, str], bool]) -> Mapping[str, Argument]:
    """Return each option that is on, with the argument that says so last."""
    found: dict[str, Argument] = {}
    for argument in arguments:
        for option in argument.options:
            if is_off(argument, option):
                found.pop(option, None)
            else:
                found[option] = argument
    return found


def uncounted(given: Mapping[str, Argument], rows: Mapping[str, Row], *, on_gpu: bool) -> Iterator[Uncounted]:
    """Yield what each option of ``given`` with a row does that the layout does not count."""
    for option, argument in given.items():
        row = rows.get(option)
        if row is not None and (on_gpu or not row.gpu_only) and row.acts(argument.values):
            reason = f"{join(ARGS_PATH, argument.index)}: {option} {row.effect}"
            yield Uncounted(reason, row.takes, row.frees_bytes, row.concerns)


def number(values: Values) -> Decimal | None:
    """Return the first value as a number; None where it is none."""
    try:
        found = Decimal(values[0]) if values and len(values[0]) < 20 else None
    except InvalidOperation:
        return None
    return found if found is not None and found.is_finite() and abs(found) < 10**9 else None


def gibibytes(values: Values) -> int:
    """Return a value in GiB as bytes; 0 where it is none."""
    count = number(values)
    return int(count * GIB) if count is not None and count > 0 else 0
