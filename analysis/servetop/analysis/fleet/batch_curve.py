"""The time per output token that a batch explains, by what the other servers took for batches of the last minute.

Of servers that get requests at the same rate a slow one has a larger batch, because its requests stay longer. Its batch
alone does not tell whether it is slow; how the others' times vary with their batches does. A line through them by least
squares, with its slope _ERRORS standard errors steeper, is the longest time for a batch, though never more than
in proportion to the batch.
"""

from __future__ import annotations

import numpy as np

from servetop.analysis.fleet.pace_table import MORE_PREFILLING, PaceTable, median_of_others
from servetop.core.arrays import BoolArray, FloatArray

REMEMBERED = 60
"""Readings of the others that are compared, one a second."""
_ERRORS = 3.0
_SHARED = 3
"""Neighbouring readings that have seconds in common, and count as one."""
_MORE_TOKENS = 1.25
"""Tokens per second relative to the median of the others up to which a load is like theirs."""


def slower_than_batch(table: PaceTable, factor: float) -> BoolArray:
    """Whether a server takes `factor` times as long for a token as its batch explains, at each time.

    Its load has to be one that others had in the last REMEMBERED readings: no more tokens a second, and where it
    computes more prompts than they do now, no more than they did then, with a time per token `factor` times their
    longest.
    """
    seconds, rates = table.seconds, table.decoding / table.seconds
    usual = median_of_others(rates, high=False)
    alike = rates <= np.maximum(_highest_of_others(rates), _MORE_TOKENS * usual)
    prompts = table.prompt_tokens <= _highest_of_others(table.prompt_tokens)
    prompts &= table.prefilling <= _highest_of_others(table.prefilling) + MORE_PREFILLING
    prompts &= seconds >= factor * _highest_of_others(seconds)
    longest = np.maximum(table.usual_seconds, explained_seconds(table))
    return np.asarray(table.known & alike & (~table.more_prompts | prompts) & (seconds >= factor * longest))


def explained_seconds(table: PaceTable) -> FloatArray:
    """Return the longest time per token that the batch of each server explains; NaN without readings of others."""
    count, batch, time, batch_squares, products, time_squares = _sums_of_others(table)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_batch, mean_time = batch / count, time / count
        spread = batch_squares / count - mean_batch**2
        together = products / count - mean_batch * mean_time
        slope = together / spread
        rest = np.maximum(time_squares / count - mean_time**2 - slope * together, 0.0)
        error = np.sqrt(rest / spread / (count / _SHARED - 2))
        proportional = mean_time / mean_batch
        steepest = np.clip(slope + _ERRORS * error, 0.0, proportional)
        known = (count > 2 * _SHARED) & (spread > 0) & ~np.isnan(steepest)
        steepest = np.where(known, steepest, proportional)
        return np.asarray(mean_time + steepest * np.maximum(table.decoding - mean_batch, 0.0))


def _sums_of_others(table: PaceTable) -> FloatArray:
    """Return sums over the others' last readings of 1, batch, time, batch², batch x time and time²."""
    known = ~np.isnan(table.seconds) & ~np.isnan(table.decoding)
    batch, time = (np.where(known, values, 0.0) for values in (table.decoding, table.seconds))
    parts = np.stack([known.astype(np.float64), batch, time, batch * batch, batch * time, time * time])
    sums = np.cumsum(parts.sum(axis=1, keepdims=True) - parts, axis=2)
    sums = np.concatenate([np.zeros((*sums.shape[:2], 1)), sums], axis=2)
    until = np.arange(1, table.seconds.shape[1] + 1)
    return np.asarray(sums[:, :, until] - sums[:, :, np.maximum(until - REMEMBERED, 0)])


def _highest_of_others(values: FloatArray) -> FloatArray:
    """Return for each server the highest of the others' last readings; -inf without any."""
    known = np.where(np.isnan(values), -np.inf, values)
    padded = np.concatenate([np.full((len(known), REMEMBERED - 1), -np.inf), known], axis=1)
    own = np.lib.stride_tricks.sliding_window_view(padded, REMEMBERED, axis=1).max(axis=2)
    second, first = np.partition(own, -2, axis=0)[-2:]
    return np.asarray(np.where(own == first, second, first))
