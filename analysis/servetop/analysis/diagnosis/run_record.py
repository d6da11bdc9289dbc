"""Everything recorded about a run that its verdict and its story are computed from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from servetop.analysis.diagnosis.episode import Episode, EpisodeKind
from servetop.analysis.engine_gauges import describe_before
from servetop.analysis.goodput import share_within
from servetop.analysis.series.tick_history import TickHistory
from servetop.core.arrays import FloatArray
from servetop.core.events import Note, ReplicaSample, RunEnd, Severity, StageChange
from servetop.core.interfaces.run_source import RunHeader

FEW_PAGES = 2.0
"""Seconds between pages, or of their age, from which a run is known at its pages only."""
RESTARTING = "restarting the engine"
"""The end of the note with which a run restarts its engine."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunRecord:
    """A run up to its end, or up to its newest tick."""

    header: RunHeader
    history: TickHistory
    episodes: tuple[Episode, ...]
    stages: Sequence[StageChange] = ()
    notes: Sequence[Note] = ()
    end: RunEnd | None = None
    failure: str = ""
    """The most frequent reason of failed requests; empty if unknown."""
    replica_samples: Sequence[ReplicaSample] = ()
    """The samples of each replica, in order of time; empty for a single server."""

    @property
    def until(self) -> float:
        """The end of the newest tick, seconds."""
        return self.history.ticks[-1].end if len(self.history) else 0.0

    @property
    def page_gap(self) -> float:
        """Seconds between two metrics pages; 0 without pages."""
        scrapes = np.unique(self.history.column("scrape_end"))
        gaps = np.diff(scrapes[~np.isnan(scrapes)])
        return float(np.median(gaps)) if gaps.size else 0.0

    @property
    def longest_page_gap(self) -> float:
        """The most seconds of the load without a metrics page; NaN without a load."""
        scrapes = np.unique(self.history.column("scrape_end"))
        known = scrapes[(scrapes > self.load_since) & (scrapes < self.until)]
        return float(np.diff([self.load_since, *known, self.until]).max())

    @property
    def page_delay(self) -> float:
        """Seconds by which the newest page may be behind the engine: its age, and the time to the next one."""
        return self.page_gap + (0.0 if self.header.engine is None else self.header.engine.page_age)

    @property
    def sees_little(self) -> bool:
        """Whether so few, or so old, pages describe the engine that what lasts for seconds may be missed."""
        return self.page_delay > FEW_PAGES

    @property
    def at_scrapes(self) -> str:
        """Return what is said behind a figure of the metrics pages that see little, else an empty text."""
        return " at the scrapes" if self.sees_little else ""

    @property
    def load_since(self) -> float:
        """Start of the load without its warm-up, seconds; NaN if there was none."""
        return min((stage.at for stage in self.loads), default=math.nan)

    @property
    def loads(self) -> Sequence[StageChange]:
        """The stages with a load, without warm-ups."""
        return [stage for stage in self.stages if stage.request_rate is not None and not stage.warmup]

    def loads_as_at(self, at: float) -> Sequence[StageChange]:
        """Return the loads with the batch size of a time; before the first load, with that of the first."""
        before = [stage for stage in self.loads if stage.at <= at] or self.loads[:1]
        return [stage for stage in self.loads if stage.max_num_seqs == before[-1].max_num_seqs]

    @property
    def ttft_objective(self) -> float:
        """The objective on TTFT in seconds; NaN without one."""
        limit = self.header.config.goodput.get("ttft")
        return math.nan if limit is None else limit

    def share_in_time_of(self, first: int, stop: int) -> float:
        """The fraction of the first tokens of ticks that kept the objective on TTFT from due; NaN without one."""
        if math.isnan(self.ttft_objective):
            return math.nan
        return share_within(self.history.histogram("ttft_due", start=first, stop=stop), self.ttft_objective)

    def kv_usage(self, start: int = 0, stop: int | None = None) -> FloatArray:
        """KV usage of ticks, 0..1; NaN where unknown, and where a page may describe the time before its stage."""
        until = len(self.history) if stop is None else stop
        usage = self.history.column("kv_usage", start=start, stop=until)
        ends = np.array([tick.end for tick in self.history.ticks[start:until]], dtype=np.float64)
        age = 0.0 if self.header.engine is None else self.header.engine.page_age
        starts = np.array([each.at for each in self.stages])
        return np.where(describe_before(ends, starts, page_age=age), math.nan, usage)

    def of_kind(self, kind: EpisodeKind) -> list[Episode]:
        """Return the episodes of one kind under load."""
        return [each for each in self.episodes if each.kind is kind]

    def rate_at(self, at: float) -> float:
        """Return the target rate in force at a time, requests/s; NaN without a load, inf for a closed loop."""
        position = min(self.history.first_from(at), len(self.history) - 1)
        return self.history.value("request_rate", position) if position >= 0 else math.nan

    def total(self, column: str, start: float = 0.0, until: float = math.inf) -> float:
        """Return the sum of a column of the ticks between two times; NaN if it is not known in any."""
        first, stop = self.history.first_from(start), self.history.up_to(min(until, self.until))
        values = self.history.column(column, start=first, stop=max(stop, first))
        known = values[values == values]
        return float(known.sum()) if known.size else math.nan

    def total_of_loads(self, column: str, start: float, until: float) -> float:
        """The sum of a column over the loads that lasted at some time between two times; NaN if it is not known."""
        first = max((stage.at for stage in self.loads if stage.at <= start), default=0.0)
        return self.total(column, first, min((stage.at for stage in self.stages if stage.at > until), default=math.inf))

    def count(self, column: str, start: float = 0.0) -> int:
        """Return the sum of a column of the client's counts from a time on."""
        total = self.total(column, start)
        return 0 if math.isnan(total) else int(total)


def failure_reason(notes: Sequence[Note], at: float) -> str:
    """Return the newest reason of failing requests that the load noted up to a time; empty if there is none."""
    reasons = [note.text for note in notes if note.source == "load" and note.at <= at and note.severity != "info"]
    return reasons[-1].removesuffix("; a closed loop retries every second") if reasons else ""


def restarts(notes: Sequence[Note]) -> list[Note]:
    """Return the notes with which the run began to restart its engine, with `max_num_seqs BEFORE → AFTER` in them."""
    return [note for note in notes if note.source == "engine" and note.text.endswith(RESTARTING)]


def last_restart(notes: Sequence[Note]) -> float:
    """Return when the run last began to restart its engine, seconds; NaN if it did not."""
    return max((note.at for note in restarts(notes)), default=math.nan)


def run_failure(notes: Sequence[Note]) -> Note | None:
    """Return the note of the error that ends the run, such as an engine that was killed; None without one."""
    return next((note for note in notes if note.source == "run" and note.severity is Severity.ERROR), None)
