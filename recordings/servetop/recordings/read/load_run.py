"""Loads the columns of a recorded run."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from servetop.analysis.cells.attempts import session_starts
from servetop.analysis.columns.run_columns import (
    Period,
    RunColumns,
    RunStages,
    StagePeriod,
    engine_columns,
    sample_column,
)
from servetop.analysis.energy import energy_meters
from servetop.analysis.exported.gpu_peaks import engine_gpus
from servetop.analysis.series.tick_columns import TickColumns
from servetop.analysis.trust.engine_times import ClientTimes
from servetop.core.arrays import FloatArray
from servetop.core.events import GpuSample, RunEnd, StageChange
from servetop.core.tick import Tick
from servetop.recordings.format import schema
from servetop.recordings.read.load_attempts import load_attempts, with_ends
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.stored_columns import StoredColumns


def load_run(reader: RecordingReader, *, ticks: Sequence[Tick] | None = None, end: RunEnd | None = None) -> RunColumns:
    """Read all but the requests, and but the ticks if they are given; the columns of ticks are empty of a watch.

    An `end` that is not recorded yet replaces the recorded one.
    """
    reader.refresh()
    reader.check_requests()
    ticks, column, gpus = _rows(reader, ticks)
    stages = load_stages(reader, ticks, end=end)
    return RunColumns(
        header=stages.header,
        end=stages.end,
        stages=stages.stages,
        pauses=stages.pauses,
        attempts=stages.attempts,
        superseded=stages.superseded,
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
        scrape_starts=column("scrape_start"),
        scrape_ends=column("scrape_end"),
        engine=engine_columns(column),
        meters=energy_meters(gpus),
        gpus=engine_gpus(gpus),
    )


def load_stages(
    reader: RecordingReader, ticks: Sequence[Tick] | None = None, *, end: RunEnd | None = None
) -> RunStages:
    """Read the stages and which of them count, with all ticks of the run, or from the last tick of each stage.

    An `end` that is not recorded yet replaces the recorded one.
    """
    attempts = load_attempts(reader, ticks, end=end)
    changes = with_ends(reader.stages(), session_starts(reader.notes()))
    periods = stage_periods(changes)
    return RunStages(
        header=reader.header,
        end=end or reader.end,
        stages=[each for each in periods if attempts[each.change.index].counts],
        pauses=[Period(start=each.at, until=until) for each, until in changes if each.request_rate is None],
        attempts=attempts,
        superseded=[each for each in periods if not attempts[each.change.index].counts],
    )


def _rows(
    reader: RecordingReader, ticks: Sequence[Tick] | None
) -> tuple[Sequence[Tick], Callable[[str], FloatArray], Sequence[GpuSample]]:
    """Return ticks, columns of samples and readings of GPUs; of a watch, whose ticks have no client, stored rows."""
    if reader.header.config.watch is not None:
        return ticks or (), StoredColumns(reader.tables, schema.ENGINE_SAMPLE).column, reader.stored(schema.GPU_SAMPLE)
    ticks = reader.ticks() if ticks is None else ticks
    return ticks, partial(sample_column, reader.engine_samples()), reader.gpu_samples()


def _gauges(ticks: Sequence[Tick], name: str) -> FloatArray:
    return np.array([getattr(tick.client.gauges, name) for tick in ticks], dtype=np.float64)


def stage_periods(changes: Sequence[tuple[StageChange, float]]) -> list[StagePeriod]:
    """Merge consecutive changes of one stage, each with its end, into one period, and omit stages without a load.

    A stage that failed ends then.
    """
    periods: list[StagePeriod] = []
    loaded = [(change, end) for change, end in changes if change.request_rate is not None]
    for _, group in itertools.groupby(loaded, key=lambda pair: pair[0].index):
        pairs = list(group)
        change, until = pairs[-1]
        period = Period(start=pairs[0][0].at, until=until if change.failure is None else change.at)
        periods.append(StagePeriod(change=change, period=period))
    return periods
