"""Numbers as Kubernetes quantities, in the form in which the API server stores them."""

_BINARY = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))


def bytes_quantity(count: int) -> str:
    """Return bytes as a quantity: the largest binary unit that divides them (``2**36`` -> ``64Gi``)."""
    for unit, size in _BINARY:
        if count and count % size == 0:
            return f"{count // size}{unit}"
    return str(count)


def cpu_quantity(millicores: int) -> str:
    """Return thousandths of a core as a quantity (``8000`` -> ``8``, ``500`` -> ``500m``)."""
    return str(millicores // 1000) if millicores % 1000 == 0 else f"{millicores}m"
