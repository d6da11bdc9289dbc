"""Decides how a run ended from everything that was measured, and closes its recording."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import replace

from servetop.analysis.checks.thresholds import check_thresholds
from servetop.analysis.summary.steady_metrics import steady_windows
from servetop.analysis.summary.summary_types import RunSummary
from servetop.analysis.trust.steady_state import SteadyWindow
from servetop.analysis.trust.trust_verdict import TrustVerdict
from servetop.core.config import RANDOM, RunConfig
from servetop.core.errors import ExitCode, RecordingError
from servetop.core.events import RunEnd
from servetop.core.text.known_secrets import redactor_of
from servetop.recordings.read.load_run import load_run
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.cooldown import CoolDowns, whole_selection
from servetop.reports.summary.run_story import run_story
from servetop.reports.summary.summary import run_summary
from servetop.reports.summary.watch_checks import checked_watch
from servetop.reports.summary.watch_summary import watch_summary
from servetop.run.outcome import decisive
from servetop.run.search.search_end import searched_end


def close_recording(recorder: Recorder, end: RunEnd, config: RunConfig) -> tuple[RunEnd, RunSummary | None]:
    """Close the recording; return how the run ended, with secrets redacted, and the summary if all is recorded.

    An incomplete recording makes the run a failed one.
    """
    if config.watch is not None:
        return _close_watch(recorder, end, config), None
    steady: Mapping[int, SteadyWindow] | None = None
    summary, headline, counted = None, None, None
    try:
        with contextlib.closing(recorder.reader()) as reader:
            _note_ideal_rates(recorder, reader, config, at=end.at)
            end, summary = _judged(end, config, reader)
            run = load_run(reader, end=end)
            steady = steady_windows(run)
            counted = whole_selection(run, CoolDowns.load(reader, run)).as_json()
            story = summary.story if summary is not None else None
            headline = (story or run_story(reader, end=end)[0]).headline
            if reader.header.config.search is not None:
                end, headline, state = searched_end(reader, summary, end)
                recorder.commit(TickTransaction(search_states=[state]))
    except RecordingError as error:
        end = decisive([end, RunEnd(at=end.at, exit_code=int(ExitCode.RUN_FAILED), reason=str(error))])
    recorder.close(_with_missing_data(end, recorder), steady=steady, headline=headline, counted=counted)
    end = _with_missing_data(end, recorder)  # the end itself may not have been written
    return replace(end, reason=redactor_of(config).sentence(end.reason)), None if recorder.unrecorded else summary


def _close_watch(recorder: Recorder, end: RunEnd, config: RunConfig) -> RunEnd:
    headline = None
    try:
        with contextlib.closing(recorder.reader()) as reader:
            end = checked_watch(reader, end)
            headline = watch_summary(reader, end=end).headline
    except RecordingError as error:
        end = decisive([end, RunEnd(at=end.at, exit_code=int(ExitCode.RUN_FAILED), reason=str(error))])
    recorder.close(_with_missing_data(end, recorder), headline=headline)
    end = _with_missing_data(end, recorder)
    return replace(end, reason=redactor_of(config).sentence(end.reason))


def _note_ideal_rates(recorder: Recorder, reader: RecordingReader, config: RunConfig, *, at: float) -> None:
    """Record what only this machine can compute: what a prefix cache finds in the prompts of a dataset."""
    if config.workload.dataset in RANDOM or reader.header.imported is not None:
        return
    from servetop.run.cache.ideal_rates import ideal_rates_note

    note = ideal_rates_note(reader, config, at=at)
    if note is not None:
        recorder.commit(TickTransaction(tick=None, notes=[note]))


def _with_missing_data(end: RunEnd, recorder: Recorder) -> RunEnd:
    missing = recorder.unrecorded
    if missing is None:
        return end
    return decisive([end, RunEnd(at=end.at, exit_code=int(ExitCode.RUN_FAILED), reason=str(missing))])


def _judged(end: RunEnd, config: RunConfig, reader: RecordingReader) -> tuple[RunEnd, RunSummary | None]:
    """Return the end of a run, which fails if it missed a threshold or was limited by the client, and its summary."""
    if end.exit_code != ExitCode.OK:
        return end, None
    summary = run_summary(reader, end=end)  # the figures that the user will see
    unmet = check_thresholds(summary, config.thresholds)
    if summary.measured.trust.verdict == TrustVerdict.CLIENT_BOUND:
        unmet.append("the client was the bottleneck: " + ", ".join(summary.measured.trust.reasons))
    checks = summary.cell_thresholds
    if checks is not None and checks.unmet:
        unmet.append(checks.unmet)
    if not unmet and checks is not None and checks.undecided:
        return RunEnd(at=end.at, exit_code=int(ExitCode.CANNOT_TELL), reason=checks.undecided), summary
    if not unmet:
        return end, summary
    return RunEnd(at=end.at, exit_code=int(ExitCode.THRESHOLDS), reason="; ".join(unmet)), summary
