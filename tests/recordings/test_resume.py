"""An interrupted run continues in its file."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from servetop.analysis.cells.attempts import RESUMED
from servetop.core.clock import ClockAnchor, MonotonicClock
from servetop.core.config import RunConfig
from servetop.core.errors import RecordingError
from servetop.core.events import EngineSample, RequestRecord, RequestStatus, RunEnd, StageChange
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import ClientTick, Tick
from servetop.recordings.format.schema import USER_VERSION
from servetop.recordings.format.views import VIEWS
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.resume import resume_recording
from servetop.recordings.write.tick_transaction import TickTransaction
from tests.recordings.rows import change


def stage(index: int, at: float) -> StageChange:
    return StageChange(at=at, index=index, label="", request_rate=8.0, max_concurrency=None, max_num_seqs=None)


PLANNED = RunEnd(at=9.0, exit_code=0, reason="")
INTERRUPTED = RunEnd(at=9.0, exit_code=130, reason="interrupted")


def test_request_numbers_continue_above_the_highest_when_several_senders_left_gaps(tmp_path: Path) -> None:
    path = tmp_path / "gaps.servetop"
    recorder = Recorder.create(path, RunHeader(config=RunConfig(), anchor=ClockAnchor.take()))
    recorder.commit(TickTransaction(tick=Tick(client=ClientTick(index=0)), requests=[request(0), request(500)]))
    recorder.close(INTERRUPTED)
    recorder, start = resume_recording(path)
    assert start.first_request == 501
    recorder.close(INTERRUPTED)


def request(number: int) -> RequestRecord:
    nothing = np.empty(0), np.empty(0, dtype=np.int64)
    return RequestRecord(
        id=number,
        stage=0,
        due=1.0,
        prompt_tokens=4,
        status=RequestStatus.ERROR,
        chunk_times=nothing[0],
        chunk_tokens=nothing[1],
    )


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    path = tmp_path / "run.servetop"
    recorder = Recorder.create(path, RunHeader(config=RunConfig(label="night"), anchor=ClockAnchor.take()))
    for index in range(8):
        recorder.commit(
            TickTransaction(tick=Tick(client=ClientTick(index=index)), stages=[stage(0, 0.5)] if index == 2 else [])
        )
    recorder.close(INTERRUPTED)
    return path


def test_run_time_and_numbers_continue_where_they_stopped(interrupted: Path) -> None:
    recorder, start = resume_recording(interrupted)
    assert (start.first_tick, start.first_stage, start.first_request) == (8, 1, 0)
    assert 2.0 <= MonotonicClock(start.anchor.origin_ns).now() < 3.0
    recorder.commit(TickTransaction(tick=Tick(client=ClientTick(index=8))))
    reader = RecordingReader.open(interrupted)
    assert reader.is_live()
    assert [tick.index for tick in reader.ticks()] == list(range(9))
    assert reader.header.config.label == "night"
    assert [note.source for note in reader.notes()] == [RESUMED]
    recorder.close(PLANNED)
    assert reader.poll().end == PLANNED


def test_requests_in_flight_when_the_run_was_killed_are_not_those_of_the_resumed_run(interrupted: Path) -> None:
    change(
        interrupted,
        "UPDATE run SET end_at = NULL, writer = NULL",
        "INSERT INTO in_flight (at, id, stage, due, prompt_tokens, output_tokens) VALUES (1.0, 3, 0, 0.5, 9, 0)",
    )
    with contextlib.closing(RecordingReader.open(interrupted)) as killed:
        assert [each.id for each in killed.in_flight()] == [3]
    recorder, _ = resume_recording(interrupted)
    with contextlib.closing(RecordingReader.open(interrupted)) as reader:
        assert reader.in_flight() == []
    recorder.close(PLANNED)


def test_a_recording_of_an_older_minor_version_gets_the_engine_columns_that_it_lacks(interrupted: Path) -> None:
    older = [f"ALTER TABLE tick DROP COLUMN {name}" for name in ("checksum", "engine_queue_seconds_total")]
    change(interrupted, *older, "PRAGMA user_version = 1001")
    recorder, start = resume_recording(interrupted)
    sample = EngineSample(scrape_start=2.0, scrape_end=2.1, queue_seconds_total=3.5)
    recorder.commit(TickTransaction(tick=Tick(client=ClientTick(index=start.first_tick), engine=sample)))
    recorder.close(PLANNED)
    with contextlib.closing(RecordingReader.open(interrupted)) as reader:
        ticks = reader.poll().ticks
    assert ticks[0].engine is None
    assert ticks[-1].engine == sample
    with contextlib.closing(sqlite3.connect(interrupted)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (USER_VERSION,)


def test_a_recording_of_an_older_minor_version_gets_the_columns_that_it_lacks(
    interrupted: Path, make_request: Callable[..., RequestRecord]
) -> None:
    change(interrupted, "ALTER TABLE request DROP COLUMN model", "PRAGMA user_version = 1001")
    recorder, _ = resume_recording(interrupted)
    recorder.commit(TickTransaction(requests=[make_request(1, 2.5, model="adapter-a")]))
    recorder.close(PLANNED)
    with contextlib.closing(RecordingReader.open(interrupted)) as reader:
        assert [request.model for request in reader.requests(0.0, 9.0)] == ["adapter-a"]
    with contextlib.closing(sqlite3.connect(interrupted)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (USER_VERSION,)


def test_a_recording_that_is_being_written_cannot_be_resumed(tmp_path: Path) -> None:
    path = tmp_path / "run.servetop"
    recorder = Recorder.create(path, RunHeader(config=RunConfig(), anchor=ClockAnchor.take()))
    with pytest.raises(RecordingError, match="still being written"):
        resume_recording(path)
    recorder.close(PLANNED)


def test_a_flag_missing_from_an_older_file_is_false(interrupted: Path) -> None:
    views = [f"DROP VIEW {name}" for name in VIEWS]  # they name the columns
    older = (*views, "ALTER TABLE request DROP COLUMN turn", "ALTER TABLE stage DROP COLUMN warmup")
    change(interrupted, *older, "PRAGMA user_version = 1000")
    recorder, start = resume_recording(interrupted)
    tick = Tick(client=ClientTick(index=start.first_tick))
    request = RequestRecord(
        id=0, stage=1, due=2.0, sent=2.0, prompt_tokens=3, status=RequestStatus.CANCELLED, conversation=0, turn=1,
        chunk_times=np.empty(0), chunk_tokens=np.empty(0, np.int64),
    )  # fmt: skip
    recorder.commit(TickTransaction(tick=tick, requests=[request], stages=[stage(1, 2.0)]))
    assert recorder.trouble is None
    recorder.close(PLANNED)
    with contextlib.closing(RecordingReader.open(interrupted)) as reader:
        assert [each.turn for each in reader.requests(0.0, 9.0)] == [1]
        assert [each.warmup for each in reader.stages()] == [False, False]
    with contextlib.closing(sqlite3.connect(interrupted)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (USER_VERSION,)
