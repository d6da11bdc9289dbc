"""The story of a recorded run, without the rest of its summary unless it is a sweep."""

from __future__ import annotations

from servetop.analysis.diagnosis.run_verdict import run_verdict
from servetop.analysis.story.story import story_of
from servetop.analysis.summary.measured_sweep import is_sweep
from servetop.analysis.summary.story_summary import StorySummary, story_summary
from servetop.analysis.sweep.sweep_verdict import SweepVerdict
from servetop.core.events import RunEnd
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.recorded_run import recorded_run
from servetop.reports.summary.summary import run_summary


def run_story(reader: RecordingReader, *, end: RunEnd | None = None) -> tuple[StorySummary, SweepVerdict | None]:
    """Return the story of a run as far as it is recorded, and of a sweep its verdict.

    `end` is the end of a run, if it is not recorded yet.
    """
    run = recorded_run(reader, end=end)
    summary = run_summary(reader, end=end) if is_sweep(run.header.config, run.stages) else None
    if summary is not None and summary.story is not None:
        return summary.story, summary.sweep
    return story_summary(story_of(run, run_verdict(run))), None


def recorded_sweep(reader: RecordingReader) -> SweepVerdict | None:
    """Return the verdict of a sweep by the exact figures of its summary; None for other runs."""
    reader.refresh()
    return run_summary(reader).sweep if is_sweep(reader.header.config, reader.stages()) else None
