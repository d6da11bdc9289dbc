"""One of several watched servers: its ticks, judged by the rules of a server that is watched alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from servetop.analysis.diagnosis.diagnosis import Bottleneck, Diagnosis
from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.engine_gauges import kv_usage
from servetop.analysis.exported.metric_values import metric_values, window_period
from servetop.analysis.exported.scrape_history import ScrapeHistory
from servetop.analysis.fleet.replica_row import (
    JUST_RESTARTED,
    NOT_READY,
    ReplicaClass,
    ReplicaRow,
    awaits_first_page,
    class_among,
    class_of,
    state_of,
)
from servetop.analysis.fleet.replica_rows import replica_history
from servetop.analysis.fleet.replica_ticks import ReplicaTicks
from servetop.analysis.fleet.sample_lifetimes import LONGEST_LIFETIME
from servetop.analysis.fleet.slower_servers import LOOKBACK, SLOWER, PacedServer, slower_text
from servetop.analysis.fleet.token_times import PROMPTS_WINDOW, TokenTimes
from servetop.analysis.live_stats import LiveStats, watched_stats
from servetop.analysis.series.client_columns import ClientColumns
from servetop.analysis.series.page_rates import WatchedHistory
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.interfaces.replica_change import ReplicaChange, ReplicaState
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.interfaces.series_scrape import SeriesScrape
from servetop.core.merged.sample_rows import SampleRow, SampleRows, last_sample
from servetop.core.merged.tick_rows import TickRows, last_tick
from servetop.core.text import formats
from servetop.engines.metrics.exported_tables import exported_metrics
from servetop.tui.state.judged_run import JudgedRun

WINDOW = 10.0
"""Seconds over which rates and quantiles are computed."""
_SCRAPES = 150
"""Scrapes, one a second, of the series that stay in memory while a watch is live."""
_OVERLOADS = (EpisodeKind.KV, EpisodeKind.PREEMPTIONS, EpisodeKind.BATCH, EpisodeKind.QUEUE)
_OVERLOADED = (Bottleneck.KV, Bottleneck.BATCH, Bottleneck.WAITING)
_FAILURES = (EpisodeKind.FAILING,)


class JudgedReplica:
    """The history of one server; `keep` ticks of it stay in memory, all of them if it is None."""

    def __init__(self, number: int, *, keep: int | None) -> None:
        self.number = number
        self.events = ReplicaTicks()
        self._keep = keep
        self.history: TickHistory = WatchedHistory()
        self.judged = JudgedRun(streamed=True, watched=True)
        self.scrapes = ScrapeHistory()
        self.token_times = TokenTimes()
        self._rows: list[SampleRow] = []
        """Samples that belong to the next ticks."""
        self._recent: list[SeriesScrape] = []
        self._facts_of = _parsed_once()

    def add(
        self, samples: Sequence[SampleRow], changes: Sequence[ReplicaChange], series: Sequence[SeriesScrape]
    ) -> None:
        """Add what is new of this server."""
        self._rows += samples
        self.events.add((), changes)
        self.scrapes.extend(series)
        if self._keep is not None:
            self._forget_series(series)

    def extend(self, ticks: TickRows, clients: ClientColumns | None = None) -> None:
        """Add the next ticks of the watch, and judge them; `clients` are the columns of the ticks, if known."""
        if ticks.merged and not len(self.history):
            self.history = replica_history(ticks.rows, self._rows, self.events.changes)
            stale = last_tick(ticks.rows[-1]).end - LONGEST_LIFETIME
            self.events.add(SampleRows(row for row in self._rows if last_sample(row).scrape_end > stale), ())
        else:
            self.events.add(SampleRows(self._rows), ())
            self.history.extend(self.events.ticks(ticks), clients=clients)
        self._rows = []
        self.token_times.follow(self.scrapes)
        at = self.history.ticks[-1].end if len(self.history) else 0.0
        self.judged.update(self.history, self.facts_at(at), until=len(self.history))
        if self._keep is not None and len(self.history) > 2 * self._keep:
            count = len(self.history) - self._keep
            self.history.drop_first(count)
            self.judged.drop_first(count)

    def facts_at(self, at: float) -> EngineFacts | None:
        """Return what was last known about its engine up to a time; None until it responds."""
        known = (each for each in reversed(self.events.changes) if each.at <= at and each.engine is not None)
        return self._facts_of(next(known, None))

    def compared(self, at: float) -> PacedServer | None:
        """Return it as one that is compared with others; None until it responds."""
        facts = self.facts_at(at)
        if facts is None:
            return None
        group = (facts.name, facts.version, facts.model)
        return PacedServer(number=self.number, group=group, times=self.token_times, history=self.history)

    def row(
        self, at: float, *, differs: str = "", slower: tuple[float, float] | None = None, latencies: bool = True
    ) -> ReplicaRow:
        """Return its state and figures at a time, with its `latencies` or without.

        `slower`: how many times slower than the others it is, and since when.
        """
        change, facts = self.events.change_at(at), self.facts_at(at)
        stats = watched_stats(self.history, at, window=WINDOW)
        verdict = self._verdict(stats)
        restarted = self.events.restarted_at(at)
        sample = stats.engine
        kind = class_of(
            change,
            verdict,
            kv=kv_usage(sample),
            restarted_for=None if restarted is None else at - restarted,
        )
        shown = kind not in (ReplicaClass.DEAD, ReplicaClass.UNKNOWN, ReplicaClass.REMOVED) and sample is not None
        row = ReplicaRow(
            number=self.number,
            name="" if change is None else change.name,
            url="" if change is None else change.url,
            kind=kind,
            state=state_of(change, verdict),
            since=self._since(change, verdict, stats),
            overloaded_until=overloaded_until(self.judged.episodes, at),
            failed_until=failed_until(self.judged.episodes, at),
            detail=_detail(change, verdict, kind),
            restarted_at=restarted if restarted is not None and at - restarted < JUST_RESTARTED else None,
            differs="",
            slower="",
            version="" if facts is None else facts.version or "",
            model="" if facts is None else facts.model or "",
            **(self._figures(stats) if shown else {}),
            **(self._latencies(facts, at) if shown and latencies else {}),
        )
        return _among_others(row, differs=differs, slower=slower) if shown else row

    def verdict(self, stats: LiveStats) -> Diagnosis:
        """Return the verdict at the time of the statistics; of a server that does not serve since when, and why."""
        change = self.events.change_at(stats.at)
        if change is not None and change.not_ready is not None:
            found = self._verdict(stats)
            state = state_of(change, found)
            if state in (NOT_READY, Bottleneck.DRAINING):
                named = "" if state == Bottleneck.DRAINING else f"{state} "
                texts = (f"{named}since {formats.clock(change.at)}", change.not_ready, *found.evidence)
                return Diagnosis(bottleneck=Bottleneck.DRAINING, evidence=texts)
            return found
        if change is None or change.state.responds or change.state is ReplicaState.ATTACHING:
            return self._verdict(stats)
        since = f"since {formats.clock(change.at)}"
        if change.state is ReplicaState.GONE:
            return Diagnosis(bottleneck=Bottleneck.NO_RESPONSE, evidence=tuple(filter(None, (since, change.reason))))
        state = f"{state_of(change, Diagnosis(bottleneck=Bottleneck.NO_METRICS))} {since}"
        return Diagnosis(bottleneck=Bottleneck.NO_METRICS, evidence=tuple(filter(None, (state, change.reason))))

    def _verdict(self, stats: LiveStats) -> Diagnosis:
        """Return the verdict by its metrics."""
        if awaits_first_page(self.events.change_at(stats.at), stats.engine, stats.at):
            return Diagnosis(bottleneck=Bottleneck.STARTING)
        facts = self.facts_at(stats.at)
        return self.judged.verdict(stats, self.history, facts=facts, stages=(), notes=())

    def _figures(self, stats: LiveStats) -> dict[str, float]:
        sample, rates = stats.engine, stats.rates
        assert sample is not None
        return {
            "running": math.nan if sample.running is None else sample.running,
            "waiting": math.nan if sample.waiting is None else sample.waiting,
            "kv": kv_usage(sample),
            "preemptions": rates.preemptions,
            "output": rates.engine_output_tokens,
        }

    def _latencies(self, facts: EngineFacts | None, at: float) -> dict[str, float]:
        pace = self.token_times.pace(np.array([at]))
        p90, bound = self._ttft_p90(facts, at)
        return {"ttft_p90": max(p90, bound), "ttft_first_bound": bound, "per_token": float(pace.seconds[0])}

    def _ttft_p90(self, facts: EngineFacts | None, at: float) -> tuple[float, float]:
        """Return the 90th percentile of TTFT, and the bound of the first bucket of its histogram, both seconds."""
        if facts is None or not self.scrapes.up_to(at):
            return math.nan, 0.0
        specs = [spec for spec in exported_metrics(facts) if spec.name == "TTFT"]
        values = metric_values(specs, window_period(self.scrapes, at - WINDOW, at))
        known = ((float(each.p90[-1]), each.first_bound) for each in values if each.p90 is not None)
        return next(known, (math.nan, 0.0))

    def _since(self, change: ReplicaChange | None, verdict: Diagnosis, stats: LiveStats) -> float:
        """Return when the state began, as far as that is known."""
        if change is None or not change.state.responds:
            return math.nan if change is None else change.at
        if state_of(change, verdict) in (NOT_READY, Bottleneck.DRAINING):
            return change.at
        return since_when(verdict, stats, self.judged.episodes)

    def _forget_series(self, series: Sequence[SeriesScrape]) -> None:
        """Keep only the newest scrapes, with the names that they need."""
        self._recent += series
        self.token_times.forget_before(self.token_times.until - LOOKBACK - 2 * PROMPTS_WINDOW)
        if len(self._recent) <= 2 * _SCRAPES:
            return
        named = [position for position, each in enumerate(self._recent) if each.names is not None]
        self.token_times.follow(self.scrapes)
        start = max((position for position in named if position <= len(self._recent) - _SCRAPES), default=0)
        newest = self._recent[-_SCRAPES:]
        names = self._recent[start].names
        first = SeriesScrape(at=newest[0].at, names=newest[0].names or names, numbers=newest[0].numbers)
        self._recent = [first, *newest[1:]]
        self.scrapes = ScrapeHistory()
        self.scrapes.extend(self._recent)


def _among_others(row: ReplicaRow, *, differs: str, slower: tuple[float, float] | None) -> ReplicaRow:
    """Return the row of a server that responds with what is not as at the others."""
    slower = None if row.kind is ReplicaClass.IDLE else slower  # it was slower in the last seconds
    kind = class_among(row.kind, slower=slower is not None, differs=bool(differs))
    row = replace(row, kind=kind, differs=differs, slower="" if slower is None else slower_text(slower[0]))
    if slower is None:
        return row
    if kind is ReplicaClass.SLOW:
        return replace(row, state=SLOWER, since=slower[1], detail=row.slower)
    return replace(row, detail=", ".join(filter(None, (row.detail, f"{SLOWER}: {row.slower}"))))


def _detail(change: ReplicaChange | None, verdict: Diagnosis, kind: ReplicaClass) -> str:
    """Return the evidence of a state, or why a server does not serve."""
    if change is not None and not change.state.responds:
        return change.reason
    not_ready = change.not_ready if change is not None and kind is ReplicaClass.DRAINING else None
    return ", ".join(filter(None, (not_ready, *verdict.evidence)))


def since_when(verdict: Diagnosis, stats: LiveStats, episodes: Sequence[Episode]) -> float:
    """Return when a server that responds came into its state, in seconds; NaN where that is not known."""
    if verdict.bottleneck is Bottleneck.NO_METRICS and stats.engine is not None:
        return stats.engine.scrape_end
    if verdict.bottleneck not in (*_OVERLOADED, Bottleneck.FAILING):
        return math.nan
    kinds = _FAILURES if verdict.bottleneck is Bottleneck.FAILING else _OVERLOADS
    active = [each for each in episodes if each.kind in kinds and each.is_active(stats.at)]
    return min((each.begin for each in active), default=math.nan)


def overloaded_until(episodes: Sequence[Episode], at: float) -> float:
    """Return when the last overload that is known at a time was seen last; NaN without one."""
    return _seen_until(episodes, at, _OVERLOADS)


def failed_until(episodes: Sequence[Episode], at: float) -> float:
    """Return when requests failed last, as far as it is known at a time; NaN without such an episode."""
    return _seen_until(episodes, at, _FAILURES)


def _seen_until(episodes: Sequence[Episode], at: float, kinds: Sequence[EpisodeKind]) -> float:
    known = [each for each in episodes if each.kind in kinds and each.detected_at <= at]
    return max((each.seen_until if each.end is None else each.end for each in known), default=math.nan)


def _parsed_once() -> Callable[[ReplicaChange | None], EngineFacts | None]:
    """Return a function that parses the facts of each change once: what they are is compared by identity."""
    known: dict[str, EngineFacts | None] = {}

    def facts_of(change: ReplicaChange | None) -> EngineFacts | None:
        if change is None or change.engine is None:
            return None
        if change.engine not in known:
            known[change.engine] = change.facts
        return known[change.engine]

    return facts_of
