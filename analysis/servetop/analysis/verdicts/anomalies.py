"""Anomalies of a run: the times at which something started to go wrong, and the knee of the load.

A fold over ticks, stages and log lines as they arrive. Anomalies are never withdrawn, except that the knee changes as
further stages end. Each rule reports an anomaly once, and again only after it has been absent for a while.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from servetop.analysis.engine_gauges import KV_HIGH, KV_ROOMY, kv_usage
from servetop.analysis.knee import knee
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.verdicts.diagnosis import KEEPS_UP, QUEUE_GROWS
from servetop.core.events import LogLine, Severity, StageChange
from servetop.core.tick import TICK_SECONDS, Tick

QUIET = 10.0
"""Seconds that an anomaly must be absent before it is reported again."""
STALL = 2.0
"""Seconds without any token while requests are in flight."""
QUEUE_WINDOW = 20.0
"""Seconds over which a queue must have grown."""
_MIN_GROWTH = 5
"""Minimum growth in requests; less may be random."""
_LEVEL = re.compile(
    r"(?P<warning>(?i:WARN))|(?P<info>\b(?:INFO|DEBUG)\b)|(?i:ERROR\b|\b(?:CRITICAL|FATAL|TRACEBACK)\b)"
)
"""A log level, or the word error in any case."""
_LEVEL_SEARCH_CHARS = 200
"""Leading characters of a log line that are searched for its level."""


class AnomalyKind(StrEnum):
    """The kinds of anomalies."""

    PREEMPTIONS = "preemptions started"
    KV_FULL = "KV blocks above 90 %"
    QUEUE = "queue growing"
    STALL = "stall"
    LOG_ERROR = "error in the engine's log"
    KNEE = "knee"


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """One anomaly; `at` is when it started, which may precede the tick at which it was detected."""

    at: float
    kind: AnomalyKind
    text: str


def severity_of(text: str) -> Severity:
    """Return the severity of an engine's log line by the first level in it, because a warning may mention an error."""
    level = _LEVEL.search(text[:_LEVEL_SEARCH_CHARS])
    if level is None or level["info"]:
        return Severity.INFO
    return Severity.WARNING if level["warning"] else Severity.ERROR


