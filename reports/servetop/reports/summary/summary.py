"""The exact final numbers of a run, computed from raw rows (defined in docs/reference/metrics.md)."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass

from servetop.analysis.cells.attempts import AttemptState, CellAttempt
from servetop.analysis.columns.request_columns import RequestColumns
from servetop.analysis.columns.run_columns import Period, RunColumns, StagePeriod
from servetop.analysis.cost.costs import cost_summary, served_rates, weights_of
from servetop.analysis.cost.hourly_price import recorded_prices
from servetop.analysis.diagnosis.run_verdict import run_verdict
from servetop.analysis.story.story import story_of
from servetop.analysis.summary.energy_metrics import energy_summary
from servetop.analysis.summary.engine_metrics import counted_hits, engine_summary, server_summary
from servetop.analysis.summary.in_flight_timeline import InFlightTimeline
from servetop.analysis.summary.measured_sweep import measured_sweep
from servetop.analysis.summary.request_metrics import finite, request_summary
from servetop.analysis.summary.steady_metrics import steady_summary, steady_windows, whole_steady, with_rates_within
from servetop.analysis.summary.story_summary import story_summary
from servetop.analysis.summary.summary_types import (
    Measurements,
    RunSummary,
    SkippedSummary,
    StageSummary,
    SteadySummary,
)
from servetop.analysis.summary.trust_metrics import trust_summary
from servetop.analysis.trust.steady_state import METHOD, SteadyWindow
from servetop.core.config_values.price import Prices
from servetop.core.errors import UsageError
from servetop.core.events import RunEnd
from servetop.core.same_fields import from_same_fields
from servetop.recordings.read.load_requests import Selection, load_requests, load_timeline
from servetop.recordings.read.load_run import load_run
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.breakdowns import model_summaries, replica_summaries
from servetop.reports.summary.cache_metrics import IdealCache, computed_prompts, prefix_cache_text
from servetop.reports.summary.cell_thresholds import cell_checks
from servetop.reports.summary.cooldown import CoolDowns, whole_selection
from servetop.reports.summary.dataset_metrics import dataset_summary
from servetop.reports.summary.exported import engine_metrics
from servetop.reports.summary.failure_metrics import failure_reasons
from servetop.reports.summary.recorded_run import recorded_run
from servetop.reports.summary.set_up import set_up_of
from servetop.reports.summary.turn_metrics import TURN_COLUMNS, turn_summaries

UseRequests = Callable[[RequestColumns], None]


def run_summary(
    reader: RecordingReader,
    *,
    percentiles: Sequence[float] | None = None,
    prices: Sequence[str] = (),
    end: RunEnd | None = None,
    totals: UseRequests | None = None,
) -> RunSummary:
    """Summarise each stage and the whole run, except warm-ups; UsageError for a watch, which has no requests.

    `percentiles` and `prices` (UsageError if they make no sense) replace those of the configuration, `end` an end that
    is not recorded yet. `totals` is called once with the requests of the totals, with their stages.
    """
    source = _Source.load(reader, percentiles=percentiles, prices=prices, end=end)
    run, cooldowns = source.run, CoolDowns.load(reader, source.run)
    period, selection = Period(start=run.warm_at, pauses=run.left_out), whole_selection(run, cooldowns)
    whole, only = _measured(source, selection, period, cooldowns=cooldowns, totals=totals)
    stages = _stage_summaries(source, cooldowns, only=only)
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
        cooldown_requests=sum(cooldowns.requests.values()),
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
    return _judged(summary, source, end=end) if run.tick_ends.size else summary


def _measured(
    source: _Source, selection: Selection, period: Period, *, cooldowns: CoolDowns, totals: UseRequests | None
) -> tuple[Measurements, Measurements | None]:
    """Measure the whole run, and its only stage if it has one and no warm-up: that one has the same requests.

    They are released before any others are loaded.
    """
    run, samples = source.run, source.requests(selection, others=() if totals is None else ("stage",))
    if totals is not None:
        totals(samples)
    whole = source.costed(source.measure(selection, period, samples=samples), selection)
    if len(run.every_stage) != 1 or run.warm_at > -math.inf:
        return whole, None
    (stage,) = run.every_stage
    of_stage = _selection(stage, cooldowns)
    return whole, source.costed(source.measure(of_stage, stage.period, samples=samples), of_stage)


def _judged(summary: RunSummary, source: _Source, *, end: RunEnd | None) -> RunSummary:
    """Return a summary with the story of its run, the verdict of its sweep, and whether its cells keep thresholds."""
    record = recorded_run(source.reader, end=end)
    checks = cell_checks(source.reader, source.run, summary.stages, cache=source.cache)
    sweep = measured_sweep(record, summary.stages, checks)
    story = story_summary(story_of(record, run_verdict(record), sweep))
    return dataclasses.replace(summary, story=story, sweep=sweep, cell_thresholds=checks)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Source:
    """The data from which every part of a summary is computed."""

    reader: RecordingReader
    run: RunColumns
    timeline: InFlightTimeline
    cache: IdealCache
    prices: Prices | None

    @classmethod
    def load(
        cls,
        reader: RecordingReader,
        *,
        percentiles: Sequence[float] | None,
        prices: Sequence[str],
        end: RunEnd | None,
    ) -> _Source:
        if reader.header.config.watch is not None:
            raise UsageError(f"{reader.name} is a recorded watch, without requests: servetop summary has its figures")
        run = load_run(reader, end=end)
        if percentiles is not None:
            config = dataclasses.replace(run.header.config, metric_percentiles=tuple(percentiles))
            run = dataclasses.replace(run, header=dataclasses.replace(run.header, config=config))
        return cls(
            reader=reader,
            run=run,
            timeline=load_timeline(reader),
            cache=IdealCache.load(reader, run),
            prices=Prices.parse(prices) if prices else recorded_prices(run.header.config),
        )

    def requests(self, selection: Selection, *, others: Sequence[str] = ()) -> RequestColumns:
        """Load the selected requests, with `others` and, in conversations, what the summaries of turns need."""
        conversational = self.run.header.config.workload.conversational
        return load_requests(self.reader, selection, others=(*others, *(TURN_COLUMNS if conversational else ())))

    def measure(self, selection: Selection, period: Period, *, samples: RequestColumns | None = None) -> Measurements:
        """Measure the selected requests, loaded already if `samples` is given, and the period."""
        samples = samples or self.requests(selection)
        config = self.run.header.config
        server = server_summary(self.run, period, timeline=self.timeline)
        check = self.cache.check(
            counted_hits(server), computed_prompts(samples.prompt_tokens, samples.first_token_at), selection
        )
        return Measurements(
            requests=request_summary(samples, goodput=config.goodput, percentiles=config.metric_percentiles),
            turns=turn_summaries(samples) if self.run.header.config.workload.conversational else None,
            server=dataclasses.replace(
                server,
                prefix_cache_ideal_hit_rate=finite(check.ideal),
                prefix_cache_hit_rate_at_least=finite(check.at_least),
            ),
            energy=energy_summary(self.run, period),
            trust=trust_summary(self.run, samples, timeline=self.timeline, period=period, cache=check),
        )

    def costed(self, measured: Measurements, selection: Selection, *, steady_in: Period | None = None) -> Measurements:
        """Add the costs, if the run has a price; with intervals for a period of constant load."""
        prices = self.prices
        if prices is None:
            return measured
        counted, run = measured.server.prefix_cache_hit_rate, self.run
        share = self.cache.rate_of_responses(selection) if counted is None else counted
        rates = served_rates(measured.requests, share, weights=weights_of(prices), run=run, steady_in=steady_in)
        return dataclasses.replace(measured, cost=cost_summary(prices, rates, gpus=len(run.meters) or None))


def cell_summaries(reader: RecordingReader, stage: int) -> tuple[StageSummary, ...]:
    """Summarise the stages that measured the cell of a stage as a whole: its repeats so far, also while the run grows.

    Empty if that stage itself did not, or if a command changed its load.
    """
    source = _Source.load(reader, percentiles=None, prices=(), end=None)
    attempts = source.run.attempts
    of_cell = attempts.get(stage)
    if of_cell is None or of_cell.state is not AttemptState.WHOLE or of_cell.steered:
        return ()
    load = of_cell.key.load
    whole = {each.stage for each in attempts.values() if each.state is AttemptState.WHOLE and each.key.load == load}
    return _stage_summaries(source, CoolDowns.load(reader, source.run), only=None, among=whole)


def _stage_summaries(
    source: _Source, cooldowns: CoolDowns, *, only: Measurements | None, among: Container[int] | None = None
) -> tuple[StageSummary, ...]:
    """Summarise all stages except warm-ups, or those of `among`.

    `only` are the measurements of the only stage, if there is one.
    """
    run, windows = source.run, _known_windows(source.reader, source.run)
    return tuple(
        _stage_summary(
            source,
            stage,
            cooldowns=cooldowns,
            only=only,
            steady=_steady(source, stage.change.index, windows=windows),
            attempt=run.attempts[stage.change.index],
        )
        for stage in run.every_stage
        if not stage.change.warmup and (among is None or stage.change.index in among)
    )


def _known_windows(reader: RecordingReader, run: RunColumns) -> Mapping[int, SteadyWindow]:
    """Return the stored windows if they were found by this version's method, else compute them."""
    stored = reader.steady
    usable = bool(stored) and all(window.method == METHOD for window in stored.values())
    return stored if usable else steady_windows(run)


