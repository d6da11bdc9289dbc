"""Loads the figures that the rules of honesty need, without decoding the times of the requests' chunks.

They are those of the summary; the gaps between tokens come from the histograms of the ticks.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from servetop.analysis.checks.stage_figures import StageFigures
from servetop.analysis.columns.request_columns import StageRequests
from servetop.analysis.columns.run_columns import Period, RunColumns, StagePeriod
from servetop.analysis.summary.engine_metrics import counted_hits, server_summary
from servetop.analysis.summary.in_flight_timeline import InFlightTimeline
from servetop.analysis.summary.steady_metrics import steady_windows
from servetop.analysis.summary.trust_metrics import trust_summary
from servetop.analysis.trust.cache_check import CacheCheck
from servetop.analysis.trust.steady_state import MIN_TICKS, SteadyWindow
from servetop.core.events import RequestStatus, StageChange
from servetop.core.histogram import LogHistogram
from servetop.core.tick import TICK_SECONDS
from servetop.recordings.read.load_requests import Selection, load_stage_requests, load_timeline
from servetop.recordings.read.load_run import load_run
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.cache_metrics import IdealCache, computed_prompts
from servetop.reports.summary.cooldown import CoolDowns


def load_figures(reader: RecordingReader) -> tuple[StageFigures, ...]:
    """Return the figures of a recording that is compared with no other; takes about 100 bytes per request."""
    requests, run = load_stage_requests(reader), load_run(reader)
    return load_stage_figures(reader, run, requests, cache=IdealCache.load(reader, run))


def load_stage_figures(
    reader: RecordingReader, run: RunColumns, requests: StageRequests, *, cache: IdealCache
) -> tuple[StageFigures, ...]:
    """Measure each stage with load, except warm-ups, from columns that were already read."""
    timeline, windows = load_timeline(reader), steady_windows(run)
    source = _Source(
        run=run,
        requests=requests,
        timeline=timeline,
        cooldowns=CoolDowns.load(reader, run),
        cache=cache,
    )
    return tuple(source.figures(stage, windows[stage.change.index]) for stage in run.stages if not stage.change.warmup)


def _label(stage: StageChange, steered: str) -> str:
    return f"{stage.label} ({steered})" if steered else stage.label


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Source:
    run: RunColumns
    requests: StageRequests
    timeline: InFlightTimeline
    cooldowns: CoolDowns
    cache: IdealCache

    def figures(self, stage: StagePeriod, window: SteadyWindow) -> StageFigures:
        """Return the figures of a stage without its cool-down, and of its steady window."""
        number = stage.change.index
        rows = self.requests.columns.part(self.requests.of_stage(number))
        whole = rows.part(slice(int(np.searchsorted(rows.due, self.cooldowns.starts.get(number, math.inf)))))
        excluded = tuple(pair for pair in self.cooldowns.starts.items() if pair[0] == number)
        compared, period, selection = whole, stage.period, Selection(stage=number, excluded=excluded)
        server = server_summary(self.run, period, timeline=self.timeline)
        prompts = computed_prompts(whole.prompt_tokens, whole.first_token_at)
        cache = self.cache.check(counted_hits(server), prompts, selection)
        if window.start is not None and window.end is not None:
            period = Period(start=window.start, until=window.end)
            compared = rows.part(slice(*np.searchsorted(rows.due, [period.start, period.until]).tolist()))
        generating, in_flight = self._flow(stage.period)
        return StageFigures(
            stage=number,
            label=_label(stage.change, self.run.attempts[number].steered),
            requests=whole.due.size,
            completed=int(whole.with_status(RequestStatus.OK).sum()),
            failed=int(whole.failed.sum()),
            compared_completed=int(compared.with_status(RequestStatus.OK).sum()),
            trust=trust_summary(self.run, compared, timeline=self.timeline, period=period, cache=CacheCheck()),
            steady_seconds=window.seconds,
            unsteady=window.reason,
            cache=cache,
            generating=generating,
            in_flight=in_flight,
        )

    def _flow(self, period: Period) -> tuple[float | None, float | None]:
        """Mean requests that wait for a token, and in flight; None without gaps, or over less than MIN_TICKS."""
        within = period.contains(self.run.tick_ends)
        gaps = LogHistogram.merged(itertools.compress(self.run.token_gaps, within))
        if not gaps.count or within.sum() < MIN_TICKS:
            return None, None
        in_flight = self.timeline.in_flight(self.run, self.run.tick_ends[within])
        return gaps.total / (int(within.sum()) * TICK_SECONDS), float(in_flight.mean())
