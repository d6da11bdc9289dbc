"""The judgement of the run on the screen: its episodes, the verdict of the time shown, and its story."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from servetop.analysis.diagnosis.diagnosis import Diagnosis
from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.diagnosis.episode_fold import EpisodeFold
from servetop.analysis.diagnosis.held_back import COLD_SECONDS
from servetop.analysis.diagnosis.moment import GROWTH_SECONDS, PEAK_SECONDS, Moment
from servetop.analysis.diagnosis.overload import OVERLOAD, limit_at
from servetop.analysis.diagnosis.run_record import RunRecord, failure_reason, last_restart, run_failure
from servetop.analysis.diagnosis.run_verdict import run_verdict
from servetop.analysis.diagnosis.verdict_now import verdict_now
from servetop.analysis.engine_gauges import kv_usages
from servetop.analysis.live_stats import LiveStats
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.story.story import Story, story_of
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.events import LogLine, Note, ReplicaSample, StageChange
from servetop.core.interfaces.run_source import EngineFacts

_JUDGED_AT_ONCE = 4_000
"""Ticks that are judged between two frames, so that opening a long recording does not delay the first one."""
_LIMIT_SECONDS = 10.0
"""Seconds that name the limit of a watched server's overload: the loads of others change, and with them the limit."""
_CALM = 3.0
"""Seconds without an overload, relative to those of the last one, after which a load counts as served."""
_CALM_SECONDS = 30.0
"""The least of these seconds."""
_STILL_PILED = 0.75
"""Requests in flight, relative to the most while they grew, from which they have not fallen much."""


class JudgedRun:
    """Judges the ticks of a run as they arrive; a long recording is judged bit by bit after it was opened."""

    def __init__(self, *, streamed: bool, watched: bool = False, scheduled: bool = False) -> None:
        """`streamed`: whether the run's responses are streamed; `watched`: whether it is a watch, without any.

        `scheduled`: as `RunHeader.is_scheduled_import`.
        """
        self._scheduled = scheduled
        self._fold = EpisodeFold(streamed=streamed, watched=watched)
        self._story: Story | None = None
        self._deferred = False
        self.complete = True
        """Whether all ticks are judged."""

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """All episodes found so far, by their beginning."""
        return self._fold.episodes

    @property
    def judged(self) -> int:
        """The number of ticks judged so far."""
        return self._fold.judged

    def drop_first(self, count: int) -> None:
        """Follow `TickHistory.drop_first` of ticks that are judged; their episodes stay."""
        self._fold.judged -= count

    def update(
        self,
        history: TickHistory,
        facts: EngineFacts | None,
        log_lines: Sequence[LogLine] = (),
        *,
        stages: Sequence[StageChange] = (),
        until: int | None = None,
    ) -> None:
        """Judge new ticks and log lines; of many ticks only the first ones, and the others with the next calls.

        `until`: judge all ticks up to this position instead.
        """
        self._fold.update_log(log_lines)
        most = _JUDGED_AT_ONCE if until is None else max(until - self._fold.judged, 0)
        self.complete = self._fold.update(history, facts, stages=stages, most=most)

    def verdict(
        self,
        stats: LiveStats,
        history: TickHistory,
        *,
        facts: EngineFacts | None,
        stages: Sequence[StageChange],
        notes: Sequence[Note],
        replicas: Sequence[ReplicaSample] = (),
    ) -> Diagnosis:
        """Return the verdict at the time of the statistics; `stages` and `notes` are those up to it.

        `replicas`: the newest sample of each of several replicas.
        """
        active = tuple(episode for episode in self._fold.episodes if episode.is_active(stats.at))
        loads = [stage.at for stage in stages if stage.request_rate is not None]
        recent = stats.at - _LIMIT_SECONDS if self._fold.watched else -math.inf
        restart, error = last_restart(notes), run_failure(notes)
        return verdict_now(
            Moment(
                stats=stats,
                facts=facts,
                watched=self._fold.watched,
                scheduled=self._scheduled,
                stage=stages[-1] if stages else None,
                load_since=min(loads, default=math.nan),
                restarting=max(loads, default=-math.inf) <= restart,
                restarted_at=min((at for at in loads if at > restart), default=math.nan),
                episodes=active,
                limit=limit_at(self._fold.episodes, history, facts, stats.at, since=recent),
                growth=_growth(history, max(stats.at - GROWTH_SECONDS, *loads, 0.0), stats.at),
                most_in_flight=_most_in_flight(history, stats, facts),
                overloaded_before=self._overloaded_before(stats, since=max(loads, default=0.0)),
                kv_peak=_kv_peak(history, stats),
                replicas=replicas,
                failure=failure_reason(notes, stats.at),
                ended_by="" if error is None else error.text,
            )
        )

    def _overloaded_before(self, stats: LiveStats, *, since: float) -> bool:
        """Whether requests piled up under this load, and still do, or an overload of it ended not long ago."""
        known = [each for each in self._fold.episodes if since <= each.begin and each.detected_at <= stats.at]
        piles = [each.worst for each in known if each.kind is EpisodeKind.IN_FLIGHT]
        ended = [
            stats.at - each.end < max(_CALM * (each.end - each.begin), _CALM_SECONDS)
            for each in known
            if each.kind in OVERLOAD and each.end is not None and each.begin >= since + COLD_SECONDS
        ]
        return any(ended) or stats.load.in_flight >= _STILL_PILED * max(piles, default=math.inf)

    def story(
        self,
        run: RunRecord,
        sweep: SweepVerdict | None = None,
        *,
        replicas: Callable[[], Sequence[ReplicaSample]] = tuple,
    ) -> Story | None:
        """Return the story of a finished run; None until all of it is judged, in the first frame of a long run, and
        of a watch.

        `sweep` is the verdict of a sweep; `replicas` returns the samples of each replica.
        """
        if not self.complete or run.end is None or self._fold.watched:
            return None
        if self._story is None and not self._deferred and len(run.history) > _JUDGED_AT_ONCE:
            self._deferred, self.complete = True, False
            return None
        if self._story is None:
            run = replace(run, replica_samples=replicas())
            self._story = story_of(run, run_verdict(run), sweep)
        return self._story


def _growth(history: TickHistory, start: float, until: float) -> float:
    """Return requests by which those in flight increased between two times; 0 right after the start of the run."""
    now, before = history.up_to(until) - 1, history.up_to(start) - 1
    return 0.0 if before < 0 else history.value("in_flight", now) - history.value("in_flight", before)


def _most_in_flight(history: TickHistory, stats: LiveStats, facts: EngineFacts | None) -> float:
    """Return the most requests in flight while a page of the window may have been written."""
    since = stats.at - stats.window - (0.0 if facts is None else facts.page_age)
    return float(history.column("in_flight", start=history.up_to(since), stop=history.up_to(stats.at)).max(initial=0.0))


def _kv_peak(history: TickHistory, stats: LiveStats) -> float:
    """Return the highest KV usage of the last seconds; NaN if unknown."""
    start, stop = history.up_to(stats.at - PEAK_SECONDS), history.up_to(stats.at)
    usage, used = (history.column(name, start=start, stop=stop) for name in ("kv_usage", "kv_blocks_used"))
    total = math.nan if stats.engine is None else stats.engine.kv_blocks_total or math.nan
    known = kv_usages(usage, used, np.full(used.shape, total))
    return float(np.nanmax(known)) if not np.isnan(known).all() else math.nan
