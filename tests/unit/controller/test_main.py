"""The start of the operator, where the API server is not ready yet."""

from __future__ import annotations

from typing import Any, cast

import pytest

from stoker.controller import main
from stoker.kube.client import Client
from stoker.kube.errors import Unavailable
from stoker.kube.resources import NODE


class Late:
    """The client of an API server that answers at the third try."""

    def __init__(self) -> None:
        self.tries = 0

    async def create(self, *_: object) -> dict[str, Any]:
        self.tries += 1
        if self.tries < 3:
            raise Unavailable("no answer within 10 s")
        return {"status": {"allowed": True}}


async def test_an_api_server_that_does_not_answer_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main, "WAIT_SECONDS", 0.0)
    late = Late()
    assert await main._may_watch(cast(Client, late), NODE)
    assert late.tries == 4
