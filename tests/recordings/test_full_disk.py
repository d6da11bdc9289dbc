"""With a full disk or a locked file, the run continues, and no data is lost up to a memory limit."""

import resource
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from servetop.core.errors import RecordingError
from servetop.core.events import RequestRecord, RunEnd, Severity
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write import recorder as recorder_module
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction

MakeTick = Callable[..., Tick]
MakeRequest = Callable[..., RequestRecord]
LimitFileSize = Callable[[int | None], None]
END = RunEnd(at=1.0, exit_code=0, reason="")


@pytest.fixture
def limit_file_size() -> LimitFileSize:
    """Limit the size of this process's files in bytes, like a full disk, until the limit is changed."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    assert (
        signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN
    )  # Python's default: a write fails instead of killing the process

    def limit(size: int | None) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard if size is None else size, hard))

    return limit


def test_after_a_full_disk_all_data_is_written_once_there_is_space(
    recorder: Recorder,
    make_tick: MakeTick,
    make_request: MakeRequest,
    limit_file_size: LimitFileSize,
) -> None:
    recorder.commit(TickTransaction(tick=make_tick(0)))
    limit_file_size(recorder.path.with_name("run.servetop-wal").stat().st_size)
    try:
        for number in range(1, 9):
            recorder.commit(
                TickTransaction(tick=make_tick(number), requests=[make_request(number, 0.0), make_request(90, 0.0)])
            )
        assert recorder.trouble is not None
        assert "run.servetop: cannot be written (" in recorder.trouble
        assert "8 ticks and 16 requests kept in memory" in recorder.trouble
    finally:
        limit_file_size(None)
    recorder.commit(TickTransaction(tick=make_tick(9)))
    assert recorder.trouble is None
    with closing(RecordingReader.open(recorder.path)) as reader:
        assert [tick.index for tick in reader.poll().ticks] == list(range(10))
        assert reader.request_count() == 16


def test_data_beyond_the_memory_limit_is_dropped_counted_and_noted(
    recorder: Recorder,
    make_tick: MakeTick,
    limit_file_size: LimitFileSize,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recorder_module, "MAX_WAITING_ROWS", 5)
    recorder.commit(TickTransaction(tick=make_tick(0)))
    limit_file_size(recorder.path.with_name("run.servetop-wal").stat().st_size)
    try:
        for number in range(1, 9):
            recorder.commit(TickTransaction(tick=make_tick(number)))
    finally:
        limit_file_size(None)
    assert recorder.trouble is not None
    assert recorder.trouble.endswith("5 ticks and 0 requests kept in memory; 3 ticks and 0 requests were dropped")
    recorder.commit(TickTransaction(tick=make_tick(9)))
    assert recorder.trouble == "run.servetop: 3 ticks and 0 requests were dropped"
    with closing(RecordingReader.open(recorder.path)) as reader:
        update = reader.poll()
        assert [tick.index for tick in update.ticks] == [0, 4, 5, 6, 7, 8, 9]
        (note,) = update.notes
        assert (note.source, note.severity) == ("recorder", Severity.ERROR)
        assert note.text == "3 ticks and 0 requests are missing: the file could not be written for too long"


def test_requests_in_flight_use_no_memory_while_the_disk_is_full(
    recorder: Recorder, make_tick: MakeTick, limit_file_size: LimitFileSize, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder_module, "MAX_WAITING_ROWS", 150)
    under_way = [RequestInFlight(at=1.0, id=number, stage=0, due=0.5, prompt_tokens=9) for number in range(50)]
    recorder.commit(TickTransaction(tick=make_tick(0)))
    limit_file_size(recorder.path.with_name("run.servetop-wal").stat().st_size)
    try:
        for number in range(1, 9):
            recorder.commit(TickTransaction(tick=make_tick(number), in_flight=under_way))
        assert recorder.unrecorded is not None
        assert recorder.unrecorded.ticks == 8
        assert "dropped" not in (recorder.trouble or "")
    finally:
        limit_file_size(None)
    recorder.commit(TickTransaction(tick=make_tick(9)))
    with closing(RecordingReader.open(recorder.path)) as reader:
        assert [tick.index for tick in reader.poll().ticks] == list(range(10))


def test_a_disk_that_stays_full_is_also_reported_at_the_end(
    recorder: Recorder, make_tick: MakeTick, limit_file_size: LimitFileSize
) -> None:
    recorder.commit(TickTransaction(tick=make_tick(0)))
    limit_file_size(recorder.path.with_name("run.servetop-wal").stat().st_size)
    try:
        recorder.commit(TickTransaction(tick=make_tick(1)))
        recorder.close(END)
    finally:
        limit_file_size(None)
    assert recorder.trouble is not None
    with closing(RecordingReader.open(recorder.path)) as reader:
        assert [tick.index for tick in reader.poll().ticks] == [0]
        assert reader.end is None
    assert str(recorder.unrecorded).startswith(f"1 tick, 0 requests not recorded: {recorder.path} cannot be written (")
    with closing(recorder.reader()) as reader:  # including the data in memory
        assert [tick.index for tick in reader.poll().ticks] == [0, 1]
        assert reader.end == END


def test_a_new_recording_on_a_full_disk_fails_in_one_line_and_leaves_no_file(
    tmp_path: Path, header: RunHeader, limit_file_size: LimitFileSize
) -> None:
    limit_file_size(2000)
    try:
        with pytest.raises(RecordingError, match=r"cannot record to .*full\.servetop \(.*\): free some space"):
            Recorder.create(tmp_path / "full.servetop", header)
    finally:
        limit_file_size(None)
    assert list(tmp_path.iterdir()) == []


def test_a_viewer_with_the_lock_only_delays_writes(recorder: Recorder, make_tick: MakeTick) -> None:
    with closing(sqlite3.connect(recorder.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        recorder.commit(TickTransaction(tick=make_tick(0)))
        assert recorder.trouble is not None
        assert "database is locked" in recorder.trouble
    recorder.commit(TickTransaction(tick=make_tick(1)))
    assert recorder.trouble is None
    with closing(RecordingReader.open(recorder.path)) as reader:
        assert [tick.index for tick in reader.poll().ticks] == [0, 1]