@dataclass(slots=True, eq=False)
class AnomalyDetector:
    """Finds anomalies in a growing run; `found` is in order of detection."""

    streamed: bool = True
    """Whether responses are streamed; without streaming, stalls cannot be detected."""
    found: list[Anomaly] = field(default_factory=list)
    knee: Anomaly | None = None
    _seen: int = 0
    _last_seen: dict[AnomalyKind, float] = field(default_factory=dict)
    """The time at which each kind was last observed."""
    _kv_armed: bool = True
    _queue_grew: bool = False
    _silent: int = 0
    _any_token: bool = False
    _points: list[tuple[StageChange, float]] = field(default_factory=list)
    """Finished stages with their TTFT p90."""

    @property
    def all(self) -> tuple[Anomaly, ...]:
        """All anomalies, including the knee, in order of time."""
        return tuple(sorted([*self.found, *([self.knee] if self.knee else [])], key=lambda anomaly: anomaly.at))

    def update(self, history: TickHistory) -> None:
        """Process the ticks added since the last call."""
        for position in range(self._seen, len(history)):
            tick = history.ticks[position]
            self._kv(tick)
            self._preemptions(history, position)
            self._stall(tick)
            if tick.index % 4 == 3:
                self._queue(history, position)
        self._seen = len(history)

    def update_log(self, lines: Sequence[LogLine]) -> None:
        """Process new log lines."""
        for line in lines:
            if severity_of(line.text) is Severity.ERROR:
                self._start(AnomalyKind.LOG_ERROR, line.at, line.text.strip())

    def stage_ended(self, stage: StageChange, *, until: float, history: TickHistory) -> None:
        """Update the knee with a stage that has ended."""
        ticks = {"start": history.first_from(stage.at), "stop": history.first_from(until)}
        if stage.request_rate is None or stage.warmup or math.isinf(stage.request_rate):
            return
        self._points.append((stage, history.histogram("ttft", **ticks).percentile(90)))
        same = [each for each in self._points if each[0].max_num_seqs == stage.max_num_seqs and not math.isnan(each[1])]
        same.sort(key=lambda each: each[0].request_rate or 0.0)
        index = knee([each[0].request_rate or 0.0 for each in same], [each[1] for each in same])
        if index is not None:
            at, rate = same[index][0].at, same[index][0].request_rate
            self.knee = Anomaly(at=at, kind=AnomalyKind.KNEE, text=f"knee: TTFT rises beyond {rate:g} req/s")

    def _start(self, kind: AnomalyKind, at: float, text: str) -> None:
        before = self._last_seen.get(kind, -math.inf)
        self._last_seen[kind] = at
        if at - before >= QUIET:
            self.found.append(Anomaly(at=at, kind=kind, text=text))

    def _kv(self, tick: Tick) -> None:
        usage = kv_usage(tick.engine)
        if math.isnan(usage):
            return
        if usage > KV_HIGH and self._kv_armed:
            self.found.append(Anomaly(at=tick.end, kind=AnomalyKind.KV_FULL, text=AnomalyKind.KV_FULL.value))
        self._kv_armed = usage < KV_ROOMY or (self._kv_armed and usage <= KV_HIGH)

    def _preemptions(self, history: TickHistory, position: int) -> None:
        if history.value("preemptions", position) > 0:
            self._start(AnomalyKind.PREEMPTIONS, history.ticks[position].end, AnomalyKind.PREEMPTIONS.value)

    def _stall(self, tick: Tick) -> None:
        client = tick.client
        silent = self.streamed and self._any_token and not client.output_tokens and client.gauges.in_flight > 0
        self._any_token = self._any_token or client.output_tokens > 0
        self._silent = self._silent + 1 if silent else 0
        if self._silent == round(STALL / TICK_SECONDS) + 1:
            text = f"stall: no token for {STALL:g} s, {client.gauges.in_flight} in flight"
            self.found.append(Anomaly(at=tick.end - self._silent * TICK_SECONDS, kind=AnomalyKind.STALL, text=text))

    def _queue(self, history: TickHistory, position: int) -> None:
        start = position - round(QUEUE_WINDOW / TICK_SECONDS)
        grew = start >= 0 and queue_grew(history, start, position)
        if grew and not self._queue_grew:
            waiting = _queued(history, position)
            text = f"queue growing: {waiting:.0f} waiting, {QUEUE_WINDOW:g} s ago {_queued(history, start):.0f}"
            self._start(AnomalyKind.QUEUE, history.ticks[position].end, text)
        self._queue_grew = grew


def queue_grew(history: TickHistory, start: int, stop: int) -> bool:
    """Whether the queue grew between two ticks of one stage because fewer requests completed than were offered.

    If the engine does not export its queue, the requests in flight are used, and must have grown for twice as long.
    """
    first, last = history.ticks[start].client.gauges, history.ticks[stop].client.gauges
    growth = _queued(history, stop) - _queued(history, start)
    if first.stage != last.stage or last.stage < 0 or growth < _MIN_GROWTH:
        return False
    offered, done = (float(history.column(name, start=start + 1, stop=stop + 1).sum()) for name in ("due", "ok"))
    middle = _queued(history, (start + stop) // 2)
    rising = _queued(history, start) < middle < _queued(history, stop)
    if math.isnan(history.value("waiting", stop)):
        before = start - (stop - start)
        rising = rising and before >= 0 and history.ticks[before].client.gauges.stage == last.stage
    return rising and growth > QUEUE_GROWS * offered and done < KEEPS_UP * offered


def _queued(history: TickHistory, position: int) -> float:
    """Return the requests waiting after a tick at the engine (all in flight, if unknown) and at the client."""
    waiting = history.value("waiting", position)
    gauges = history.ticks[position].client.gauges
    return (gauges.in_flight if math.isnan(waiting) else waiting) + gauges.queued
