"""The data from which every part of a summary is computed, each part of it read once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from servetop.analysis.columns.request_columns import RequestColumns
from servetop.analysis.columns.run_columns import Period, RunColumns, StagePeriod
from servetop.analysis.cost.costs import cost_summary, served_rates, weights_of
from servetop.analysis.cost.hourly_price import recorded_prices
from servetop.analysis.summary.energy_metrics import energy_summary
from servetop.analysis.summary.engine_metrics import counted_hits, server_summary
from servetop.analysis.summary.in_flight_timeline import InFlightTimeline
from servetop.analysis.summary.request_metrics import finite, request_summary
from servetop.analysis.summary.steady_metrics import steady_windows
from servetop.analysis.summary.summary_types import Measurements
from servetop.analysis.summary.trust_metrics import trust_summary
from servetop.analysis.trust.steady_state import METHOD, SteadyWindow
from servetop.core.config_values.price import Prices
from servetop.core.errors import UsageError
from servetop.core.events import RunEnd
from servetop.core.merged.tick_rows import TickRows
from servetop.recordings.read.load_requests import Selection, load_timeline
from servetop.recordings.read.load_run import load_run
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.selected_requests import SelectedRequests
from servetop.reports.summary.cache_metrics import IdealCache, computed_prompts
from servetop.reports.summary.cooldown import CoolDowns, whole_selection
from servetop.reports.summary.turn_metrics import TURN_COLUMNS, turn_summaries


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SummarySource:
    """A run, and what its measurements need beside it."""

    reader: RecordingReader
    ticks: TickRows
    run: RunColumns
    cooldowns: CoolDowns
    windows: Mapping[int, SteadyWindow]
    """The steady window of each stage whose window was searched for."""
    selected: SelectedRequests
    """The requests of the whole run, and of its stages and their steady windows."""
    timeline: InFlightTimeline
    cache: IdealCache
    prices: Prices | None

    @classmethod
    def load(
        cls,
        reader: RecordingReader,
        *,
        percentiles: Sequence[float] | None = None,
        prices: Sequence[str] = (),
        end: RunEnd | None = None,
        whole: bool = True,
    ) -> SummarySource:
        """Read all but the requests; UsageError for a watch, which has none. Without `whole`, few stages are wanted."""
        if reader.header.config.watch is not None:
            raise UsageError(f"{reader.name} is a recorded watch, without requests: servetop summary has its figures")
        ticks = reader.ticks()
        run = load_run(reader, ticks=ticks, end=end)
        if percentiles is not None:
            config = dataclasses.replace(run.header.config, metric_percentiles=tuple(percentiles))
            run = dataclasses.replace(run, header=dataclasses.replace(run.header, config=config))
        cooldowns, windows = CoolDowns.load(reader, run), _known_windows(reader, run)
        conversational = run.header.config.workload.conversational
        return cls(
            reader=reader,
            ticks=ticks,
            run=run,
            cooldowns=cooldowns,
            windows=windows,
            selected=SelectedRequests(
                reader,
                tuple(_selections(run, cooldowns, windows)) if whole else (),
                others=TURN_COLUMNS if conversational else (),
            ),
            timeline=load_timeline(reader),
            cache=IdealCache.load(reader, run),
            prices=Prices.parse(prices) if prices else recorded_prices(run.header.config),
        )

    def measure(self, selection: Selection, period: Period, *, samples: RequestColumns | None = None) -> Measurements:
        """Measure the selected requests, loaded already if `samples` is given, and the period."""
        samples = samples or self.selected.of(selection)
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


def stage_selection(stage: StagePeriod, cooldowns: CoolDowns) -> Selection:
    """Return what selects the requests of a stage, without its cool-down."""
    index = stage.change.index
    return Selection(stage=index, excluded=tuple(pair for pair in cooldowns.starts.items() if pair[0] == index))


def steady_selection(stage: int, window: SteadyWindow) -> tuple[Selection, Period] | None:
    """Return what selects the requests of the steady window of a stage, and its period; None without a window."""
    if window.start is None or window.end is None:
        return None
    return Selection(stage=stage, start=window.start, until=window.end), Period(start=window.start, until=window.end)


def _selections(run: RunColumns, cooldowns: CoolDowns, windows: Mapping[int, SteadyWindow]) -> Iterator[Selection]:
    """Yield the selections of the whole run, of each of its stages, and of their steady windows."""
    yield whole_selection(run, cooldowns)
    for stage in run.every_stage:
        if not stage.change.warmup:
            yield stage_selection(stage, cooldowns)
            window = windows.get(stage.change.index)
            steady = None if window is None else steady_selection(stage.change.index, window)
            if steady is not None:
                yield steady[0]


def _known_windows(reader: RecordingReader, run: RunColumns) -> Mapping[int, SteadyWindow]:
    """Return the stored windows if they were found by this version's method, else compute them."""
    stored = reader.steady
    usable = bool(stored) and all(window.method == METHOD for window in stored.values())
    return stored if usable else steady_windows(run)
