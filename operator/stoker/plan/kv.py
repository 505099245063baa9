"""The KV cache of one rank: what a token and a sequence take, and how many of them fit."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from stoker.facts.model import CacheKind, LayerCache
from stoker.plan.stages import Stage
from stoker.plan.weights import ceil_div

LATENT_FP8: Final = "fp8_ds_mla"
"""vLLM's format for latent attention: 8-bit values, a 32-bit scale for each 128 of them, positions in 16 bits."""


@dataclass(frozen=True, slots=True)
class StageCache:
    """What the layers of one stage keep on one rank, in bytes."""

    token_bytes: int
    """Of each token of a sequence."""
    windows: tuple[tuple[int, int], ...]
    """(tokens that stay alive, bytes of one of them) of layers that see a window, by window."""
    state_bytes: int
    """Of a sequence, whatever its length."""
    block_tokens: int
    in_flight_tokens: int
    """Tokens of one step, which a window holds beside the ones that it sees."""

    @property
    def bytes_per_sequence(self) -> int:
        """Bytes that a long sequence holds apart from its tokens: full windows and states."""
        return self.state_bytes + sum(tokens * size for tokens, size in self.windows)

    def sequence_bytes(self, length: int) -> int:
        """Return the bytes of one sequence of ``length`` tokens, as vLLM reserves them: whole blocks, and for a window
        the tokens of the step that is being computed and one block more."""
        size = self.state_bytes + self._padded(length) * self.token_bytes
        for tokens, token_bytes in self.windows:
            held = min(self._padded(tokens - 1 + self.in_flight_tokens) + self.block_tokens, self._padded(length))
            size += held * token_bytes
        return size

    def tokens_in(self, kv_bytes: int, max_length: int | None) -> int:
        """Return how many tokens fit into ``kv_bytes``, in sequences of ``max_length``, or all counted whole."""
        if kv_bytes <= 0:
            return 0
        if max_length is None:
            size = self.token_bytes + sum(token_bytes for _, token_bytes in self.windows)
            return kv_bytes // (max(size, 1) * self.block_tokens) * self.block_tokens
        if not self.windows and not self.state_bytes and self.token_bytes:
            kv_bytes -= kv_bytes % (self.token_bytes * self.block_tokens)
        return kv_bytes * max_length // max(self.sequence_bytes(max_length), 1)

    def _padded(self, tokens: int) -> int:
        return ceil_div(tokens, self.block_tokens) * self.block_tokens


def stage_cache(
    stage: Stage,
    tensor: int,
    dtype: str,
    element_bytes: Fraction,
    block_tokens: int,
    in_flight_tokens: int,
    *,
    whole_windows: bool = False,
) -> StageCache:
    """Return what the layers of ``stage`` keep on one of ``tensor`` ranks, with a KV cache of ``dtype``.

    With ``whole_windows`` the layers that see a window keep the whole sequence, as all others.
    """
    growing, windows, state = Fraction(0), dict[int, Fraction](), 0
    for layer, count in stage.groups:
        cache = layer.cache
        token = count * _token_bytes(cache, tensor, dtype, element_bytes)
        if cache.grows or (cache.is_bounded and whole_windows):
            growing += token
        elif cache.is_bounded:
            windows[cache.window_tokens] = windows.get(cache.window_tokens, Fraction(0)) + token
        state += count * ceil_div(cache.state_bytes, tensor)
    bounded = tuple((tokens, _up(size)) for tokens, size in sorted(windows.items()))
    return StageCache(_up(growing), bounded, state, block_tokens, in_flight_tokens)


def _token_bytes(cache: LayerCache, tensor: int, dtype: str, element_bytes: Fraction) -> Fraction:
    """Bytes that one layer keeps of one token on one rank.

    A rank holds at least one head: with more ranks than heads they are replicated. The single latent of multi-head
    latent attention lies on every rank.
    """
    if cache.kind is CacheKind.LATENT and dtype == LATENT_FP8:
        positional = cache.values_per_head - cache.latent_rank
        return Fraction(cache.latent_rank + 4 * ceil_div(cache.latent_rank, 128) + 2 * positional + cache.index_bytes)
    units = ceil_div(cache.heads, min(tensor, cache.heads)) if cache.heads else 0
    return units * cache.values_per_head * element_bytes + cache.index_bytes


def _up(value: Fraction) -> int:
    return ceil_div(value.numerator, value.denominator)
