"""Loads the recordings to check, and refuses those that cannot be compared."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servetop.analysis.checks.stage_figures import StageFigures
from servetop.analysis.comparison.alignment import ArmRun
from servetop.analysis.manifest.manifest_diff import (
    DifferenceKind,
    ManifestDifference,
    comparable,
    manifest_differences,
)
from servetop.analysis.summary.summary_json import summary_json
from servetop.core.errors import NotARecordingError, RecordingError, UsageError
from servetop.core.events import RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.comparison.baseline_comparison import cause_texts
from servetop.reports.comparison.load_comparison import RecordedColumns, recordings_named
from servetop.reports.comparison.measured_arm import MeasuredRun
from servetop.reports.summary.load_stage_figures import load_figures
from servetop.reports.summary.summary import run_summary


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckedRun:
    """A recording with everything that a check needs of it."""

    path: Path
    header: RunHeader
    end: RunEnd | None
    stages: Sequence[StageFigures]
    summary: Mapping[str, Any]
    """In JSON form; empty if no threshold needs it."""
    measured: MeasuredRun | None
    """As the comparison takes it; None if it is compared with nothing, which saves memory."""

    @property
    def name(self) -> str:
        """The name of the file without its ending."""
        return self.path.stem

    @property
    def compared(self) -> MeasuredRun:
        """The run as the comparison takes it."""
        if self.measured is None:
            raise ValueError(f"{self.path} was not loaded for a comparison")
        return self.measured

    @property
    def arm(self) -> ArmRun:
        """The stages of the run, as the comparison takes them."""
        return self.compared.arm

    @property
    def identity(self) -> tuple[object, ...]:
        """What copies of a recording have in common."""
        anchor = self.header.anchor
        return anchor.wall_epoch_s, anchor.origin_ns, self.header.pid


def load_checked_runs(
    names: Sequence[str],
    *,
    compared: bool,
    objectives: Mapping[str, float] | None = None,
    percentiles: Sequence[float] | None = None,
) -> list[CheckedRun]:
    """Load recordings that are starts of one configuration.

    Without `compared` they cannot be compared with others, which saves memory. `objectives` (seconds by metric)
    replaces those of the runs, and `percentiles` are those that thresholds need, None if there are no thresholds.
    UsageError for a recording that does not exist, is still being written or is given twice; RecordingError for a
    damaged one.
    """
    runs: list[CheckedRun] = []
    for path in itertools.chain.from_iterable(map(_paths, names)):
        run = _load(path, compared=compared, objectives=objectives, percentiles=percentiles)
        twice = next((each for each in runs if each.identity == run.identity), None)
        if twice is not None:
            raise UsageError(f"{run.path} and {twice.path} are the same run: a start counts only once")
        runs.append(run)
    return runs


def _paths(name: str) -> tuple[Path, ...]:
    try:
        return recordings_named(name)
    except RecordingError as error:
        raise UsageError(str(error)) from error


def _load(
    path: Path, *, compared: bool, objectives: Mapping[str, float] | None, percentiles: Sequence[float] | None
) -> CheckedRun:
    try:
        opened = RecordingReader.open(path)
    except NotARecordingError as error:
        raise UsageError(str(error)) from error
    with contextlib.closing(opened) as reader:
        if reader.is_live():
            raise UsageError(f"{path} is still being written: wait for the end of its run (servetop ps lists it)")
        stages, measured = _measured(reader, objectives) if compared else (load_figures(reader), None)
        checked = CheckedRun(
            path=path,
            header=reader.header,
            end=reader.end,
            stages=stages,
            summary={} if percentiles is None else _summary(reader, percentiles),
            measured=measured,
        )
        if reader.damage is not None:
            raise RecordingError(f"{path} is damaged: {reader.damage} (servetop verify shows what is sound)")
        return checked


def _measured(
    reader: RecordingReader, objectives: Mapping[str, float] | None
) -> tuple[Sequence[StageFigures], MeasuredRun]:
    columns = RecordedColumns.load(reader)
    return columns.stage_figures(), columns.measured(objectives=objectives)


def _summary(reader: RecordingReader, percentiles: Sequence[float]) -> Mapping[str, Any]:
    every = {*reader.header.config.metric_percentiles, *percentiles}
    return summary_json(run_summary(reader, percentiles=sorted(every)))


def refuse_unlike(runs: Sequence[CheckedRun], baselines: Sequence[CheckedRun], *, anyway: bool) -> list[str]:
    """Return warnings about what makes the recordings hard to compare; UsageError if their workloads differ.

    With `anyway`, that is a warning too.
    """
    warnings = [
        f"{run.path} and {baseline.path} are the same run"
        for run in runs
        for baseline in baselines
        if run.identity == baseline.identity
    ]
    first = baselines[0]
    for other in (*baselines[1:], *runs):
        unlike = comparable(first.header, other.header)
        if not unlike:
            continue
        listed = ", ".join(f"{each.key} is {each.a} and {each.b}" for each in unlike)
        text = f"{first.path} and {other.path} have different workloads: {listed}"
        if not anyway:
            raise UsageError(f"{text}; give --anyway to compare them")
        warnings.append(text)
    return warnings


def state_warnings(runs: Sequence[CheckedRun]) -> list[str]:
    """Return one line for each run that did not end as it should have."""
    lines = []
    for run in runs:
        end = run.end
        if end is None:
            lines.append(f"{run.path} is broken off: the end of its run is missing")
        elif end.exit_code:
            lines.append(f"{run.path} ended with exit code {end.exit_code}: {end.reason}")
    return lines


def other_cause_warnings(baseline: CheckedRun, run: CheckedRun) -> list[str]:
    """Return what else than the change may have caused a difference, in the loads that both recordings have."""
    return [f"other cause of a difference: {text}" for text in cause_texts(baseline.compared, run.compared)]


def known_changes(baseline: CheckedRun, run: CheckedRun) -> tuple[ManifestDifference, ...]:
    """Return what is known to differ between the engines and clients of two runs."""
    kinds = (DifferenceKind.SETTING, DifferenceKind.CLIENT)
    found = manifest_differences(baseline.header, run.header)
    return tuple(each for each in found if each.kind in kinds and not each.unknown)
