"""The reader returns everything once, in order, and nothing if nothing is new."""

import dataclasses
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from servetop.core.errors import RecordingError
from servetop.core.events import Action, Note, RequestRecord, RunEnd, Severity
from servetop.core.interfaces.request_in_flight import RequestInFlight
from servetop.core.interfaces.run_source import RunHeader, RunSource, RunUpdate
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from tests.recordings.rows import change

MakeTick = Callable[..., Tick]
MakeRequest = Callable[..., RequestRecord]


def test_a_recording_is_a_run_source(reader: RecordingReader) -> None:
    source: RunSource = reader
    assert source.name == "run"
    assert source.header.pid == os.getpid()


def test_polling_returns_everything_so_far_then_only_new_data(
    recorder: Recorder, reader: RecordingReader, make_tick: MakeTick
) -> None:
    for number in range(3):
        recorder.commit(TickTransaction(tick=make_tick(number)))
    assert [tick.index for tick in reader.poll().ticks] == [0, 1, 2]
    assert reader.poll() == RunUpdate()
    recorder.commit(TickTransaction(tick=make_tick(3)))
    assert [tick.index for tick in reader.poll().ticks] == [3]


def test_many_ticks_are_polled_in_parts_and_all_else_with_the_last_part(
    recorder: Recorder, reader: RecordingReader, make_tick: MakeTick
) -> None:
    for number in range(5):
        recorder.commit(TickTransaction(tick=make_tick(number)))
    note = Note(at=0.5, severity=Severity.INFO, source="run", text="a note")
    recorder.commit(TickTransaction(notes=[note]))
    pieces = [reader.poll(most_ticks=2) for _ in range(3)]
    assert [[tick.index for tick in piece.ticks] for piece in pieces] == [[0, 1], [2, 3], [4]]
    assert [piece.more for piece in pieces] == [True, True, False]
    assert [list(piece.notes) for piece in pieces] == [[], [], [note]]
    assert reader.poll(most_ticks=2) == RunUpdate()


def test_reading_past_ticks_does_not_affect_polling(
    recorder: Recorder, reader: RecordingReader, make_tick: MakeTick
) -> None:
    for number in (0, 1, 2, 5, 6):
        recorder.commit(TickTransaction(tick=make_tick(number, ttfts=[0.1 * number])))
    reader.poll()
    recorder.commit(TickTransaction(tick=make_tick(7)))
    again = reader.past_ticks(1, 5)
    assert [tick.index for tick in again] == [1, 2, 5]
    assert [tick.client.ttft.count for tick in again] == [1, 1, 1]
    assert reader._tables.last_tick_end == 7 * 0.25
    assert [tick.index for tick in reader.poll().ticks] == [7]


def test_a_tick_is_read_as_it_was_written(
    recorder: Recorder, reader: RecordingReader, make_tick: MakeTick, same: Callable[[Any, Any], bool]
) -> None:
    tick = make_tick(0, ok=5, output_tokens=640, in_flight=12, request_rate=float("inf"), ttfts=[0.05, 0.06, 1.5])
    recorder.commit(TickTransaction(tick=tick))
    assert same(reader.poll().ticks[0], tick)


def test_a_command_is_polled_again_after_its_reply(recorder: Recorder, reader: RecordingReader) -> None:
    reader.send(Action.MARK, text="here")
    (command,) = reader.poll().commands
    assert command.reply is None
    assert reader.poll().commands == ()
    recorder.commit(TickTransaction(commands=[_replied(recorder)]))
    (replied,) = reader.poll().commands
    assert (replied.id, replied.applied_at, replied.reply) == (command.id, 1.0, "marked")
    assert reader.poll().commands == ()


def _replied(recorder: Recorder) -> Any:
    return dataclasses.replace(recorder.new_commands()[0], applied_at=1.0, reply="marked")


def test_the_end_is_polled_once_and_the_run_is_not_live_afterwards(recorder: Recorder, reader: RecordingReader) -> None:
    assert reader.poll().end is None
    assert reader.is_live()
    recorder.close(RunEnd(at=30.0, exit_code=3, reason="the engine died"))
    assert reader.poll().end == RunEnd(at=30.0, exit_code=3, reason="the engine died")
    assert reader.poll().end is None
    assert not reader.is_live()


def test_a_refresh_does_not_affect_the_next_poll(recorder: Recorder, reader: RecordingReader) -> None:
    reader.poll()
    recorder.close(RunEnd(at=1.0, exit_code=0, reason=""))
    reader.refresh()
    assert not reader.is_live()
    assert reader.poll().end is not None


def test_a_finished_run_accepts_no_commands(recorder: Recorder) -> None:
    recorder.close(RunEnd(at=1.0, exit_code=0, reason=""))
    with (
        closing(RecordingReader.open(recorder.path)) as reader,
        pytest.raises(RecordingError, match="run is not running: it can be viewed, but not controlled"),
    ):
        reader.send(Action.STOP)


