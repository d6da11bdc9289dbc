"""Times of sending for results that have none: requests are placed so that the run lasts as long as its tool says.

Latencies are not touched by it; rates and concurrency over time are those of the placement, and not measured.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

import numpy as np

from servetop.core.arrays import FloatArray

EVEN_CHUNKS = (
    "the file has no times between the first and the last token of a request: they are spread evenly, "
    "so ITL is the mean of each request"
)
"""A remark to the user."""


def closed_loop_starts(latencies: Sequence[float], concurrency: int | None) -> list[float]:
    """Return when requests were sent, in seconds, if each followed the first one that ended; None: without a limit."""
    starts: list[float] = []
    ends: list[float] = []
    for latency in latencies:
        full = concurrency is not None and len(ends) >= concurrency
        starts.append(heapq.heappop(ends) if full else 0.0)
        heapq.heappush(ends, starts[-1] + latency)
    return starts


def even_starts(latencies: Sequence[float], duration: float) -> list[float]:
    """Return equally spaced instants, in seconds, after which the last request ends when the run did."""
    spaces = [(duration - latency) / number for number, latency in enumerate(latencies) if number]
    step = max(0.0, min(spaces, default=0.0))
    return [number * step for number in range(len(latencies))]


def wave_starts(latencies: Sequence[float], concurrency: int, duration: float) -> list[float] | None:
    """Return when requests were sent, in seconds, if all of a wave of `concurrency` ended before the next wave.

    Equal pauses after the waves make up the rest of the duration. None if the waves alone take longer than it.
    """
    waves = [latencies[first : first + concurrency] for first in range(0, len(latencies), concurrency)]
    pause = (duration - sum(map(max, waves))) / len(waves)
    if not 0 <= pause < math.inf:
        return None
    starts: list[float] = []
    at = 0.0
    for wave in waves:
        starts += [at] * len(wave)
        at += max(wave) + pause
    return starts


def last_end(starts: Sequence[float], latencies: Sequence[float]) -> float:
    """Return when the last request ended, in seconds."""
    return max(start + latency for start, latency in zip(starts, latencies, strict=True))


def even_chunks(first: float, last: float, tokens: int) -> FloatArray:
    """Return arrivals of `tokens` tokens, in seconds, of which only the first and the last are known."""
    return np.linspace(first, max(first, last), num=tokens) if tokens > 1 else np.array([first])
