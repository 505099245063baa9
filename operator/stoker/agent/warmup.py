"""The first requests of an incarnation: sent by the agent, so that no user pays for compilation and first touches.

They are real requests through the real API. A model without a chat template answers a chat with 4xx; it is then asked
for a completion.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Protocol

from stoker.agent.config import BUILT_IN_PROMPTS, WarmupConfig
from stoker.agent.engine import CALL_ERRORS, Answer, describe
from stoker.agent.state import Warmup

CHAT_PATH: Final = "/v1/chat/completions"
COMPLETION_PATH: Final = "/v1/completions"
NO_CHAT: Final = frozenset({400, 404, 405, 422, 500, 501})
"""Statuses with which engines answer a chat that the model cannot hold."""


class Poster(Protocol):
    """What warm-up needs of the client."""

    async def post(self, path: str, body: dict[str, Any], limit_seconds: float) -> Answer:
        """Send a JSON request; raises TimeoutError and `CALL_ERRORS`."""
        ...


@dataclass(frozen=True, slots=True)
class WarmupPlan:
    """What to send: `requests` prompts, taken in turn, each limited to `max_tokens` of answer."""

    model: str
    requests: int
    prompts: tuple[str, ...]
    max_tokens: int

    @classmethod
    def of(cls, model: str, config: WarmupConfig) -> WarmupPlan:
        """The plan that a configuration asks for."""
        return cls(model, config.requests, config.prompts or BUILT_IN_PROMPTS, config.max_tokens)

    def prompt(self, index: int) -> str:
        """The prompt of request `index`."""
        return self.prompts[index % len(self.prompts)]


async def warm_up(client: Poster, plan: WarmupPlan, limit_seconds: float) -> Warmup:
    """Send the requests one after the other; each may take `limit_seconds`. Never raises."""
    for index in range(plan.requests):
        try:
            fault = await _ask(client, plan, plan.prompt(index), limit_seconds)
        except TimeoutError:
            detail = f"request {index + 1} of {plan.requests}: no answer within {limit_seconds:.0f} s"
            return Warmup(done=False, unanswered=True, detail=detail)
        except CALL_ERRORS as error:
            fault = describe(error)
        if fault is not None:
            return Warmup(done=False, detail=f"request {index + 1} of {plan.requests}: {fault}")
    return Warmup(done=True, detail=f"{plan.requests} requests were answered")


async def _ask(client: Poster, plan: WarmupPlan, prompt: str, limit_seconds: float) -> str | None:
    """None when the model answered, else what it said instead."""
    common = {"model": plan.model, "max_tokens": plan.max_tokens, "temperature": 0}
    chat = {**common, "messages": [{"role": "user", "content": prompt}]}
    answer = await client.post(CHAT_PATH, chat, limit_seconds)
    if answer.status in NO_CHAT:
        answer = await client.post(COMPLETION_PATH, {**common, "prompt": prompt}, limit_seconds)
    return fault_of(answer)


def fault_of(answer: Answer) -> str | None:
    """What is wrong with an answer to a generation request; None for one with at least one choice."""
    if answer.status != 200:
        return f"HTTP {answer.status}: {answer.body[:200].decode('utf-8', 'replace')}"
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        return "the answer is not JSON"
    choices = document.get("choices") if isinstance(document, dict) else None
    return None if isinstance(choices, list) and choices else "the answer has no choices"
