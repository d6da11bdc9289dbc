"""Writes virtual runs as recordings, so that the dashboard and the reports can open them."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

from servetop.core.clock import ClockAnchor, wall_clock
from servetop.core.events import EngineSample, RequestRecord
from servetop.core.tick import TICK_SECONDS
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.simulator.virtual_run.virtual_run import VirtualRun


def write_recording(run: VirtualRun, path: Path) -> None:
    """Write a run to a new file, tick by tick; RecordingError if the file exists."""
    anchor = ClockAnchor(origin_ns=0, wall_epoch_s=wall_clock())
    recorder = Recorder.create(path, dataclasses.replace(run.header, anchor=anchor))
    newest: EngineSample | None = None
    ended = {index: list(part) for index, part in itertools.groupby(run.records, key=_tick_of_end)}
    scraped = {
        at: list(part) for at, part in itertools.groupby(run.replica_samples, key=lambda each: each.scrape_start)
    }
    for tick in run.ticks:
        within = [stage for stage in run.stages if tick.start <= stage.at < tick.end]
        lines = [line for line in run.log_lines if tick.start <= line.at < tick.end]
        samples = () if tick.engine is None or tick.engine is newest else (tick.engine,)
        newest = tick.engine
        recorder.commit(
            TickTransaction(
                tick=tick,
                requests=ended.get(tick.index, ()),
                engine_samples=samples,
                replica_samples=scraped.get(tick.end, ()),
                gpu_samples=tick.gpus,
                stages=within,
                log_lines=lines,
            )
        )
    recorder.close(run.end)


def _tick_of_end(record: RequestRecord) -> int:
    return int((record.done_at or 0.0) / TICK_SECONDS)
