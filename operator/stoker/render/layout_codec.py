"""A Layout as JSON, as revisions keep it: decimals as strings, no floats."""

from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from stoker.plan.types import Layout


@cache
def _adapter() -> TypeAdapter[Layout]:
    return TypeAdapter(Layout)


def layout_to_json(layout: Layout) -> dict[str, Any]:
    """Return a layout as JSON."""
    content: dict[str, Any] = _adapter().dump_python(layout, mode="json")
    return content


def layout_from_json(content: object) -> Layout | None:
    """Return a layout that ``layout_to_json`` wrote; None where another version wrote it in other words.

    A layout that cannot be read costs figures in the status; the pods come from the stored template alone.
    """
    try:
        return _adapter().validate_python(content)
    except ValidationError:
        return None
