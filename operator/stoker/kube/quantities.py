"""Quantities of Kubernetes, as other components and other people wrote them."""

import re
from decimal import Decimal, DecimalException
from typing import Final

MOST: Final = Decimal(2**63 - 1)
"""The largest amount that Kubernetes itself counts with (``Quantity.Value``)."""
_MOST_DIGITS: Final = 40
"""Powers of ten beyond which a number is taken as the largest one, or as 0, before anything is computed with it."""
_SUFFIXES: Final = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    "u": Decimal("0.000001"),
    "n": Decimal("0.000000001"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", start=1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", start=1)},
}
_GRAMMAR: Final = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[kMGTPE]|[mun]|[eE][-+]?[0-9]{1,9})?")


def is_quantity(text: str) -> bool:
    """Return whether ``text`` is a quantity by the grammar that Kubernetes documents (``resource.Quantity``).

    Its parser takes more, such as a unit alone for 0; a person who writes that means something else.
    """
    return _GRAMMAR.fullmatch(text.strip()) is not None


def quantity(text: object) -> Decimal:
    """Return a quantity as a number; 0 for one that cannot be read (another component's fault, not ours).

    The API server takes exponents of up to 999,999 in anybody's pod, so what is larger than ``MOST`` counts as that.
    """
    value = str(text).strip()
    number = value.rstrip("kKMGTPEimun")
    suffix = _SUFFIXES.get(value[len(number) :])
    try:
        return _bounded(Decimal(value if suffix is None else number), suffix or Decimal(1))
    except DecimalException:
        return Decimal(0)


def _bounded(number: Decimal, unit: Decimal) -> Decimal:
    if not number.is_finite() or number.adjusted() < -_MOST_DIGITS:
        return Decimal(0)
    if number.adjusted() > _MOST_DIGITS:
        return MOST.copy_sign(number)
    return max(-MOST, min(number * unit, MOST))
