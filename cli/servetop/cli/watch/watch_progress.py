"""The progress of a watch without a dashboard: a line when something changes, and the state every few seconds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from servetop.analysis.diagnosis.diagnosis import Bottleneck, Diagnosis
from servetop.analysis.live_stats import LiveStats, live_stats
from servetop.core.events import Note, Severity
from servetop.core.text import formats
from servetop.core.text.sanitize import sanitize_line
from servetop.engines.watching.health_check import HEALTH_SECONDS
from servetop.recordings.read.reader import RecordingReader
from servetop.run import console
from servetop.run.process.recording_trouble import RECORDER
from servetop.tui.drawing.quantities import value_text
from servetop.tui.state.engine_page import Activity, EnginePage, MetricLine
from servetop.tui.state.run_state import RunState

SECONDS_BETWEEN_LINES = 10.0
SHORT_NAMES = {"TTFT": "TTFT", "ITL": "ITL", "TPOT": "TPOT", "E2EL": "E2EL", "time in the queue": "queued"}
"""Latencies of the engine page in the line, with their names there."""
_MOST_UNKNOWN = 4
"""Metrics of an unknown engine in a line."""
_PRINTED = ("engine", "metrics", "user")
"""Sources whose notes are news of the server, whatever their severity."""


class WatchProgress:
    """Follows the growing recording of a watch, as a dashboard does, and prints what happens."""

    def __init__(self, recording: Path) -> None:
        self._reader = RecordingReader.open(recording)
        self._state = RunState(self._reader.header, read=self._reader.past_ticks)
        self._next = 0.0
        self._shown: Bottleneck | None = None
        self._answers_since = math.nan
        """Since when a server without known metrics answers, in seconds; NaN if it does not, or has such metrics."""

    def show(self) -> None:
        """Print what is new."""
        update = self._reader.poll()
        self._state.fold(update)
        for note in update.notes:
            if is_printed(note):
                self.print_line(line_of(note))
        if not len(self._state.history) or self._state.header.engine is None:
            return
        at = self._state.history.ticks[-1].end
        stats = live_stats(self._state.history, at, span=1.0)
        verdict = self._state.verdict(stats)
        self._show_verdict(at, verdict)
        if verdict.bottleneck is not Bottleneck.NOT_JUDGED or stats.engine is None:
            self._answers_since = math.nan
        elif math.isnan(self._answers_since):
            self._answers_since = stats.engine.scrape_start
        if at >= self._next:
            self._next = at + SECONDS_BETWEEN_LINES
            page = self._state.engine_metrics.page(self._state.header, at, 1, until=at, span=1.0)
            self.print_line(state_line(stats, page, answers_since=self._answers_since))

    def _show_verdict(self, at: float, verdict: Diagnosis) -> None:
        """Print a verdict that is another one than before."""
        if verdict.bottleneck is not self._shown:
            self._shown = verdict.bottleneck
            self.print_line(f"{formats.clock(at)}  {verdict.line}")

    def print_line(self, line: str) -> None:
        """Print a line at once."""
        console.status(line)

    def close(self) -> None:
        """Print what is new at the end."""
        try:
            self.show()
        finally:
            self._reader.close()


def state_line(stats: LiveStats, page: EnginePage, *, answers_since: float = math.nan) -> str:
    """Return the server's own figures of the last ten seconds in one line; what it does not export is left out."""
    latencies = _latencies(page) if stats.is_watched_now else ()
    figures = [*_figures(stats), *latencies]
    if stats.engine is not None and not math.isnan(answers_since):
        took = formats.seconds(stats.engine.scrape_end - stats.engine.scrape_start)
        figures = [f"answers in {took} since {formats.clock(answers_since)}", *_unknown(page)]
    return " │ ".join([f"{formats.clock(stats.at)}  engine", *figures])


def _unknown(page: EnginePage) -> Iterator[str]:
    """Yield the first metrics of an unknown engine by their own names, or that there are none."""
    lines = [line for group in page.groups for line in group.lines if line.source != HEALTH_SECONDS]
    active = [line for line in lines if line.activity is Activity.ACTIVE and not page.outdated]
    for line in active[:_MOST_UNKNOWN]:
        value = value_text(line.value, line.spec.unit, p90=line.p90, at_most=line.at_most, bucket=line.bucket)
        yield sanitize_line(f"{line.spec.name} {line.label}".strip() + f" = {value}")
    if not lines:
        yield "no metrics"


def _figures(stats: LiveStats) -> Iterator[str]:
    rates, sample = stats.rates, stats.engine
    if sample is None:
        yield "no metrics"
        return
    if not stats.is_watched_now:
        yield f"no metrics since {formats.clock(sample.scrape_end)}"
        return
    if not math.isnan(rates.engine_output_tokens):
        yield f"out {formats.count(rates.engine_output_tokens)} tok/s"
    if sample.running is not None:
        yield f"running {sample.running:.0f}"
    if sample.waiting is not None:
        yield f"waiting {sample.waiting:.0f}"
    if sample.kv_usage is not None:
        yield f"KV {formats.percent(sample.kv_usage)}"
    if not math.isnan(rates.preemptions):
        yield f"preemptions {rates.preemptions:.1f}/s"
    if rates.engine_failed_share > 0:
        yield f"failed {formats.percent(rates.engine_failed_share)}"
    if not math.isnan(rates.prefix_cache_hit_rate):
        yield f"cache hits {formats.percent(rates.prefix_cache_hit_rate)}"


def _latencies(page: EnginePage) -> Iterator[str]:
    lines = {line.spec.name: line for group in page.groups for line in group.lines if not page.outdated}
    for name, short in SHORT_NAMES.items():
        if name in lines and not math.isnan(lines[name].value):
            yield f"{short} {_quantiles(lines[name])}"


def _quantiles(line: MetricLine) -> str:
    p90 = math.nan if line.p90 is None else line.p90
    return f"p50 {formats.seconds(line.value)} p90 {formats.seconds(p90)}"


def is_printed(note: Note) -> bool:
    """Whether a note is printed here: not one of the run or the recorder, which are printed at once or at the end."""
    return note.source not in ("run", RECORDER) and (note.source in _PRINTED or note.severity is not Severity.INFO)


def line_of(note: Note) -> str:
    """Return a note with its time."""
    if note.severity is Severity.INFO:
        return f"{formats.clock(note.at)}  {note.text}"
    return f"{formats.clock(note.at)}  {note.severity.value}: {note.source}: {note.text}"
