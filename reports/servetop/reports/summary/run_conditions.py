"""Loads the conditions of a recorded run, from which confounders of a comparison are found."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from servetop.analysis.confounding.conditions import RunConditions
from servetop.analysis.confounding.measure import RequestTable, RunEvidence, measure_conditions
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.trust.cache_check import CacheCheck
from servetop.core.events import RequestStatus
from servetop.core.tick import Tick
from servetop.recordings.read.load_attempts import load_attempts
from servetop.recordings.read.load_run import recorded_periods
from servetop.recordings.read.reader import RecordingReader

_COLUMNS = (
    "id",
    "stage",
    "prompt_tokens",
    "output_tokens",
    f"status = '{RequestStatus.OK}'",
    f"status = '{RequestStatus.CANCELLED}'",
    "replica",
)
_TYPES = (
    ("ids", "i8"),
    ("stages", "f4"),
    ("prompt", "f4"),
    ("output", "f4"),
    ("ok", "?"),
    ("cancelled", "?"),
    ("replicas", "f4"),
)
"""Single precision is exact up to 16 million; NULL is NaN, and no number of a damaged file is too large."""


def run_conditions(
    reader: RecordingReader,
    *,
    cache_check: CacheCheck | None = None,
    ticks: Sequence[Tick] | None = None,
    requests: RequestTable | None = None,
) -> RunConditions:
    """Measure a run and its stages, from ticks and requests that were already read or else from those of the recording.

    Takes about 60 bytes per request.
    """
    reader.refresh()
    ticks = reader.ticks() if ticks is None else ticks
    attempts = load_attempts(reader, ticks)
    return measure_conditions(
        RunEvidence(
            header=reader.header,
            stages=[each for each in recorded_periods(reader) if attempts[each.change.index].counts],
            history=TickHistory(ticks),
            requests=(_requests(reader) if requests is None else requests).as_sent(),
            engine_samples=reader.engine_samples(),
            replica_samples=reader.replica_samples(),
            gpu_samples=reader.gpu_samples(),
            log_lines=reader.log_lines(),
            cache_check=CacheCheck() if cache_check is None else cache_check,
        )
    )


def _requests(reader: RecordingReader) -> RequestTable:
    rows = reader.request_rows(_COLUMNS)
    table = np.fromiter(rows, dtype=list(_TYPES))
    return RequestTable(**{name: table[name] for name, _ in _TYPES})