def test_requests_in_flight_between_two_times_are_ordered_by_due_time(
    recorder: Recorder, reader: RecordingReader, make_request: MakeRequest, same: Callable[[Any, Any], bool]
) -> None:
    early = make_request(1, 0.0, tokens_at=[0.5, 1.0])
    long = make_request(2, 0.5, tokens_at=[0.5, 9.5])
    late = make_request(3, 5.0, tokens_at=[0.5, 1.0])
    never_sent = make_request(4, 2.0, tokens_at=[], sent=None, status="cancelled")
    recorder.commit(TickTransaction(requests=[late, early, never_sent, long]))
    assert [each.id for each in reader.requests(0.0, 0.6)] == [1, 2]
    assert [each.id for each in reader.requests(2.0, 3.0)] == [2]
    assert [each.id for each in reader.requests(5.5, 20.0)] == [2, 3]
    assert reader.requests(11.0, 20.0) == []
    assert [each.id for each in reader.requests(0.0, 20.0, most=2)] == [2, 3]
    assert [each.id for each in reader.requests(0.0, 20.0, ended_by=1.0)] == [1]
    assert same(reader.requests(2.0, 3.0)[0], long)
    assert reader.request_count() == 4


def test_the_last_requests_are_read_once_and_cached(
    recorder: Recorder, reader: RecordingReader, make_request: MakeRequest
) -> None:
    first, second, third = (make_request(id, due, tokens_at=[0.5]) for id, due in ((1, 2.0), (2, 1.0), (3, 3.0)))
    recorder.commit(TickTransaction(requests=[first, second]))
    before = reader.requests(0.0, 9.0, most=2)
    recorder.commit(TickTransaction(requests=[third]))
    after = reader.requests(0.0, 9.0, most=2)
    assert [[each.id for each in found] for found in (before, after)] == [[2, 1], [1, 3]]
    assert after[0] is before[1]
    assert reader.requests(0.0, 0.1, most=2) == []


def test_closing_after_the_writer_leaves_a_single_file(recorder: Recorder, make_tick: MakeTick) -> None:
    reader = RecordingReader.open(recorder.path)
    recorder.commit(TickTransaction(tick=make_tick(0)))
    reader.poll()
    recorder.close(RunEnd(at=1.0, exit_code=0, reason=""))
    reader.poll()
    reader.close()
    assert [path.name for path in recorder.path.parent.iterdir()] == ["run.servetop"]


def test_a_recording_with_special_characters_in_its_name_can_be_read(tmp_path: Path, header: RunHeader) -> None:
    path = tmp_path / "100% a?b#c ü.servetop"
    recorder = Recorder.create(path, header)
    with closing(RecordingReader.open(path)) as reader:
        assert reader.name == "100% a?b#c ü"
        reader.send(Action.MARK)
    assert len(recorder.new_commands()) == 1
    recorder.close(RunEnd(at=0.0, exit_code=0, reason=""))


def test_columns_and_tables_of_a_newer_minor_version_are_ignored(recorder: Recorder, make_tick: MakeTick) -> None:
    recorder.commit(TickTransaction(tick=make_tick(0, ok=1)))
    recorder.close(RunEnd(at=1.0, exit_code=0, reason=""))
    newer = ("ALTER TABLE tick ADD COLUMN novelty REAL DEFAULT 1.0", "CREATE TABLE wonder (seq INTEGER PRIMARY KEY)")
    change(recorder.path, "PRAGMA user_version = 1011", *newer)
    with closing(RecordingReader.open(recorder.path)) as reader:
        assert [tick.client.ok for tick in reader.poll().ticks] == [1]


def test_missing_columns_of_an_older_minor_version_have_default_values(recorder: Recorder, make_tick: MakeTick) -> None:
    recorder.commit(TickTransaction(tick=make_tick(0, ok=1, cpu_seconds=0.1)))
    recorder.close(RunEnd(at=1.0, exit_code=0, reason=""))
    change(
        recorder.path, *(f"ALTER TABLE tick DROP COLUMN {name}" for name in ("checksum", "cpu_seconds", "client_wait"))
    )
    with closing(RecordingReader.open(recorder.path)) as reader:
        (tick,) = reader.poll().ticks
    assert (tick.client.ok, tick.client.cpu_seconds, tick.client.client_wait.count) == (1, 0.0, 0)


def test_requests_in_flight_are_those_written_last_until_the_run_ends(recorder: Recorder) -> None:
    first, second = (RequestInFlight(at=1.0, id=number, stage=0, due=0.5, prompt_tokens=9) for number in (3, 4))
    with closing(RecordingReader.open(recorder.path)) as reader:
        recorder.commit(TickTransaction(in_flight=[first, second]))
        assert reader.in_flight() == [first, second]
        recorder.commit(TickTransaction())
        assert reader.in_flight() == [first, second]
        recorder.commit(TickTransaction(in_flight=[second]))
        assert reader.in_flight() == [second]
        recorder.close(RunEnd(at=2.0, exit_code=0, reason=""))
    with closing(RecordingReader.open(recorder.path)) as reader:
        assert reader.in_flight() == []
