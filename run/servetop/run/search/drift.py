"""Whether a server drifted while it was searched: its later loads contradict the earlier ones beyond their errors.

A larger load never misses a limit less often than a smaller one on the same server. So the earlier windows of loads
from one load on are compared with the later windows of loads up to it: where these missed more, beyond the errors of
both, the server became slower; in the reverse comparison, faster. Both sides are pooled, and misses that come together
count as one event, as in the posterior. What a single later window shows alone is a disturbance, not a drift.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import BoolArray, FloatArray
from servetop.run.search.load_posterior import DEPENDENCE, event_sizes
from servetop.run.search.load_windows import LoadWindow

CLEAR = 3.5
"""Standard errors from which loads contradict each other (set on steady servers and seeds below 200)."""
_OPPOSITE = 2.0
"""A server does not drift if some of its loads contradict the others by this much in the opposite direction."""
_LASTING = 1.5
"""Standard errors from the earlier loads that remain without the later window that differs most."""
_BANDS = (1.03, 1.1, 1.2, 1.35)
"""Factors within which loads are pooled."""
_EQUAL = 1.001
_LEAST_SECONDS = 30.0
"""Seconds of load on either side of the time at which the windows are divided."""
_LEAST_WINDOWS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """A load with the share of samples that missed the limit around it, earlier and later."""

    objective: int
    """The place of the view in which it shows."""
    load: float
    earlier: float
    later: float
    """Shares of samples beyond the limit."""
    since: float
    """Time from which the later figures are, seconds."""
    errors: float
    """How many standard errors they are apart."""

    @property
    def slower(self) -> bool:
        """Whether the server became slower."""
        return self.later > self.earlier

    @property
    def direction(self) -> str:
        """`slower` or `faster`."""
        return "slower" if self.slower else "faster"


def drift(views: Sequence[Sequence[LoadWindow]], allowed: Sequence[float]) -> Drift | None:
    """Return the clearest contradiction of later loads to earlier ones, or None: all agree, or some show the opposite.

    Each view has the windows of one objective in order of time. The queue does not count: near the answer a
    queue may grow for a minute at a load at which it did not before.
    """
    found = []
    for index, (view, share) in enumerate(zip(views, allowed, strict=True)):
        found += _contradictions(view, share, objective=index)
    clear = max(found, key=lambda each: each.errors, default=None)
    if clear is None or clear.errors < CLEAR:
        return None
    opposite = [each.errors for each in found if each.slower != clear.slower]
    return None if max(opposite, default=0.0) > _OPPOSITE else clear


def _contradictions(view: Sequence[LoadWindow], allowed: float, *, objective: int) -> list[Drift]:
    """Return the comparisons of one view in which a larger load missed less often than a smaller one."""
    seconds = np.cumsum([each.seconds for each in view])
    sizes = np.array(event_sizes(view, allowed))
    missed, counted = (np.array([getattr(each, name) for each in view]) / sizes for name in ("missed", "counted"))
    found = []
    for place in range(1, len(view) - _LEAST_WINDOWS + 1):
        if min(seconds[place - 1], seconds[-1] - seconds[place - 1]) < _LEAST_SECONDS:
            continue
        for load, first, last, slower in _pairs(view, place):
            if not first.any() or last.sum() < _LEAST_WINDOWS:
                continue
            earlier, later = ((float(missed[each].sum()), float(counted[each].sum())) for each in (first, last))
            errors = _errors(earlier, later) * (1 if slower else -1)
            if errors > 0 and _is_lasting(missed[last], counted[last], earlier, slower=slower):
                shares = (missed_of / of for missed_of, of in (earlier, later))
                since = view[int(np.flatnonzero(last)[0])].begin
                found.append(_drift(objective, load, *shares, since=since, errors=errors))
    return found


def _is_lasting(missed: FloatArray, counted: FloatArray, earlier: tuple[float, float], *, slower: bool) -> bool:
    """Whether the later windows still differ without the one that differs most."""
    shares = np.divide(missed, counted, out=np.full(missed.shape, np.nan), where=counted > 0)
    if np.isnan(shares).all():
        return False
    most = int(np.nanargmax(shares) if slower else np.nanargmin(shares))
    rest = float(missed.sum() - missed[most]), float(counted.sum() - counted[most])
    return _errors(earlier, rest) * (1 if slower else -1) > _LASTING


def _drift(objective: int, load: float, earlier: float, later: float, *, since: float, errors: float) -> Drift:
    return Drift(objective=objective, load=load, earlier=earlier, later=later, since=since, errors=errors)


def _pairs(view: Sequence[LoadWindow], place: int) -> Iterator[tuple[float, BoolArray, BoolArray, bool]]:
    """Yield a load, the earlier and the later windows to compare, and whether a difference means a slower server."""
    loads = np.array([each.load for each in view])
    before = np.arange(loads.size) < place
    for load in np.unique(loads):
        for band in _BANDS:
            larger = (loads >= load / _EQUAL) & (loads <= load * band)
            smaller = (loads <= load * _EQUAL) & (loads >= load / band)
            yield float(load), before & larger, ~before & smaller, True
            yield float(load), before & smaller, ~before & larger, False


def _errors(earlier: tuple[float, float], later: tuple[float, float]) -> float:
    """Return by how many standard errors the later share is larger, from misses and trials (signed deviance)."""
    (missed, trials), (missed_later, trials_later) = earlier, later
    if not (trials > 0 and trials_later > 0):
        return 0.0
    apart = _likelihood(missed, trials) + _likelihood(missed_later, trials_later)
    deviance = 2 * (apart - _likelihood(missed + missed_later, trials + trials_later)) / DEPENDENCE
    return math.copysign(math.sqrt(max(deviance, 0.0)), missed_later / trials_later - missed / trials)


def _likelihood(missed: float, trials: float) -> float:
    """Return the logarithm of the likelihood of a share at its best fit."""
    rest = trials - missed
    return sum(each * math.log(each / trials) for each in (missed, rest) if each > 1e-12)
