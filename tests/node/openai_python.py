"""`python -m tests.node.openai_python URL MODEL`: what the official Python client makes of an endpoint, as JSON."""

import json
import sys
from typing import Any

import openai

TOO_LONG = "word " * 6000


def fault(action: Any) -> dict[str, Any]:
    """Do what must fail, and return how the client tells of it."""
    try:
        action()
    except openai.APIStatusError as error:
        return {"name": type(error).__name__, "status": error.status_code, "said": bool(error.message)}
    return {"name": "none"}


def main() -> int:
    """Ask everything and print it."""
    url, model = sys.argv[1:]
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=120)
    question = {"role": "user", "content": "Count from one to one hundred in words."}
    # Without chance, and longer than asked for: so the length of the answer is known.
    ask: dict[str, Any] = {"model": model, "messages": [question], "max_tokens": 8, "temperature": 0}
    chat = client.chat.completions.create(**ask)
    stream = list(client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
    long = {**ask, "messages": [{"role": "user", "content": TOO_LONG}]}
    found = {
        "models": [each.id for each in client.models.list()],
        "chat": {
            "role": chat.choices[0].message.role,
            "hasText": bool(chat.choices[0].message.content),
            "finish": chat.choices[0].finish_reason,
            "tokens": chat.usage and chat.usage.completion_tokens,
        },
        "stream": {
            "severalChunks": sum(bool(chunk.choices and chunk.choices[0].delta.content) for chunk in stream) > 1,
            "finish": [chunk.choices[0].finish_reason for chunk in stream if chunk.choices][-1],
            "tokens": stream[-1].usage and stream[-1].usage.completion_tokens,
        },
        "tooLong": fault(lambda: client.chat.completions.create(**long)),
        "malformed": fault(lambda: client.chat.completions.create(**{**ask, "messages": "hello"})),
        "noSuchPath": fault(client.fine_tuning.jobs.list),
    }
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
