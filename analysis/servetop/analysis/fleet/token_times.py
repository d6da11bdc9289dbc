"""How long a watched server takes for an output token, by the counts of its own histogram of times between tokens."""

from __future__ import annotations

import itertools
import math
import re
from array import array
from dataclasses import dataclass

import numpy as np

from servetop.analysis.diagnosis.trailing import or_zero
from servetop.analysis.exported.metric_spec import BOUND, PER_TOKEN
from servetop.analysis.exported.metric_values import increases, unread
from servetop.analysis.exported.scrape_history import ScrapeHistory, SeriesName
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray, IntArray
from servetop.core.tick import TICK_SECONDS

WINDOW = 3.0
"""Seconds of the times per output token that are compared, at least the time between two scrapes."""
PROMPTS_WINDOW = 10.0
"""Seconds of the prompts that are compared: there are fewer of them than tokens."""
_STALE = 3.0
"""Seconds after which the last scrape does not describe a server any more."""
_LONGEST = 15.0
"""Seconds between the scrapes that are compared, at most."""
_BLOCK = 500
_COUNTED = ("seconds", "tokens", "prompts")
"""What is summed, as `_kind` names it."""
_PROMPT_TOKENS = re.compile(r"(?!.*request_)(?:.*[:_])?prompt_tokens(?:_total)?")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenPace:
    """What a server did in the seconds up to each of some times; NaN where that is not known."""

    seconds: FloatArray
    """Mean time per output token."""
    tokens: FloatArray
    """Output tokens of which that is the mean."""
    decoding: FloatArray
    """Requests that decoded at a time, in the mean."""
    prefilling: FloatArray
    """Requests that ran and did not decode yet, in the mean; 0 if that is not known."""
    prompt_tokens: FloatArray
    """Prompt tokens per second, in PROMPTS_WINDOW; 0 if they are not exported."""


