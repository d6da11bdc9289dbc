"""When requests were sent, if a result does not say so but its load and latencies leave no choice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from servetop.core.errors import UsageError
from servetop.run.imports.imported_result import ImportedLoad
from servetop.run.imports.placed_times import closed_loop_starts, last_end

DURATION_TOLERANCE = 0.02
"""Largest difference between the derived and the reported duration, as a fraction: the work of the client itself."""


def derived_starts(latencies: Sequence[float | None], load: ImportedLoad, *, duration: Any) -> list[float]:
    """Return when each request was sent, in seconds, of a load that sends as soon as its concurrency allows.

    Each request follows the first one that ended, in the order of the list. UsageError if that cannot be known: with a
    rate, whose arrivals are random; with requests of unknown length; or if the run takes another time than reported.
    """
    advice = "repeat the benchmark with a newer vLLM, which writes them"
    if math.isfinite(load.request_rate):
        raise UsageError(f"it has no start_times, and arrivals at {load.request_rate:g} req/s are random: {advice}")
    known = [each for each in latencies if each is not None]
    if len(known) < len(latencies):
        raise UsageError(f"it has no start_times, and failed requests have no latency to derive them from: {advice}")
    starts = closed_loop_starts(known, load.max_concurrency)
    whole = last_end(starts, known)
    if not isinstance(duration, int | float) or not abs(whole - duration) <= DURATION_TOLERANCE * duration:
        raise UsageError(f"it has no start_times, and its latencies contradict its duration: {advice}")
    return starts
