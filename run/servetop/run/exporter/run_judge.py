"""Trust and verdict of a live run, by the rules of the dashboard; computed when a scraper asks for them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from servetop.analysis.diagnosis.diagnosis import Bottleneck
from servetop.analysis.live_stats import LiveStats, live_stats, watched_stats
from servetop.analysis.series.page_rates import WatchedHistory
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.trust.trust_verdict import TrustVerdict
from servetop.core.config import RunConfig
from servetop.core.events import LogLine, Note, ReplicaSample, StageChange
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import Tick
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.tui.state.judged_run import JudgedRun

REFRESH_SECONDS = 10.0
"""Age from which a judgement is computed again: one costs twenty times as much as a page of the other metrics."""
MOST_TICKS = 1920
"""Ticks in memory, of which half are dropped then; eight minutes."""
BEFORE_FIRST = 400
"""Ticks that the first judgement knows: the last 100 s."""
MOST_PENDING = 40
"""Ticks that are judged together between two scrapes."""
_MOST_NOTES = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The judgement of one time of a run."""

    at: float
    """Seconds since the run's origin."""
    bottleneck: Bottleneck
    trust: TrustVerdict
    littles_law_error: float
    """NaN if unknown."""
    token_error: float
    """NaN if unknown."""


class RunJudge:
    """Judges a run from its first scrape on, and keeps no more than the last ticks before."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._facts: EngineFacts | None = None
        self._pending: deque[Tick] = deque(maxlen=BEFORE_FIRST)
        self._log_lines: deque[LogLine] = deque(maxlen=_MOST_NOTES)
        self._notes: deque[Note] = deque(maxlen=_MOST_NOTES)
        self._stages: list[StageChange] = []
        self._replicas: dict[int, ReplicaSample] = {}
        self._history: TickHistory | None = None
        self._judged = JudgedRun(streamed=config.workload.stream, watched=config.watch is not None)
        self._last: Judgement | None = None
        self._newest: float | None = None
        """The end of the newest tick."""

    def set_engine(self, facts: EngineFacts) -> None:
        """Take what is known of the engine."""
        self._facts = facts

    def add(self, transaction: TickTransaction) -> None:
        """Take what a tick adds to the run."""
        self._stages += transaction.stages
        self._notes += transaction.notes
        self._log_lines += transaction.log_lines
        self._replicas.update((each.replica, each) for each in transaction.replica_samples)
        if transaction.tick is not None:
            self._pending.append(transaction.tick)
            self._newest = transaction.tick.end
            if self._history is not None and len(self._pending) >= MOST_PENDING:
                self._judge(self._history)

    def judgement(self) -> Judgement | None:
        """Return the judgement of the newest tick, or one at most REFRESH_SECONDS older; None before the first tick."""
        newest = self._newest
        if newest is None or (self._last is not None and newest < self._last.at + REFRESH_SECONDS):
            return self._last
        if self._history is None:
            self._history = TickHistory() if self._config.watch is None else WatchedHistory()
        self._judge(self._history)
        stats = self._stats(self._history, newest)
        found = self._judged.verdict(
            stats,
            self._history,
            facts=self._facts,
            stages=[each for each in self._stages if each.at <= newest],
            notes=[each for each in self._notes if each.at <= newest],
            replicas=[each for _, each in sorted(self._replicas.items())],
        )
        self._last = Judgement(
            at=newest,
            bottleneck=found.bottleneck,
            trust=stats.trust.verdict,
            littles_law_error=stats.trust.littles_law_error,
            token_error=stats.trust.token_error,
        )
        return self._last

    def _stats(self, history: TickHistory, at: float) -> LiveStats:
        if self._config.watch is not None:
            return watched_stats(history, at)
        return live_stats(history, at, span=1.0, columns=1, objectives=self._config.goodput)

    def _judge(self, history: TickHistory) -> None:
        """Judge the pending ticks, and drop the oldest ones."""
        history.extend([*self._pending])
        self._pending.clear()
        self._judged.update(history, self._facts, [*self._log_lines], stages=self._stages)
        self._log_lines.clear()
        if len(history) > MOST_TICKS:
            count = len(history) - MOST_TICKS // 2
            history.drop_first(count)
            self._judged.drop_first(count)
