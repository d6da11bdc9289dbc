"""Finds which of the requests that a server saw are those of a client's result, the others being warm-up or extra."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from servetop.core.arrays import FloatArray
from servetop.core.clock import ClockAnchor
from servetop.core.units import NS_PER_S

CLOCK_TOLERANCE = 5.0
"""Seconds by which a client's times may lie outside the time of the server before they are taken for another clock."""


class MatchedBy(StrEnum):
    """What the requests of client and server were matched by."""

    CLOCK = "clock"
    """The times of both, on one clock."""
    INTERVALS = "intervals"
    """The time between requests."""
    ORDER = "order"
    """Their order alone: the client's last request is the server's last one."""
    NOTHING = "nothing"
    """Not matched: the client reports more requests than the server saw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestMatch:
    """The server's requests from `first` on, `count` in order of arrival, are the client's in order of sending."""

    matched_by: MatchedBy
    first: int
    count: int
    shift: float | None = None
    """Seconds to add to a time of the client for the server's clock; None if unknown."""


def match_requests(
    arrived: FloatArray, sent: FloatArray, *, server: ClockAnchor, client: ClockAnchor, times_known: bool
) -> RequestMatch:
    """Match the ascending times at which requests arrived, by the server's clock, and were sent, by the client's."""
    extra = arrived.size - sent.size
    shift = _shift(arrived, sent, server=server, client=client) if times_known and sent.size else None
    if extra < 0 or not sent.size:
        return RequestMatch(matched_by=MatchedBy.NOTHING, first=0, count=arrived.size, shift=shift)
    if not times_known:
        return RequestMatch(matched_by=MatchedBy.ORDER, first=extra, count=sent.size)
    windows = np.lib.stride_tricks.sliding_window_view(arrived, sent.size)
    if shift is None:
        spread = [float(np.std(each - sent)) for each in windows]
        matched_by = MatchedBy.INTERVALS
    else:
        spread = [float(np.mean(np.abs(each - sent - shift))) for each in windows]
        matched_by = MatchedBy.CLOCK
    best = min(range(extra + 1), key=lambda first: (spread[first], -first))
    return RequestMatch(matched_by=matched_by, first=best, count=sent.size, shift=shift)


def _shift(arrived: FloatArray, sent: FloatArray, *, server: ClockAnchor, client: ClockAnchor) -> float | None:
    """Return the difference of the clocks: both monotonic, or both Unix time; None if the client's is neither."""
    shifts = []
    if client.origin_ns:
        shifts.append((client.origin_ns - server.origin_ns) / NS_PER_S)
    if client.wall_epoch_s:
        shifts.append(client.wall_epoch_s - server.wall_epoch_s)
    for shift in shifts:
        earliest, latest = float(sent[0]) + shift, float(sent[-1]) + shift
        if arrived.size and arrived[0] - CLOCK_TOLERANCE <= earliest and latest <= arrived[-1] + CLOCK_TOLERANCE:
            return shift
    return None
