"""What several alike servers did at the same times, as tables with a row for each server."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.fleet.token_times import TokenPace
from servetop.core.arrays import BoolArray, FloatArray

LEAST_TOKENS = 50
"""Output tokens of each server in the seconds that are compared."""
MORE_PROMPTS = 1.5
"""Prompt tokens relative to those of the others up to which prompts do not explain a longer time per token."""
MORE_PREFILLING = 0.5
"""Requests in prefill, beyond MORE_PROMPTS times those of the others, from which a prompt explains it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PaceTable:
    """Shape (servers, times) each; NaN where a server has too few tokens or is not known."""

    known: BoolArray
    seconds: FloatArray
    """Mean time per output token."""
    decoding: FloatArray
    prefilling: FloatArray
    prompt_tokens: FloatArray

    @classmethod
    def of(cls, paces: Sequence[TokenPace]) -> PaceTable:
        """Put the paces of servers at the same times below each other."""
        known = np.stack([pace.tokens for pace in paces]) >= LEAST_TOKENS
        seconds, decoding, prefilling, prompts = (
            np.where(known, np.stack([getattr(pace, name) for pace in paces]), np.nan)
            for name in ("seconds", "decoding", "prefilling", "prompt_tokens")
        )
        return cls(known=known, seconds=seconds, decoding=decoding, prefilling=prefilling, prompt_tokens=prompts)

    def part(self, times: slice) -> PaceTable:
        """Return some of the times, without a copy."""
        return PaceTable(**{each.name: getattr(self, each.name)[:, times] for each in dataclasses.fields(self)})

    def after(self, before: PaceTable) -> PaceTable:
        """Return the table of the same servers with the times of another one before its own."""
        names = [each.name for each in dataclasses.fields(self)]
        tables = {name: np.concatenate([getattr(before, name), getattr(self, name)], axis=1) for name in names}
        return PaceTable(**tables)

    @property
    def usual_seconds(self) -> FloatArray:
        """The median of the others' time per token for each server, the higher of two."""
        return median_of_others(self.seconds, high=True)

    @property
    def more_prompts(self) -> BoolArray:
        """Whether a server computes more prompts than the others, which explains a longer time per token."""
        more = self.prompt_tokens > MORE_PROMPTS * median_of_others(self.prompt_tokens, high=False)
        usual = median_of_others(self.prefilling, high=False)
        return np.asarray(more | (self.prefilling > MORE_PROMPTS * usual + MORE_PREFILLING))


def median_of_others(values: FloatArray, *, high: bool) -> FloatArray:
    """Return for each server the median of the known values of the others; of two in the middle the higher or lower."""
    order = np.argsort(values, axis=0, kind="stable")
    ranks = np.empty_like(order)
    np.put_along_axis(ranks, order, np.broadcast_to(np.arange(len(values))[:, np.newaxis], values.shape), axis=0)
    others = (~np.isnan(values)).sum(axis=0) - 1
    middle = np.maximum((others if high else others - 1) // 2, 0)
    place = np.minimum(np.where(middle < ranks, middle, middle + 1), len(values) - 1)
    return np.take_along_axis(np.take_along_axis(values, order, axis=0), place, axis=0)
