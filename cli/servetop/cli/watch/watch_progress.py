"""The progress of a watch without a dashboard: a line when something changes, and the state every few seconds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

from servetop.analysis.diagnosis.diagnosis import Bottleneck, Diagnosis
from servetop.analysis.live_stats import LiveStats, live_stats
from servetop.core.events import Note, Severity
from servetop.core.text import formats
from servetop.recordings.read.reader import RecordingReader
from servetop.run import console
from servetop.run.process.recording_trouble import RECORDER
from servetop.tui.state.engine_page import EnginePage, MetricLine
from servetop.tui.state.run_state import RunState

SECONDS_BETWEEN_LINES = 10.0
SHORT_NAMES = {"TTFT": "TTFT", "ITL": "ITL", "TPOT": "TPOT", "E2EL": "E2EL", "time in the queue": "queued"}
"""Latencies of the engine page in the line, with their names there."""
_PRINTED = ("engine", "metrics", "user")
"""Sources whose notes are news of the server, whatever their severity."""


class WatchProgress:
    """Follows the growing recording of a watch, as a dashboard does, and prints what happens."""

    def __init__(self, recording: Path) -> None:
        self._reader = RecordingReader.open(recording)
        self._state = RunState(self._reader.header, read=self._reader.past_ticks)
        self._next = 0.0
        self._shown: Bottleneck | None = None

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
        self._show_verdict(at, self._state.verdict(stats))
        if at >= self._next:
            self._next = at + SECONDS_BETWEEN_LINES
            page = self._state.engine_metrics.page(self._state.header, at, 1, until=at, span=1.0)
            self.print_line(state_line(stats, page))

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


def state_line(stats: LiveStats, page: EnginePage) -> str:
    """Return the server's own figures of the last ten seconds in one line; what it does not export is left out."""
    latencies = _latencies(page) if stats.is_watched_now else ()
    return " │ ".join([f"{formats.clock(stats.at)}  engine", *_figures(stats), *latencies])


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
