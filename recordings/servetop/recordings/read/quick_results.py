"""The main results of a run for a list of recordings: read within milliseconds, or left unknown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from servetop.analysis.columns.latencies import end_to_end_latencies, times_to_first_token
from servetop.analysis.statistics.percentiles import Distribution
from servetop.core.arrays import BoolArray, FloatArray
from servetop.core.events import RequestStatus, StageChange
from servetop.core.interfaces.recording_store import RecordingResults
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.format.column_bounds import valid_request_condition
from servetop.recordings.read.table_reader import TableReader

MOST_REQUESTS = 20_000
"""Requests of a recording whose latencies are read: about 50 ms."""
_COLUMNS = ("stage", "status", "sent", "first_token_at", "done_at")
_MOST_CHARACTERS = 300
_MOST_PREEMPTIONS = 10**12
"""Larger sums are treated as damage."""
_INCREASES = (
    "(SELECT preemptions_total - lag(preemptions_total) OVER (ORDER BY seq) AS increase"
    " FROM engine_sample WHERE preemptions_total IS NOT NULL)"
)
"""The counter's increase from scrape to scrape; negative after a restart of the engine."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Times:
    """The requests outside warm-ups; arrays of shape (requests,), NaN for what did not happen."""

    ok: BoolArray
    sent: FloatArray
    first_token_at: FloatArray
    done_at: FloatArray

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> _Times:
        sent, first, done = (np.array([row[at] for row in rows], dtype=np.float64) for at in (2, 3, 4))
        ok = np.array([row[1] == RequestStatus.OK for row in rows], dtype=np.bool_)
        return cls(ok=ok, sent=sent, first_token_at=first, done_at=done)

    @property
    def latencies(self) -> Mapping[str, FloatArray]:
        """Seconds by objective."""
        return {
            "ttft": times_to_first_token(self.sent, self.first_token_at),
            "e2el": end_to_end_latencies(self.sent, self.done_at),
        }


def quick_results(
    tables: TableReader, header: RunHeader, stages: Iterable[StageChange], *, requests: int
) -> RecordingResults:
    """Read the results of a run with this number of ended requests; warm-ups do not count."""
    preemptions, verdict = _preemptions(tables), _headline(tables)
    if not 0 < requests <= MOST_REQUESTS:
        return RecordingResults(preemptions=preemptions, verdict=verdict)
    warmups = {stage.index for stage in stages if stage.warmup}
    columns = tables.or_null("request", _COLUMNS)
    rows = tables.rows("request", columns, where=valid_request_condition(columns))
    times = _Times.of([row for row in rows if row[0] not in warmups])
    p99 = Distribution.of(times.latencies["ttft"][times.ok]).percentile(99)
    return RecordingResults(
        ttft_p99=p99 if math.isfinite(p99) else None,
        goodput_share=_goodput_share(times, header.config.goodput),
        preemptions=preemptions,
        verdict=verdict,
    )


def _headline(tables: TableReader) -> str:
    """Return the verdict of the run in one sentence; empty for a run without an end, or of an older version."""
    if "headline" not in dict(tables.columns_of("run")):
        return ""
    (text,) = next(tables.rows("run", ("headline",)), (None,))
    return text[:_MOST_CHARACTERS] if isinstance(text, str) else ""


def _preemptions(tables: TableReader) -> int | None:
    """Return the sum of all increases; None if the engine does not export the counter."""
    if "preemptions_total" not in dict(tables.columns_of("engine_sample")):
        return None
    (total,) = next(tables.rows(_INCREASES, ("sum(max(increase, 0))",)), (None,))
    return round(total) if isinstance(total, float | int) and 0 <= total < _MOST_PREEMPTIONS else None


def _goodput_share(times: _Times, goodput: Mapping[str, float]) -> float | None:
    """Return None without objectives, or if one needs more than the times of a request."""
    if not goodput or not times.ok.size or not goodput.keys() <= times.latencies.keys():
        return None
    good = times.ok.copy()
    for metric, limit in goodput.items():
        good &= times.latencies[metric] <= limit
    return float(good.mean())
