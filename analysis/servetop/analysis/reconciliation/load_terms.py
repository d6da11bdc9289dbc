"""The load that each request met, by what its client sent around it: the terms by which loads are compared.

In an open loop requests in flight follow from the server's speed too, which must not count as load. So each request
counts as in flight for one common time, whatever it took; in a closed loop requests in flight are what was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from servetop.core.arrays import FloatArray

MANY = 200
"""Requests of a run from which on its latencies carry squares and short bursts too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadScales:
    """The times by which the load of both runs is described."""

    closed: bool
    """Whether both clients keep a number of requests in flight."""
    lifetime: float
    """Seconds for which each request counts as in flight."""
    burst: float
    """Seconds before a request within which others count as sent shortly before it: twice the mean TTFT."""
    step: float
    """Seconds of a step of the engine: requests that arrive within one are prefilled together."""
    many: bool
    """Whether both runs have enough requests for all terms."""


def load_terms(sent: FloatArray, ended: FloatArray, scales: LoadScales) -> FloatArray:
    """Return terms of shape (requests, terms) for times of sending and ending, in seconds.

    Open loop: the requests sent while each one was in flight, weighted by how long they overlap, and those sent less
    than `lifetime` before it; with many requests also the squares of both. Closed loop: requests in flight when each
    one was sent. Both, with many requests: those sent less than `burst` before it.
    """
    order = np.argsort(sent, kind="stable")
    times = sent[order]
    if scales.closed:
        terms = [in_flight_at(times, ended)]
    else:
        terms = [overlapping(times, scales.lifetime), sent_before(times, scales.lifetime)]
        terms += [each**2 for each in terms] if scales.many else []
    terms += [sent_before(times, scales.burst)] if scales.many else []
    found = np.empty((sent.size, len(terms)))
    found[order] = np.column_stack(terms)
    return found


def sent_together(sent: FloatArray, amounts: FloatArray, seconds: float) -> FloatArray:
    """Return the sum of `amounts` of the requests sent less than `seconds` before or after each one."""
    order = np.argsort(sent, kind="stable")
    times, total = sent[order], np.concatenate([[0.0], np.cumsum(amounts[order])])
    first = np.searchsorted(times, times - seconds, side="left")
    last = np.searchsorted(times, times + seconds, side="right")
    found = np.empty(sent.shape)
    found[order] = total[last] - total[first]
    return found - amounts


def in_flight_at(sent: FloatArray, ended: FloatArray) -> FloatArray:
    """Return how many other requests were in flight when each one was sent; `sent` ascending, shape (requests,)."""
    started = np.searchsorted(sent, sent, side="left")
    gone = np.searchsorted(np.sort(ended), sent, side="right")
    return np.asarray(np.maximum(started - gone, 0), float)


def sent_before(sent: FloatArray, seconds: float) -> FloatArray:
    """Return how many requests were sent in the `seconds` before each one, which is not counted."""
    first = np.searchsorted(sent, sent - seconds, side="left")
    return (np.arange(sent.size) - first).astype(float)


def overlapping(sent: FloatArray, seconds: float) -> FloatArray:
    """Return the mean number of others in flight during each request if every request took `seconds`."""
    if seconds <= 0 or not sent.size:
        return np.zeros(sent.shape)
    times = sent - sent[0]
    total = np.concatenate([[0.0], np.cumsum(times)])
    here = np.arange(sent.size)
    low = np.searchsorted(times, times - seconds, side="left")
    high = np.searchsorted(times, times + seconds, side="right")
    earlier = times * (here - low) - (total[here] - total[low])
    later = (total[high] - total[here + 1]) - times * (high - here - 1)
    return np.asarray((high - low - 1) - (earlier + later) / seconds)
