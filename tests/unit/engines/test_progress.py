"""How long a healthy engine may stay silent."""

from typing import Any

import pytest

from stoker.engines.progress import longest_prefill_seconds
from stoker.engines.vllm import Vllm
from tests.builders.layouts import GIB, a_layout
from tests.builders.specs import SpecBuilder, a_spec


def silence(builder: SpecBuilder, **layout: Any) -> int:
    return Vllm().invocation(builder.build(), a_layout(**layout), "chat").longest_prefill_seconds


def test_the_time_of_the_largest_step() -> None:
    # 2 x 4 x 16 GiB x 16384 tokens / (1 x 20e12 a second) = 112.6 s, after 120 s for a first shape.
    assert silence(a_spec()) == 120 + 113


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({"weight_bytes": None}, 900),
        ({"weight_bytes": 1}, 60),
        ({"weight_bytes": 10**15}, 3600),
    ],
)
def test_bounds(changes: dict[str, Any], seconds: int) -> None:
    assert longest_prefill_seconds(a_layout(**changes), 2048, 0) == seconds


def test_more_devices_never_need_longer() -> None:
    times = [longest_prefill_seconds(a_layout(gpus, weight_bytes=500 * GIB), 16384, 0) for gpus in (1, 2, 4, 8)]
    assert times == sorted(set(times), reverse=True)


def test_more_tokens_a_step_never_take_less() -> None:
    times = [longest_prefill_seconds(a_layout(0), tokens, 0) for tokens in (128, 256, 512, 1024)]
    assert times == sorted(set(times))


def test_without_chunks_a_step_is_a_whole_prompt() -> None:
    whole = a_spec().set("batching.chunkedPrefill", "Disabled").max_length(100_000)
    assert silence(whole, max_length=100_000) > silence(a_spec(), max_length=100_000)
