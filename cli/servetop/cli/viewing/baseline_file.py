"""The recording that `--against` names: checked before a run starts, opened when the dashboard asks for it."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from servetop.cli.options.output_options import DisplayOptions

if TYPE_CHECKING:
    from servetop.analysis.comparison.comparison import Comparison
    from servetop.core.events import StageChange
    from servetop.core.interfaces.run_source import RunSource
    from servetop.reports.comparison.measured_arm import MeasuredRun


def with_baseline_path(display: DisplayOptions) -> DisplayOptions:
    """Return the options with the path of the baseline instead of its name; RecordingError if it cannot be read.

    `latest` is the newest recording before the run that is about to start.
    """
    if not display.against:
        return display
    from servetop.recordings.library.catalog import resolve
    from servetop.recordings.read.reader import RecordingReader

    path = resolve(display.against).absolute()
    RecordingReader.open(path, examine=False).close(merge_log=False)
    return dataclasses.replace(display, against=str(path))


def comparer(display: DisplayOptions) -> Callable[[Path], Comparison] | None:
    """Return what compares a recording with the baseline; None without `--against`."""
    if not display.against:
        return None

    def compared(path: Path) -> Comparison:
        from servetop.reports.comparison.baseline_comparison import compare_with_baseline

        return compare_with_baseline(_finished_stages(Path(display.against)), _finished_stages(path))

    return compared


def _finished_stages(path: Path) -> MeasuredRun:
    """Return the run with the stages that are over."""
    from servetop.recordings.read.reader import RecordingReader
    from servetop.reports.comparison.load_comparison import RecordedColumns

    with contextlib.closing(RecordingReader.open(path, examine=False)) as reader:
        run = RecordedColumns.load(reader).measured()
        return without_stage_in_force(run, reader.stages()) if reader.is_live() else run


def without_stage_in_force(run: MeasuredRun, stages: Sequence[StageChange]) -> MeasuredRun:
    """Return the stages of a live run that are over; `stages` are all its changes."""
    from servetop.analysis.series.stage_clock import stage_spans

    in_force = min((span.start for span in stage_spans(stages) if math.isinf(span.until)), default=math.inf)
    over = [stage for stage in run.arm.stages if stage.start < in_force]
    return dataclasses.replace(run, arm=dataclasses.replace(run.arm, stages=over))


def baseline_opener(display: DisplayOptions) -> Callable[[], AbstractContextManager[RunSource]] | None:
    """Return what opens the baseline, and closes it again; None without `--against`."""
    if not display.against:
        return None

    def opened() -> AbstractContextManager[RunSource]:
        from servetop.recordings.read.reader import RecordingReader

        return contextlib.closing(RecordingReader.open(Path(display.against)))

    return opened
