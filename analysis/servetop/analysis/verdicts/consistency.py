"""Do client and engine agree on what they both can count, requests in the system and tokens?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.events import EngineSample

_TOKENS_TO_COMPARE = 500
"""Below so many tokens in a window, a few in transit look like a disagreement."""

LONGEST_SCRAPE = 1.0
"""Seconds; when a page was written that took longer is not known well enough to compare counts of the same moment."""


@dataclass(frozen=True, slots=True)
class CountConsistency:
    """Client and engine at the instants of the scrapes, so that both speak of the same moment."""

    littles_law_error: float = math.nan
    token_error: float = math.nan
    in_flight: float = math.nan


def agreement_between(history: TickHistory, start: int, stop: int) -> CountConsistency:
    """The client's side is interpolated between the ends of ticks to when the engine was scraped."""
    before = max(0, start - 1)
    ends = np.array([tick.end for tick in history.ticks[before:stop]])
    newest = {tick.engine.scrape_end: tick.engine for tick in history.ticks[start:stop] if tick.engine is not None}
    brief = (
        sample for _, sample in sorted(newest.items()) if sample.scrape_end - sample.scrape_start <= LONGEST_SCRAPE
    )
    samples = [sample for sample in brief if sample.scrape_end >= ends[0]]
    if not samples:
        return CountConsistency()
    instants = np.array([(sample.scrape_start + sample.scrape_end) / 2 for sample in samples])
    in_flight = np.interp(instants, ends, history.column("in_flight", start=before, stop=stop))
    held = _column(samples, "running") + _column(samples, "waiting")
    both = ~np.isnan(held) & (in_flight > 0)
    client = float(in_flight[both].mean()) if both.any() else math.nan
    received = np.cumsum(history.column("output_tokens", start=before, stop=stop))
    ended = np.cumsum([tick.client.output_len.total for tick in history.ticks[before:stop]])
    client_tokens = [float(np.diff(np.interp(instants[[0, -1]], ends, each))[0]) for each in (received, ended)]
    generated = _column([samples[0], samples[-1]], "generation_tokens_total")
    return CountConsistency(
        littles_law_error=_relative(float(held[both].mean()), client) if both.any() else math.nan,
        token_error=_token_error(float(np.diff(generated)[0]), client_tokens),
        in_flight=client,
    )


def _token_error(generated: float, counted: Sequence[float]) -> float:
    """Of the ways in which a client may count, the one nearest to the engine's own: some count when a request ends."""
    nearest = min(counted, key=lambda tokens: abs(generated - tokens))
    comparable = generated >= 0 and max(generated, nearest) >= _TOKENS_TO_COMPARE
    return _relative(generated, nearest) if comparable else math.nan


def _column(samples: Sequence[EngineSample], name: str) -> FloatArray:
    return np.array([getattr(sample, name) for sample in samples], dtype=np.float64)


def _relative(value: float, reference: float) -> float:
    return value / reference - 1 if reference > 0 else math.nan
