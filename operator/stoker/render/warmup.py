"""The warm-up of a new pod: what the agent sends, and whether it can be answered at all."""

from collections.abc import Iterator

from stoker.agent.config import BUILT_IN_PROMPTS, WarmupConfig
from stoker.api.faults import Fault, join
from stoker.api.inferenceservice import InferenceServiceSpec

REASON = "WarmupTooLong"


def warmup_config(spec: InferenceServiceSpec) -> WarmupConfig:
    """Return what the agent is told to send."""
    prompts = (spec.warmup.prompts if spec.warmup else None) or ()
    requests = spec.warmup.requests if spec.warmup else None
    return WarmupConfig(requests=requests if requests is not None else max(1, len(prompts)), prompts=prompts)


def warmup_faults(spec: InferenceServiceSpec, max_length: int | None) -> Iterator[Fault]:
    """Yield a fault for each prompt that sequences of ``max_length`` tokens cannot hold: its pods would never be ready.

    Only what is certain is refused: without the model's tokenizer no more is known than that a word takes a token or
    more. A longer prompt that passes here is refused by the engine, and the agent's reason says so.
    """
    config = warmup_config(spec)
    prompts = (config.prompts or BUILT_IN_PROMPTS)[: config.requests]
    for index, prompt in enumerate(prompts if max_length is not None else ()):
        least = len(prompt.split()) + config.max_tokens
        if max_length is not None and least > max_length:
            yield _fault(index if config.prompts else None, least, max_length)


def _fault(index: int | None, least: int, max_length: int) -> Fault:
    """Return the fault of a prompt of the spec, or of a built-in one (no index)."""
    problem = f"with its answer it takes {least} tokens or more, and sequences are limited to {max_length}"
    raised = f"raise spec.context.maxLength to {least} at least"
    if index is not None:
        return Fault(join("spec.warmup.prompts", index), problem, f"shorten it, or {raised}", REASON)
    remedy = f"{raised}, or set spec.warmup.requests to 0"
    return Fault(
        "spec.context.maxLength", f"the built-in prompt of the warm-up does not fit: {problem}", remedy, REASON
    )
