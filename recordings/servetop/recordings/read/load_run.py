"""Loads the columns of a recorded run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from servetop.analysis.cells.attempts import session_starts
from servetop.analysis.columns.run_columns import Period, RunColumns, StagePeriod, engine_columns, sample_column
from servetop.analysis.energy import energy_meters
from servetop.analysis.exported.gpu_peaks import engine_gpus
from servetop.analysis.series.tick_columns import TickColumns
from servetop.analysis.trust.engine_times import ClientTimes
from servetop.core.arrays import FloatArray
from servetop.core.events import StageChange
from servetop.core.tick import Tick
from servetop.recordings.read.load_attempts import load_attempts
from servetop.recordings.read.reader import RecordingReader


def load_run(reader: RecordingReader, *, ticks: Sequence[Tick] | None = None) -> RunColumns:
    """Read everything except the requests, and except the ticks if they are given."""
    reader.refresh()
    reader.check_requests()
    ticks = reader.ticks() if ticks is None else ticks
    samples, gpus = reader.engine_samples(), reader.gpu_samples()
    attempts, periods = load_attempts(reader, ticks), recorded_periods(reader)
    return RunColumns(
        header=reader.header,
        end=reader.end,
        stages=[each for each in periods if attempts[each.change.index].counts],
        attempts=attempts,
        superseded=[each for each in periods if not attempts[each.change.index].counts],
        tick_ends=np.array([tick.end for tick in ticks], dtype=np.float64),
        in_flight=_gauges(ticks, "in_flight"),
        queued=_gauges(ticks, "queued"),
        limits=np.nan_to_num(_gauges(ticks, "max_concurrency"), nan=math.inf),
        output_tokens=np.array([tick.client.output_tokens for tick in ticks], dtype=np.float64),
        prompt_tokens=np.array([tick.client.prompt_tokens for tick in ticks], dtype=np.float64),
        finished_tokens=np.array([tick.client.output_len.total for tick in ticks], dtype=np.float64),
        ok=np.array([tick.client.ok for tick in ticks], dtype=np.float64),
        load_ticks=TickColumns.of(ticks),
        token_gaps=[tick.client.itl for tick in ticks],
        client_times=ClientTimes.of(ticks),
        sender_classes=[tick.client.gauges.sender_class for tick in ticks],
        loop_lags=[tick.client.loop_lag for tick in ticks],
        itl_uncertainties=[tick.client.itl_uncertainty for tick in ticks],
        chunks=np.array([tick.client.chunks for tick in ticks], dtype=np.float64),
        stamped=np.array([tick.client.stamped for tick in ticks], dtype=np.float64),
        scrape_starts=sample_column(samples, "scrape_start"),
        scrape_ends=sample_column(samples, "scrape_end"),
        engine=engine_columns(samples),
        meters=energy_meters(gpus),
        pauses=_pauses(reader),
        gpus=engine_gpus(gpus),
    )


def _gauges(ticks: Sequence[Tick], name: str) -> FloatArray:
    return np.array([getattr(tick.client.gauges, name) for tick in ticks], dtype=np.float64)


def recorded_periods(reader: RecordingReader) -> list[StagePeriod]:
    """Return the period of each stage with a load."""
    return stage_periods(reader.stages(), resumed=session_starts(reader.notes()))


def stage_periods(changes: Sequence[StageChange], *, resumed: Sequence[float] = ()) -> list[StagePeriod]:
    """Merge consecutive changes of one stage into one period, and omit stages without a load.

    A stage ends at the latest with its session, or when it failed; `resumed` are the starts of later sessions.
    """
    periods: list[StagePeriod] = []
    loaded = [(change, end) for change, end in _with_ends(changes, resumed) if change.request_rate is not None]
    for _, group in itertools.groupby(loaded, key=lambda pair: pair[0].index):
        pairs = list(group)
        change, until = pairs[-1]
        period = Period(start=pairs[0][0].at, until=until if change.failure is None else change.at)
        periods.append(StagePeriod(change=change, period=period))
    return periods


def _pauses(reader: RecordingReader) -> list[Period]:
    ends = _with_ends(reader.stages(), session_starts(reader.notes()))
    return [Period(start=change.at, until=end) for change, end in ends if change.request_rate is None]


def _with_ends(changes: Sequence[StageChange], resumed: Sequence[float]) -> list[tuple[StageChange, float]]:
    """Return each change with the time of the next one, or of the next session."""
    following = [*(change.at for change in changes), math.inf][1:]
    return [
        (change, min([end, *(at for at in resumed if at >= change.at)]))
        for change, end in zip(changes, following, strict=True)
    ]
