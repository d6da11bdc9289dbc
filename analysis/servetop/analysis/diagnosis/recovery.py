"""When a run recovered from its overload, and when the load had fallen before."""

from __future__ import annotations

import numpy as np

from servetop.analysis.diagnosis.episode import EpisodeKind
from servetop.analysis.diagnosis.overload import Overload
from servetop.analysis.diagnosis.queue_detectors import SHORT_QUEUE
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.signals import awaiting_first_token
from servetop.analysis.diagnosis.trailing import ticks_of

_BEFORE_LONGEST = 5.0
"""Seconds before the longest queue in which the load may have fallen, because a queue shrinks with a delay."""
_AGAIN = 5.0
"""Seconds within which another queue continues the one before."""
_FEW = 0.25
"""Most requests without a first token after an overload, relative to the most in it, that are few."""
_NEARLY_ALL = 80
"""Percentile of the requests without a first token, so that a burst of a moment does not count."""


def queue_end(run: RunRecord, main: Overload) -> float | None:
    """Return when the last queue of an overload ended; None if that is unknown, or after the newest page.

    A queue ends when none of more than SHORT_QUEUE requests follows within _AGAIN seconds.
    """
    kinds = [each.kind for each in main.episodes]
    kind = (
        EpisodeKind.QUEUE if EpisodeKind.QUEUE in kinds or EpisodeKind.AWAITING not in kinds else EpisodeKind.AWAITING
    )
    ends = [each.end for each in main.episodes if each.kind is kind] or [main.end]
    if kind is EpisodeKind.AWAITING:
        return None if None in ends else max(end for end in ends if end is not None)
    first = run.history.first_from(main.begin)
    waiting = run.history.column("waiting", start=first)
    known, waited = np.flatnonzero(~np.isnan(waiting)), np.flatnonzero(waiting > SHORT_QUEUE)
    if not known.size or waiting[known[-1]] > SHORT_QUEUE:
        return None
    apart = np.diff(waited) > ticks_of(_AGAIN)
    starts, stops = waited[np.append(True, apart)[: waited.size]], waited[np.append(apart, True)[: waited.size]]
    newest = run.until if None in ends else max(end for end in ends if end is not None)
    last = np.searchsorted(starts, run.history.up_to(newest) - first - 1, side="right") - 1
    return run.history.ticks[first + int(stops[last])].end if last >= 0 else main.begin


def few_wait_after(run: RunRecord, main: Overload, end: float) -> bool:
    """Whether few requests wait for their first token for nearly all of _AGAIN seconds, of the most in an overload."""
    first, stop = run.history.first_from(end), run.history.up_to(end + _AGAIN)
    after = awaiting_first_token(run.history, first, max(first, stop))
    longest = main.worst(EpisodeKind.AWAITING)
    few = max(2 * SHORT_QUEUE, _FEW * (0.0 if longest is None else longest.worst))
    return not after.size or float(np.percentile(after, _NEARLY_ALL)) <= few


def still_waits(run: RunRecord) -> bool:
    """Whether requests that were sent had no answer at the end of the run."""
    newest = run.history.ticks[-1].client if len(run.history) else None
    return newest is not None and bool(newest.gauges.in_flight or newest.gauges.queued or newest.cancelled)


def load_fell(run: RunRecord, main: Overload, until: float) -> float | None:
    """Return when the target rate fell or ended after the longest queue, or just before it; None if it did not."""
    longest = main.worst(EpisodeKind.QUEUE)
    start = main.begin if longest is None else longest.worst_at - _BEFORE_LONGEST
    first, stop = run.history.first_from(start), run.history.up_to(until)
    rates = np.nan_to_num(run.history.column("request_rate", start=first, stop=max(first, stop)))
    falls = np.flatnonzero(rates[1:] < 0.95 * rates[:-1])
    return run.history.ticks[first + int(falls[0]) + 1].start if falls.size else None
