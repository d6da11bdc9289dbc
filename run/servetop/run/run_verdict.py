"""The end of a run: judged by all that was measured, and written into its recording."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from servetop.analysis.verdicts.steady_state import SteadyWindow
from servetop.core.config import RunConfig
from servetop.core.errors import ExitCode, RecordingError
from servetop.core.events import RunEnd
from servetop.core.text.known_secrets import redactor_of
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.run_columns import RunColumns
from servetop.recordings.summary.stored_steady import steady_windows
from servetop.recordings.summary.summary import run_summary
from servetop.recordings.summary.thresholds import check_thresholds
from servetop.recordings.write.recorder import Recorder
from servetop.run.outcome import decisive


def close_recording(recorder: Recorder, end: RunEnd, config: RunConfig) -> tuple[RunEnd, Mapping[str, Any] | None]:
    """How the run ended after all, with its last words redacted; what the recording lacks makes it a failed one.

    And the summary that it was judged by, where all is recorded.
    """
    steady: Mapping[int, SteadyWindow] | None = None
    summary = None
    try:
        with contextlib.closing(recorder.reader()) as reader:
            end, summary = _judged(end, config, reader)
            steady = steady_windows(RunColumns.load(reader))
    except RecordingError as error:
        end = decisive([end, RunEnd(at=end.at, exit_code=int(ExitCode.RUN_FAILED), reason=str(error))])
    recorder.close(_with_what_is_missing(end, recorder), steady=steady)
    end = _with_what_is_missing(end, recorder)  # the disk may have refused the end itself
    return replace(end, reason=redactor_of(config).text(end.reason)), None if recorder.unrecorded else summary


def _with_what_is_missing(end: RunEnd, recorder: Recorder) -> RunEnd:
    missing = recorder.unrecorded
    if missing is None:
        return end
    return decisive([end, RunEnd(at=end.at, exit_code=int(ExitCode.RUN_FAILED), reason=str(missing))])


def _judged(end: RunEnd, config: RunConfig, reader: RecordingReader) -> tuple[RunEnd, Mapping[str, Any] | None]:
    """A run that went well can still miss its thresholds, or have been limited by the client; with its summary then."""
    if end.exit_code != ExitCode.OK:
        return end, None
    summary = run_summary(reader, end=end)  # by the same figures that the summary will have
    unmet = check_thresholds(summary, config.thresholds)
    if summary["trust"]["verdict"] == "client-bound":
        unmet.append("the client was the bottleneck: " + ", ".join(summary["trust"]["reasons"]))
    if not unmet:
        return end, summary
    return RunEnd(at=end.at, exit_code=int(ExitCode.THRESHOLDS), reason="; ".join(unmet)), summary
