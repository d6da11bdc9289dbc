"""Loads the recordings that the arguments of a command name, for a comparison."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from servetop.analysis.checks.stage_figures import StageFigures
from servetop.analysis.columns.request_columns import StageRequests
from servetop.analysis.columns.run_columns import RunColumns
from servetop.analysis.confounding.conditions import RunConditions
from servetop.analysis.confounding.measure import RunEvidence, measure_conditions
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.config_values.price import HourlyPrice
from servetop.core.errors import UsageError
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import TICK_SECONDS
from servetop.recordings.library.catalog import resolve
from servetop.recordings.library.paths import SUFFIX
from servetop.recordings.read.load_requests import load_stage_requests
from servetop.recordings.read.load_run import load_run
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.comparison.load_arm import arm_run_of
from servetop.reports.comparison.measured_arm import MeasuredRun
from servetop.reports.summary.cache_metrics import IdealCache
from servetop.reports.summary.load_stage_figures import load_stage_figures


def recordings_named(argument: str) -> tuple[Path, ...]:
    """Return the recordings of one configuration: a name, several with commas between them, or all of a folder.

    Names are those of `resolve`. UsageError for an empty list or folder, or a recording that is named twice.
    """
    whole = Path(argument).expanduser()
    if whole.is_dir():
        paths = sorted(path for path in whole.glob(f"*{SUFFIX}") if path.is_file())
        if not paths:
            raise UsageError(f"no recording in {argument}: give a folder with files *{SUFFIX}")
        return tuple(paths)
    if whole.is_file():
        return (whole,)
    paths = [resolve(name.strip()) for name in argument.split(",") if name.strip()]
    if not paths:
        raise UsageError(f"{argument!r} names no recording: servetop ls lists them")
    return tuple(paths)


def distinct_arms(arguments: Sequence[str]) -> list[tuple[Path, ...]]:
    """Return the recordings of each argument; UsageError if a recording occurs twice."""
    arms = [recordings_named(argument) for argument in arguments]
    seen: dict[tuple[int, int], Path] = {}
    for path in (path for arm in arms for path in arm):
        with contextlib.suppress(OSError):  # opening it reports the reason
            status = os.stat(path)
            key = (status.st_dev, status.st_ino)
            if key in seen:
                raise UsageError(f"{path} is given twice: a comparison needs different recordings")
            seen[key] = path
    return arms


def headers_of(arms: Sequence[Sequence[Path]]) -> list[list[RunHeader]]:
    """Return what each recording knows before its first request; RecordingError if one cannot be read."""
    return [[_header(path) for path in arm] for arm in arms]


def _header(path: Path) -> RunHeader:
    with contextlib.closing(RecordingReader.open(path, examine=False)) as reader:
        return reader.header


def first_objectives(headers: Iterable[RunHeader]) -> Mapping[str, float]:
    """Return the objectives (seconds by metric) of the first run that has any."""
    return next((each.config.goodput for each in headers if each.config.goodput), {})


def load_measured_run(
    path: Path, *, objectives: Mapping[str, float] | None = None, price: HourlyPrice | None = None
) -> MeasuredRun:
    """Load one recording, finished or growing; RecordingError if it cannot be read.

    `objectives` (seconds by metric) and `price` replace its own.
    """
    reader = RecordingReader.open(path)
    try:
        return RecordedColumns.load(reader).measured(objectives=objectives, price=price)
    finally:
        reader.close(merge_log=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedColumns:
    """The columns of a recording from which it is compared and checked."""

    reader: RecordingReader
    run: RunColumns
    requests: StageRequests
    cache: IdealCache
    conditions: RunConditions

    @classmethod
    def load(cls, reader: RecordingReader) -> RecordedColumns:
        """Read all requests and ticks; the ticks, which take more memory, are not kept."""
        requests, ticks = load_stage_requests(reader), reader.ticks()
        run = load_run(reader, ticks=ticks)
        cache = IdealCache.load(reader, run)
        conditions = measure_conditions(
            RunEvidence(
                header=run.header,
                stages=run.stages,
                history=TickHistory(ticks),
                requests=requests,
                engine_samples=reader.engine_samples(),
                replica_samples=reader.replica_samples(),
                gpu_samples=reader.gpu_samples(),
                log_lines=reader.log_lines(),
                engine_series=reader.engine_series(),
                cache_check=cache.check_run(run, requests),
            )
        )
        return cls(reader=reader, run=run, requests=requests, cache=cache, conditions=conditions)

    def stage_figures(self) -> tuple[StageFigures, ...]:
        """Return the figures of each stage that the rules of honesty need."""
        return load_stage_figures(self.reader, self.run, self.requests, cache=self.cache)

    def measured(
        self, *, objectives: Mapping[str, float] | None = None, price: HourlyPrice | None = None
    ) -> MeasuredRun:
        """Return the run as it is compared; `objectives` (seconds by metric) and `price` replace its own."""
        run, path = self.run, str(self.reader.path)
        last = float(run.tick_ends[-1]) if run.tick_ends.size else TICK_SECONDS
        return MeasuredRun(
            path=path,
            header=run.header,
            arm=arm_run_of(run, self.requests, name=path, objectives=objectives, price=price),
            conditions=self.conditions,
            seconds=last if run.end is None else run.end.at,
            running=self.reader.is_live(),
            end=run.end,
            damage=self.reader.damage,
        )
