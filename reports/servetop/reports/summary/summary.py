"""The exact final numbers of a run, computed from raw rows (defined in docs/reference/metrics.md)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Container, Sequence

from servetop.analysis.cells.attempts import AttemptState, CellAttempt
from servetop.analysis.columns.request_columns import RequestColumns
from servetop.analysis.columns.run_columns import Period, RunColumns, StagePeriod
from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.diagnosis.run_verdict import run_verdict
from servetop.analysis.story.story import story_of
from servetop.analysis.summary.engine_metrics import engine_summary
from servetop.analysis.summary.measured_sweep import measured_sweep
from servetop.analysis.summary.steady_metrics import steady_summary, whole_steady, with_rates_within
from servetop.analysis.summary.story_summary import story_summary
from servetop.analysis.summary.summary_types import (
    Measurements,
    RunSummary,
    SkippedSummary,
    StageSummary,
    SteadySummary,
)
from servetop.analysis.trust.steady_state import SteadyWindow
from servetop.core.events import RunEnd
from servetop.core.same_fields import from_same_fields
from servetop.recordings.read.load_requests import Selection
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.breakdowns import model_summaries, replica_summaries
from servetop.reports.summary.cache_metrics import prefix_cache_text
from servetop.reports.summary.cell_thresholds import cell_checks
from servetop.reports.summary.cooldown import whole_selection
from servetop.reports.summary.dataset_metrics import dataset_summary
from servetop.reports.summary.exported import engine_metrics
from servetop.reports.summary.failure_metrics import failure_reasons
from servetop.reports.summary.recorded_run import recorded_run
from servetop.reports.summary.set_up import set_up_of
from servetop.reports.summary.summary_source import SummarySource, stage_selection, steady_selection

UseRequests = Callable[[RequestColumns], None]


def run_summary(
    reader: RecordingReader,
    *,
    percentiles: Sequence[float] | None = None,
    prices: Sequence[str] = (),
    end: RunEnd | None = None,
) -> RunSummary:
    """Summarise each stage and the whole run, except warm-ups; UsageError for a watch, which has no requests.

    `percentiles` and `prices` (UsageError if they make no sense) replace those of the configuration, `end` an end that
    is not recorded yet.
    """
    return judged_summary(reader, percentiles=percentiles, prices=prices, end=end)[0]


def judged_summary(
    reader: RecordingReader,
    *,
    percentiles: Sequence[float] | None = None,
    prices: Sequence[str] = (),
    end: RunEnd | None = None,
    totals: UseRequests | None = None,
) -> tuple[RunSummary, RunRecord]:
    """Return the summary as `run_summary`, and what its judgement was computed from.

    `totals` is called once with the requests of the totals, with their stages.
    """
    source = SummarySource.load(reader, percentiles=percentiles, prices=prices, end=end)
    run = source.run
    period, selection = Period(start=run.warm_at, pauses=run.left_out), whole_selection(run, source.cooldowns)
    whole, only = _measured(source, selection, period, totals=totals)
    stages = _stage_summaries(source, only=only)
    summary = RunSummary(
        set_up=set_up_of(run),
        recording=str(reader.path),
        recording_state=recording_state(reader, run),
        engine=engine_summary(run),
        prefix_cache=prefix_cache_text(run.header.config.prefix_cache, reader.notes()),
        exit_code=None if run.end is None else run.end.exit_code,
        error=run.end.reason if run.end is not None and run.end.exit_code else None,
        measured=whole,
        failures=failure_reasons(reader, selection) if whole.requests.failed else (),
        cooldown_requests=sum(source.cooldowns.requests.values()),
        steady=whole_steady([stage.steady for stage in stages]),
        models=model_summaries(reader, run, selection) or None,
        replicas=replica_summaries(reader, run, selection, timeline=source.timeline, period=period) or None,
        stages=stages,
        engine_metrics=engine_metrics(reader, run),
        dataset=dataset_summary(reader),
        skipped=tuple(from_same_fields(SkippedSummary, each) for each in reader.skipped_cells()) or None,
        predicted=run.header.predicted or None,
        imported=run.header.imported,
    )
    record = recorded_run(reader, ticks=source.ticks, end=end)
    return _judged(summary, source, record) if run.tick_ends.size else summary, record


def _measured(
    source: SummarySource, selection: Selection, period: Period, *, totals: UseRequests | None
) -> tuple[Measurements, Measurements | None]:
    """Measure the whole run, and its only stage if it has one and no warm-up: that one has the same requests."""
    run, samples = source.run, source.selected.of(selection)
    if totals is not None:
        totals(samples)
    whole = source.costed(source.measure(selection, period, samples=samples), selection)
    if len(run.every_stage) != 1 or run.warm_at > -math.inf:
        return whole, None
    (stage,) = run.every_stage
    of_stage = stage_selection(stage, source.cooldowns)
    return whole, source.costed(source.measure(of_stage, stage.period, samples=samples), of_stage)


def _judged(summary: RunSummary, source: SummarySource, record: RunRecord) -> RunSummary:
    """Return a summary with the story of its run, the verdict of its sweep, and whether its cells keep thresholds."""
    checks = cell_checks(source.reader, source.run, summary.stages, cache=source.cache)
    sweep = measured_sweep(record, summary.stages, checks)
    story = story_summary(story_of(record, run_verdict(record), sweep))
    return dataclasses.replace(summary, story=story, sweep=sweep, cell_thresholds=checks)


def cell_summaries(reader: RecordingReader, stage: int) -> tuple[StageSummary, ...]:
    """Summarise the stages that measured the cell of a stage as a whole: its repeats so far, also while the run grows.

    Empty if that stage itself did not, or if a command changed its load.
    """
    source = SummarySource.load(reader, whole=False)
    attempts = source.run.attempts
    of_cell = attempts.get(stage)
    if of_cell is None or of_cell.state is not AttemptState.WHOLE or of_cell.steered:
        return ()
    load = of_cell.key.load
    whole = {each.stage for each in attempts.values() if each.state is AttemptState.WHOLE and each.key.load == load}
    return _stage_summaries(source, only=None, among=whole)


def _stage_summaries(
    source: SummarySource, *, only: Measurements | None, among: Container[int] | None = None
) -> tuple[StageSummary, ...]:
    """Summarise all stages except warm-ups, or those of `among`.

    `only` are the measurements of the only stage, if there is one.
    """
    run = source.run
    return tuple(
        _stage_summary(source, stage, only=only, attempt=run.attempts[stage.change.index])
        for stage in run.every_stage
        if not stage.change.warmup and (among is None or stage.change.index in among)
    )


def _steady(source: SummarySource, stage: int) -> SteadySummary:
    window = source.windows.get(stage, SteadyWindow(reason="the run ended before the search for it"))
    if (found := steady_selection(stage, window)) is None:
        return steady_summary(window, None)
    selection, period = found
    measured = with_rates_within(source.measure(selection, period), source.run, period)
    return steady_summary(window, source.costed(measured, selection, steady_in=period))


def _stage_summary(
    source: SummarySource, stage: StagePeriod, *, only: Measurements | None, attempt: CellAttempt
) -> StageSummary:
    change, period = stage.change, stage.period
    selection = stage_selection(stage, source.cooldowns)
    measured = only or source.costed(source.measure(selection, period), selection)
    return from_same_fields(
        StageSummary,
        change,
        stage=change.index,
        start=period.start,
        end=_end_of_run(source.run) if math.isinf(period.until) else period.until,
        preemptions=measured.server.preemptions,
        cooldown_requests=source.cooldowns.requests.get(change.index, 0),
        measured=measured,
        steady=_steady(source, change.index),
        finished=attempt.state is AttemptState.WHOLE,
        outcome=attempt.state,
        failure=attempt.reason or None,
        steered=attempt.steered or None,
        counted=attempt.counts,
    )


def recording_state(reader: RecordingReader, run: RunColumns) -> str:
    """Return `finished`, `live`, `broken-off` or `damaged`."""
    if reader.damage is not None:
        return "damaged"
    if run.end is not None:
        return "finished"
    return "live" if reader.is_live() else "broken-off"


def _end_of_run(run: RunColumns) -> float | None:
    """Return when the run ended, or the end of its last tick if it has no end."""
    if run.end is not None:
        return run.end.at
    return float(run.tick_ends[-1]) if run.tick_ends.size else None
