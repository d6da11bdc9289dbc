"""Resumes the recording of an interrupted run, whose run time continues where it stopped."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from servetop.analysis.cells.attempts import RESUMED
from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.errors import RecordingError
from servetop.core.events import Note, Severity
from servetop.core.text.known_secrets import redactor_of
from servetop.core.tick import TICK_SECONDS
from servetop.core.units import NS_PER_S
from servetop.recordings.format.liveness import Writer
from servetop.recordings.format.schema import add_missing_columns
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.connection import connect_for_writing
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStart:
    """Where a run starts or resumes: its clock anchor, and the numbers of its next tick, stage and request."""

    anchor: ClockAnchor
    """The clock anchor; that of a resumed run makes run time continue after the last tick."""
    first_tick: int = 0
    first_stage: int = 0
    first_request: int = 0


def resume_recording(path: Path, config: RunConfig | None = None) -> tuple[Recorder, RunStart]:
    """Open an interrupted recording for writing; RecordingError if it cannot be opened, or is still being written.

    `config` is that of the new session, with the secrets to redact, which the recorded one lacks.
    """
    with contextlib.closing(RecordingReader.open(path)) as reader:
        if reader.is_live():
            raise RecordingError(f"{path} is still being written: view it with servetop replay {path}")
        if reader.damage is not None:
            raise RecordingError(f"{path} is damaged ({reader.damage}): start a new run with another file")
        update, header = reader.poll(), reader.header
        first_request = reader.next_request()
    first_tick = update.ticks[-1].index + 1 if update.ticks else 0
    now = ClockAnchor.take()
    anchor = ClockAnchor(
        origin_ns=now.origin_ns - round(first_tick * TICK_SECONDS * NS_PER_S), wall_epoch_s=header.anchor.wall_epoch_s
    )
    recorder = Recorder(_connect(path, anchor), path, redactor=redactor_of(config or header.config))
    recorder.new_commands()  # skip those of the previous session
    resumed = _note(first_tick * TICK_SECONDS, now.wall_epoch_s - anchor.wall_epoch_s)
    recorder.commit(TickTransaction(notes=[resumed], in_flight=()))  # those of the previous session were lost with it
    stages = [stage.index for stage in update.stages]
    first_stage = max(stages, default=-1) + 1
    return recorder, RunStart(
        anchor=anchor, first_tick=first_tick, first_stage=first_stage, first_request=first_request
    )


def _connect(path: Path, anchor: ClockAnchor) -> sqlite3.Connection:
    try:
        connection = connect_for_writing(path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        add_missing_columns(connection)
        connection.execute(
            "UPDATE run SET origin_ns = ?, pid = ?, writer = ?, end_at = NULL, exit_code = NULL, end_reason = NULL,"
            " steady = NULL, headline = NULL, counted = NULL",
            (anchor.origin_ns, os.getpid(), Writer.this_process().to_json()),
        )
    except sqlite3.Error as error:
        raise RecordingError(f"cannot resume {path} ({error}): check its permissions") from error
    return connection


def _note(at: float, since_start: float) -> Note:
    text = f"resumed {since_start:.0f} s after the run started; run time does not include the interruption"
    return Note(at=at, severity=Severity.INFO, source=RESUMED, text=text)
