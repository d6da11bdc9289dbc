"""Loads the recordings to check, and refuses those that cannot be compared."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from servetop.analysis.comparison.alignment import ArmRun
from servetop.analysis.manifest.manifest_diff import (
    DifferenceKind,
    ManifestDifference,
    comparable,
    manifest_differences,
)
from servetop.analysis.summary.summary_types import RunSummary
from servetop.core.errors import NotARecordingError, RecordingError, UsageError
from servetop.core.interfaces.run_source import RunHeader
from servetop.recordings.comparison.load_arm import load_arm_run
from servetop.recordings.library.catalog import resolve
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.summary.summary import run_summary


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckedRun:
    """A recording with everything that a check needs of it."""

    path: Path
    header: RunHeader
    summary: RunSummary
    arm: ArmRun | None
    """The measurements to compare; None if there is nothing to compare with."""

    @property
    def name(self) -> str:
        """The name of the file without its ending."""
        return self.path.stem

    @property
    def identity(self) -> tuple[object, ...]:
        """What copies of a recording have in common."""
        anchor = self.header.anchor
        return anchor.wall_epoch_s, anchor.origin_ns, self.header.pid


def load_checked_runs(
    names: Sequence[str], *, percentiles: Sequence[float] = (), compared: bool = False
) -> list[CheckedRun]:
    """Load recordings that are starts of one configuration; `compared` also loads what a comparison needs.

    UsageError for one that does not exist, is still being written or is given twice; RecordingError for a damaged one.
    """
    runs: list[CheckedRun] = []
    for name in names:
        run = _load(name, percentiles=percentiles, compared=compared)
        twice = next((each for each in runs if each.identity == run.identity), None)
        if twice is not None:
            raise UsageError(f"{run.path} and {twice.path} are the same run: a start counts only once")
        runs.append(run)
    return runs


def _load(name: str, *, percentiles: Sequence[float], compared: bool) -> CheckedRun:
    try:
        path = resolve(name)
    except RecordingError as error:
        raise UsageError(str(error)) from error
    try:
        opened = RecordingReader.open(path)
    except NotARecordingError as error:
        raise UsageError(str(error)) from error
    with contextlib.closing(opened) as reader:
        if reader.is_live():
            raise UsageError(f"{path} is still being written: wait for the end of its run (servetop ps lists it)")
        kept = {*reader.header.config.metric_percentiles, *percentiles}
        run = CheckedRun(
            path=path,
            header=reader.header,
            summary=run_summary(reader, percentiles=sorted(kept)),
            arm=load_arm_run(reader) if compared else None,
        )
        if reader.damage is not None:
            raise RecordingError(f"{path} is damaged: {reader.damage} (servetop verify shows what is sound)")
        return run


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
        if run.summary.recording_state == "broken-off":
            lines.append(f"{run.path} is broken off: the end of its run is missing")
        elif run.summary.error:
            lines.append(f"{run.path} ended with exit code {run.summary.exit_code}: {run.summary.error}")
    return lines


def known_changes(baseline: CheckedRun, run: CheckedRun) -> tuple[ManifestDifference, ...]:
    """Return what is known to differ between the engines and clients of two runs."""
    kinds = (DifferenceKind.SETTING, DifferenceKind.CLIENT)
    found = manifest_differences(baseline.header, run.header)
    return tuple(each for each in found if each.kind in kinds and not each.unknown)
