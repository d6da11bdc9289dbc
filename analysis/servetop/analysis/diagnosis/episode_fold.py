"""Folds the ticks and log lines of a growing run into its episodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from servetop.analysis.diagnosis.detectors import DETECTORS
from servetop.analysis.diagnosis.episode import KINDS, Episode, EpisodeKind
from servetop.analysis.diagnosis.log_severity import severity_of
from servetop.analysis.diagnosis.marks import LOOKBACK, WINDOW, Marks
from servetop.analysis.diagnosis.signals import Signals, replica_count
from servetop.analysis.diagnosis.trailing import ticks_of
from servetop.analysis.diagnosis.watched_signals import WATCHED_DETECTORS, may_open, of_engine
from servetop.analysis.engine_gauges import KV_HIGH
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.events import LogLine, Severity, StageChange
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import TICK_SECONDS

LOG_QUIET = 10.0
"""Seconds without an error in the log that end an episode of errors."""
MOST_TICKS = 4_000
"""Ticks that are judged at once, which takes some 50 ms."""
_BATCH_STEP = 8
"""Advised batch sizes are multiples of this, or smaller."""


@dataclass(slots=True, eq=False)
class EpisodeFold:
    """The episodes of a run, in order of detection; the fold has the same result however the ticks are grouped."""

    streamed: bool = True
    """Whether responses are streamed; without streaming, stalls cannot be detected."""
    watched: bool = False
    """Whether the server is watched under the load of other clients: the engine's counters stand for the client's."""
    judged: int = 0
    """Number of ticks judged so far."""
    _found: list[Episode] = field(default_factory=list)
    _open: dict[EpisodeKind, int] = field(default_factory=dict)
    """Index in `_found` of the episode of each kind that lasts."""
    _errors: list[LogLine] = field(default_factory=list)
    """Errors in the log that are later than the newest judged tick."""
    _recent: Signals | None = None
    """The ticks before the next one that the rules look back to."""
    _replicas: int = 1
    """The number of servers behind the run."""

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """All episodes by their beginning, of those that begin together the most serious first."""
        return tuple(sorted(self._found, key=lambda episode: (episode.begin, KINDS.index(episode.kind))))

    def update(
        self,
        history: TickHistory,
        facts: EngineFacts | None,
        *,
        stages: Sequence[StageChange] = (),
        most: int | None = None,
    ) -> bool:
        """Judge the ticks added since the last call, at most `most`; whether all are judged."""
        self._replicas = replica_count(facts)
        stop = len(history) if most is None else min(len(history), self.judged + most)
        for first in range(self.judged, stop, MOST_TICKS):
            self._judge(history, first, min(first + MOST_TICKS, stop), facts, stages)
        self.judged = stop
        self._judge_log(history)
        return stop == len(history)

    def update_log(self, lines: Sequence[LogLine]) -> None:
        """Add new log lines; their errors are judged with the ticks of their time."""
        self._errors += [line for line in lines if severity_of(line.text) is Severity.ERROR]

    def _judge_log(self, history: TickHistory) -> None:
        """Add the errors up to the newest judged tick; those of an engine that is being stopped do not count.

        A run stops its engine when nothing is in flight any more, and at its end after the last tick.
        """
        until = history.ticks[self.judged - 1].end if self.judged else -math.inf
        covered = [line for line in self._errors if line.at <= until]
        self._errors = self._errors[len(covered) :]
        for line in covered:
            if not _is_stopped(history, line.at):
                self._add_error(line)

    def _add_error(self, line: LogLine) -> None:
        last = self._open.get(EpisodeKind.ENGINE_ERROR)
        if last is not None and line.at - (self._found[last].end or 0.0) < LOG_QUIET:
            before = self._found[last]
            self._found[last] = replace(before, end=line.at, closed_at=line.at + LOG_QUIET, total=before.total + 1)
            return
        self._open[EpisodeKind.ENGINE_ERROR] = len(self._found)
        self._found.append(
            Episode(
                kind=EpisodeKind.ENGINE_ERROR,
                begin=line.at,
                detected_at=line.at,
                end=line.at,
                closed_at=line.at + LOG_QUIET,
                worst=1.0,
                worst_at=line.at,
                total=1.0,
                text=line.text.strip(),
            )
        )

    def _judge(
        self, history: TickHistory, first: int, stop: int, facts: EngineFacts | None, stages: Sequence[StageChange]
    ) -> None:
        recent = self._recent
        new = Signals.of(history, first, stop, facts=facts, stages=stages, loaded=not self.watched)
        if self.watched:
            new = of_engine(new, history, first, stop)
        elif not self.streamed:  # the first token arrives with the last
            new = replace(new, awaiting=np.full(len(new), math.nan))
        known = new if recent is None else recent.followed_by(new)
        if not self.watched:  # no client measured a TTFT
            known = known.with_base_ttft(judged=len(known) - len(new))
        self._recent = known.last(2 * ticks_of(LOOKBACK))
        rules = self._rules(known)
        signals = known.without_gaps() if rules else known
        for kind, rule in rules.items():
            self._follow(kind, rule(signals), signals, len(signals) - len(new))

    def _rules(self, signals: Signals) -> Mapping[EpisodeKind, Callable[[Signals], Marks]]:
        """Return the rules by which an episode can open or close in these ticks."""
        if self.watched:
            kinds = may_open(signals) | self._open.keys()
            return {kind: rule for kind, rule in WATCHED_DETECTORS.items() if kind in kinds}
        return {kind: rule for kind, rule in DETECTORS.items() if kind is not EpisodeKind.STALL or self.streamed}

    def _follow(self, kind: EpisodeKind, marks: Marks, signals: Signals, start: int) -> None:
        """Open, continue and close the episodes of one kind from tick `start` of the signals on."""
        position, stop = start, len(signals)
        while position < stop:
            lasting = self._open.get(kind)
            changes = np.flatnonzero((marks.opens if lasting is None else marks.closes)[position:])
            change = position + int(changes[0]) if changes.size else stop
            if lasting is None:
                if change < stop:
                    self._begin(kind, marks, signals, change)
                position = change + 1
                continue
            self._continue(lasting, marks, signals, position, min(change + 1, stop))
            if change < stop:
                self._close(kind, marks, signals, change)
            position = change + 1

    def _begin(self, kind: EpisodeKind, marks: Marks, signals: Signals, position: int) -> None:
        begin = marks.begin(position)
        worst = begin + int(np.argmax(marks.worst[begin : position + 1]))
        inferred = kind is EpisodeKind.BATCH and bool(np.isnan(signals.batch[position]))
        batch, fits = float((signals.most_running if inferred else signals.batch)[position]), 0
        if kind in (EpisodeKind.KV, EpisodeKind.PREEMPTIONS):
            batch, fits = batch / self._replicas, _fitting(signals, position, replicas=self._replicas)
        self._open[kind] = len(self._found)
        self._found.append(
            Episode(
                kind=kind,
                begin=float(signals.ends[begin]) - TICK_SECONDS,
                detected_at=float(signals.ends[position]),
                seen_until=float(signals.ends[position]),
                worst=float(marks.worst[worst]),
                worst_at=float(signals.ends[worst]),
                total=float(marks.amount[begin : position + 1].sum()),
                batch=batch,
                inferred=inferred,
                level=float(signals.kv_level[position]),
                fits=fits,
            )
        )

    def _continue(self, index: int, marks: Marks, signals: Signals, start: int, stop: int) -> None:
        if stop <= start:
            return
        before = self._found[index]
        worst = start + int(np.argmax(marks.worst[start:stop]))
        total = before.total + float(marks.amount[start:stop].sum())
        if marks.worst[worst] > before.worst:
            before = replace(before, worst=float(marks.worst[worst]), worst_at=float(signals.ends[worst]))
        active = np.flatnonzero(marks.active[start:stop])
        seen = float(signals.ends[start + int(active[-1])]) if active.size else before.seen_until
        self._found[index] = replace(before, total=total, seen_until=seen)

    def _close(self, kind: EpisodeKind, marks: Marks, signals: Signals, position: int) -> None:
        index = self._open.pop(kind)
        active = np.flatnonzero(marks.active[: position + 1])
        end = float(signals.ends[int(active[-1])]) if active.size else float(signals.ends[position])
        before = self._found[index]
        end = min(max(end, before.begin + TICK_SECONDS), float(signals.ends[position]))
        self._found[index] = replace(before, end=end, closed_at=float(signals.ends[position]))


def _is_stopped(history: TickHistory, at: float) -> bool:
    """Whether there is no load and nothing in flight at a time, after a load."""
    position = min(history.first_from(at), len(history) - 1)
    loaded = not math.isnan(history.value("request_rate", position)) or history.value("in_flight", position) > 0
    return not loaded and bool(history.column("sent", stop=position + 1).any())


def _fitting(signals: Signals, position: int, *, replicas: int) -> int:
    """Return how many sequences of the current length fill the KV cache of a replica to KV_HIGH; 0 if unknown."""
    recent = slice(max(0, position + 1 - ticks_of(WINDOW)), position + 1)
    running, kv = signals.running[recent], signals.kv[recent]
    full = (kv >= KV_HIGH) & (running > 0)
    if not full.any():
        return 0
    fitting = int(np.median(running[full] / kv[full]) * KV_HIGH / replicas)
    return fitting // _BATCH_STEP * _BATCH_STEP or fitting
