"""Whether an idle engine still answers: one request of a single token.

Some engines answer their health path and their metrics page in another process than the one that computes. Where that
one stops while nothing runs, no counter stands still that should move, and users are the first to notice. So the agent
asks, once the engine has shown no sign of work for a minute. That costs one step of the engine in a minute of
idleness, well under a thousandth of a GPU's time. The prompt is shorter than a block of the prefix cache and leaves
nothing there. The requests are part of the engine's counters, and `stoker_engine_idle_checks_total` counts them.
Nothing is asked while requests run, nor from the beginning of a drain.

Silence counts after the longest prefill, and only where no counter has moved since: other requests may have come first.
Engines whose metrics page comes from the process that computes are not asked: a page that answers says as much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from stoker.agent.engine import CALL_ERRORS
from stoker.agent.state import Question
from stoker.agent.warmup import CHAT_PATH, COMPLETION_PATH, NO_CHAT, Poster

PROMPT: Final = "1"


async def ask(client: Poster, model: str, limit_seconds: float, clock: Callable[[], float]) -> Question:
    """Ask for one token. Any answer will do, a refusal too. Never raises but when cancelled."""
    asked_at = clock()
    try:
        await _ask(client, model, limit_seconds)
    except TimeoutError:
        return Question(asked_at, silent=True)
    except CALL_ERRORS:  # the port refuses or breaks off: the health path tells more of that
        return Question(asked_at, silent=False)
    return Question(asked_at, silent=False)


async def _ask(client: Poster, model: str, limit_seconds: float) -> None:
    """A completion; a chat where the engine has no such path, since that answer came from its front."""
    common = {"model": model, "max_tokens": 1, "temperature": 0}
    answer = await client.post(COMPLETION_PATH, {**common, "prompt": PROMPT}, limit_seconds)
    if answer.status in NO_CHAT:
        await client.post(CHAT_PATH, {**common, "messages": [{"role": "user", "content": PROMPT}]}, limit_seconds)