class TokenTimes:
    """Sums of the times between output tokens, of these tokens and of prompt tokens, since the first scrape."""

    def __init__(self) -> None:
        self._at, self._seconds, self._tokens, self._prompts = array("d"), array("d"), array("d"), array("d")
        self._history: ScrapeHistory | None = None
        self._kinds: list[str] = []
        """What each column of `_history` counts, by `_kind`."""
        self._columns: tuple[int, list[int], list[slice]] = (0, [], [])
        """The number of known columns, those among them that count something, and the part of these for each of
        _COUNTED."""

    def follow(self, history: ScrapeHistory, *, since: int = 0) -> None:
        """Add the scrapes of a history from position `since` on, except those that are known."""
        if history is not self._history:
            self._history, self._kinds, self._columns = history, [], (0, [], [])
        start = max(since, history.up_to(self._at[-1]) if self._at else 0)
        for first in range(start, len(history), _BLOCK):
            self._add(history, first, min(first + _BLOCK, len(history)))

    def _add(self, history: ScrapeHistory, first: int, stop: int) -> None:
        before = max(first - 1, 0)
        width, values = history.known_columns(stop - 1), history.values(range(before, stop))
        columns, parts = self._columns_of(history, width)
        counted = values[:, columns]
        known = or_zero(increases(counted[:-1], counted[1:], unread=unread(values[:-1, :width])))
        skipped = first - before
        for own, part in zip((self._seconds, self._tokens, self._prompts), parts, strict=True):
            start = own[-1] if own else 0.0
            grown = start + np.cumsum(known[:, part].sum(axis=1))
            own.extend(grown if skipped else [start, *grown])
        self._at.extend(history.times(range(first, stop)))

    def _columns_of(self, history: ScrapeHistory, count: int) -> tuple[list[int], list[slice]]:
        """Return which of the first columns count something, and the part of these for each of _COUNTED.

        They are searched once for each number of columns.
        """
        if self._columns[0] != count:
            self._kinds += [_kind(name) for name in history.columns[len(self._kinds) : count]]
            kinds = self._kinds[:count]
            groups = [[at for at, each in enumerate(kinds) if each == kind] for kind in _COUNTED]
            ends = [*itertools.accumulate(map(len, groups), initial=0)]
            parts = [slice(start, stop) for start, stop in itertools.pairwise(ends)]
            self._columns = count, [*itertools.chain.from_iterable(groups)], parts
        return self._columns[1:]

    @property
    def until(self) -> float:
        """The time of the last scrape; 0 without one."""
        return self._at[-1] if self._at else 0.0

    def forget_before(self, at: float) -> None:
        """Drop what is older."""
        count = int(np.searchsorted(np.array(self._at), at))
        for each in (self._at, self._seconds, self._tokens, self._prompts):
            del each[:count]

    def pace(self, times: FloatArray, history: TickHistory | None = None) -> TokenPace:
        """Return what the server did up to each time; `history`: its ticks, with the requests that ran."""
        at = np.array(self._at)
        if at.size < 2:
            none = np.full(times.size, math.nan)
            return TokenPace(seconds=none, tokens=none, decoding=none, prefilling=none, prompt_tokens=none)
        last = np.maximum(np.searchsorted(at, times + 1e-9, side="right") - 1, 0)
        base = _base(at, last, WINDOW)
        elapsed = at[last] - at[base]
        known = (elapsed > 0) & (elapsed <= _LONGEST) & (times >= at[last])
        known &= times - at[last] <= np.maximum(_STALE, elapsed)
        tokens = np.where(known, _grown(self._tokens, base, last), np.nan)
        seconds = np.where(known, _grown(self._seconds, base, last), np.nan)
        decoding = _ratio(seconds, elapsed)
        running = np.full(times.size, math.nan) if history is None else _mean_running(history, at[base], at[last])
        before = _base(at, last, PROMPTS_WINDOW)
        return TokenPace(
            seconds=_ratio(seconds, tokens),
            tokens=tokens,
            decoding=decoding,
            prefilling=or_zero(np.maximum(running - decoding, 0.0)),
            prompt_tokens=_ratio(_grown(self._prompts, before, last), at[last] - at[before]),
        )


def _base(at: FloatArray, last: IntArray, window: float) -> IntArray:
    """Return the first scrape of a window that ends with each last one, or the one before that if it has no other."""
    first = np.searchsorted(at, at[last] - window - 0.5)
    return np.asarray(np.maximum(np.minimum(first, last - 1), 0))


def _grown(sums: array[float], base: IntArray, last: IntArray) -> FloatArray:
    values = np.array(sums)
    return np.asarray(values[last] - values[base])


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.asarray(np.divide(part, whole, out=np.full(part.shape, np.nan), where=whole > 0))


def _mean_running(history: TickHistory, start: FloatArray, end: FloatArray) -> FloatArray:
    """Return the mean of the requests that ran in the ticks between two times; NaN if it is not exported."""
    first, stop = history.up_to(float(start.min())), history.up_to(float(end.max()))
    running = history.column("running", start=first, stop=stop)
    ends = (np.array(history.ticks.indexes[first:stop], dtype=np.float64) + 1) * TICK_SECONDS
    low, high = (np.searchsorted(ends, each, side="right") for each in (start, end))
    sums, counts = (np.concatenate([[0.0], np.cumsum(values)]) for values in (or_zero(running), ~np.isnan(running)))
    return _ratio(sums[high] - sums[low], counts[high] - counts[low])


def _kind(series: SeriesName) -> str:
    """Return what a series counts: `seconds` between tokens, these `tokens`, `prompts` (tokens), or nothing of it."""
    histogram, _, part = series.name.rpartition("_")
    if histogram.endswith(PER_TOKEN):
        if part == "sum":
            return "seconds"
        if part == "bucket" and (series.label(BOUND) or "").lstrip("+").lower() in ("inf", "infinity"):
            return "tokens"
    return "prompts" if _PROMPT_TOKENS.fullmatch(series.name) else ""