def _steady(source: _Source, stage: int, *, windows: Mapping[int, SteadyWindow]) -> SteadySummary:
    window = windows.get(stage, SteadyWindow(reason="the run ended before the search for it"))
    if window.start is None or window.end is None:
        return steady_summary(window, None)
    period = Period(start=window.start, until=window.end)
    selection = Selection(stage=stage, start=window.start, until=window.end)
    measured = with_rates_within(source.measure(selection, period), source.run, period)
    return steady_summary(window, source.costed(measured, selection, steady_in=period))


def _stage_summary(
    source: _Source,
    stage: StagePeriod,
    *,
    cooldowns: CoolDowns,
    only: Measurements | None,
    steady: SteadySummary,
    attempt: CellAttempt,
) -> StageSummary:
    change, period = stage.change, stage.period
    selection = _selection(stage, cooldowns)
    measured = only or source.costed(source.measure(selection, period), selection)
    return from_same_fields(
        StageSummary,
        change,
        stage=change.index,
        start=period.start,
        end=_end_of_run(source.run) if math.isinf(period.until) else period.until,
        preemptions=measured.server.preemptions,
        cooldown_requests=cooldowns.requests.get(change.index, 0),
        measured=measured,
        steady=steady,
        finished=attempt.state is AttemptState.WHOLE,
        outcome=attempt.state,
        failure=attempt.reason or None,
        steered=attempt.steered or None,
        counted=attempt.counts,
    )


def _selection(stage: StagePeriod, cooldowns: CoolDowns) -> Selection:
    index = stage.change.index
    return Selection(stage=index, excluded=tuple(pair for pair in cooldowns.starts.items() if pair[0] == index))


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
