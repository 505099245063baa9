"""Engines by name."""

import pytest

from stoker.api.engine import EngineName
from stoker.engines.registry import get_engine


@pytest.mark.parametrize("name", list(EngineName))
def test_every_name_of_the_schema_has_an_engine(name: EngineName) -> None:
    assert get_engine(name).name == name.value


def test_another_name_has_none() -> None:
    with pytest.raises(KeyError):
        get_engine("sglang")
