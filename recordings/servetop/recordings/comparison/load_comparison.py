"""Loads the recordings that the arguments of a command name, for a comparison."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from servetop.analysis.columns.request_columns import STATUSES
from servetop.analysis.columns.run_columns import RunColumns
from servetop.analysis.comparison_report.measured_arm import MeasuredArm, MeasuredRun
from servetop.analysis.confounding.conditions import RunConditions
from servetop.core.errors import UsageError
from servetop.core.events import RequestStatus
from servetop.core.tick import TICK_SECONDS
from servetop.recordings.comparison.load_arm import arm_run_of, compared_stages
from servetop.recordings.comparison.plain_requests import PlainRequests, load_plain_requests
from servetop.recordings.library.catalog import resolve
from servetop.recordings.library.paths import SUFFIX
from servetop.recordings.read.load_run import load_run
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.summary.run_conditions import run_conditions

_FAILED = (RequestStatus.ERROR, RequestStatus.TIMEOUT, RequestStatus.TRUNCATED)


def recordings_named(argument: str) -> tuple[Path, ...]:
    """Return the recordings of one configuration: a name, several with commas between them, or all of a folder.

    Names are those of `resolve`. UsageError for an empty list or folder, or a recording that is named twice.
    """
    whole = Path(argument).expanduser()
    if whole.is_dir():
        paths = sorted(path for path in whole.glob(f"*{SUFFIX}") if path.is_file())
        if not paths:
            raise UsageError(f"no recording in {argument}: give a folder with files *{SUFFIX}")
        return tuple(paths)
    if whole.is_file():
        return (whole,)
    paths = [resolve(name.strip()) for name in argument.split(",") if name.strip()]
    if not paths:
        raise UsageError(f"{argument!r} names no recording: servetop ls lists them")
    return tuple(paths)


def distinct_arms(arguments: Sequence[str]) -> list[tuple[Path, ...]]:
    """Return the recordings of each argument; UsageError if a recording occurs twice."""
    arms = [recordings_named(argument) for argument in arguments]
    seen: dict[tuple[int, int], Path] = {}
    for path in (path for arm in arms for path in arm):
        with contextlib.suppress(OSError):  # opening it reports the reason
            status = os.stat(path)
            key = (status.st_dev, status.st_ino)
            if key in seen:
                raise UsageError(f"{path} is given twice: a comparison needs different recordings")
            seen[key] = path
    return arms


def first_objectives(arms: Sequence[Sequence[Path]]) -> Mapping[str, float]:
    """Return the objectives (seconds by metric) of the first recording that has any; RecordingError if unreadable."""
    for path in (path for arm in arms for path in arm):
        with contextlib.closing(RecordingReader.open(path, examine=False)) as reader:
            if reader.header.config.goodput:
                return reader.header.config.goodput
    return {}


def load_arm(letter: str, paths: Sequence[Path], *, objectives: Mapping[str, float] | None = None) -> MeasuredArm:
    """Load all recordings of a configuration; `objectives` (seconds by metric) replaces those of its runs."""
    return MeasuredArm(letter=letter, runs=[load_measured_run(path, objectives=objectives) for path in paths])


def load_measured_run(path: Path, *, objectives: Mapping[str, float] | None = None) -> MeasuredRun:
    """Load one recording, finished or growing; RecordingError if it cannot be read."""
    reader = RecordingReader.open(path)
    try:
        requests = load_plain_requests(reader)
        run, conditions = _run_and_conditions(reader, requests)
        warmup = [stage.change.index for stage in run.stages if stage.change.warmup]
        counted = requests.table["status"][~np.isin(requests.table["stage"], warmup)]
        counts = {status: int((counted == code).sum()) for code, status in enumerate(STATUSES)}
        last = float(run.tick_ends[-1]) if run.tick_ends.size else TICK_SECONDS
        return MeasuredRun(
            path=str(path),
            header=run.header,
            arm=arm_run_of(run, requests, name=str(path), objectives=objectives),
            stage_indexes=tuple(compared_stages(run, requests)),
            conditions=conditions,
            seconds=last if run.end is None else run.end.at,
            requests=counted.size,
            failed=sum(counts[status] for status in _FAILED),
            completed=counts[RequestStatus.OK],
            running=reader.is_live(),
            ended=run.end is not None,
            damage=reader.damage,
        )
    finally:
        reader.close(merge_log=False)


def _run_and_conditions(reader: RecordingReader, requests: PlainRequests) -> tuple[RunColumns, RunConditions]:
    """Both read the ticks, which take more memory than what is kept of them."""
    ticks = reader.ticks()
    run = load_run(reader, ticks=ticks)
    return run, run_conditions(reader, ticks=ticks, requests=requests.lengths())
