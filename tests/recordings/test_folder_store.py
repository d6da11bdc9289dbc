"""The recordings folder: preview, open, rename and delete recordings."""

import dataclasses
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from servetop.core.clock import ClockAnchor
from servetop.core.errors import RecordingError
from servetop.core.events import RunEnd
from servetop.core.interfaces.recording_store import RecordingState
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import Tick
from servetop.recordings.library.folder_store import FolderStore
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction

MakeTick = Callable[..., Tick]
NOON = 1_700_000_000.0


@pytest.fixture
def record(tmp_path: Path, header: RunHeader, make_tick: MakeTick) -> Callable[..., Path]:
    """A recording of eight ticks, 10 output tokens in the first four and 30 in the others."""

    def make(name: str) -> Path:
        anchor = ClockAnchor(origin_ns=0, wall_epoch_s=NOON)
        recorder = Recorder.create(tmp_path / f"{name}.servetop", dataclasses.replace(header, anchor=anchor))
        for number in range(8):
            recorder.commit(TickTransaction(tick=make_tick(number, ok=1, output_tokens=10 if number < 4 else 30)))
        recorder.close(RunEnd(at=2.0, exit_code=0, reason=""))
        return recorder.path

    return make


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_recordings_are_listed_by_when_they_were_last_written(record: Callable[..., Path], tmp_path: Path) -> None:
    for name, age in (("older", 30.0), ("newest", 10.0), ("oldest", 50.0)):
        os.utime(record(name), (NOON - age, NOON - age))
    (tmp_path / "notes.txt").write_text("not listed")
    (tmp_path / "folder.servetop").mkdir()
    assert [path.stem for path in FolderStore(tmp_path).paths()] == ["newest", "older", "oldest"]
    assert FolderStore(tmp_path / "none").paths() == []


def test_a_preview_has_the_throughput_over_time(record: Callable[..., Path], tmp_path: Path) -> None:
    preview = FolderStore(tmp_path).preview(record("one"), bins=2)
    assert preview.output_rates == (40.0, 120.0)
    assert (preview.info.state, preview.info.requests) == (RecordingState.FINISHED, 8)
    assert len(FolderStore(tmp_path).preview(record("two"), bins=24).output_rates) == 8


def test_the_preview_of_an_unreadable_file_has_the_reason(tmp_path: Path) -> None:
    (tmp_path / "junk.servetop").write_bytes(b"junk")
    preview = FolderStore(tmp_path).preview(tmp_path / "junk.servetop", bins=8)
    assert (preview.info.state, preview.output_rates) == (RecordingState.UNREADABLE, ())
    assert "is not a servetop recording" in preview.info.problem


def test_a_recording_is_renamed_with_or_without_its_suffix(record: Callable[..., Path], tmp_path: Path) -> None:
    shelf = FolderStore(tmp_path)
    renamed = shelf.rename(record("one"), "batch 64 ")
    assert shelf.rename(renamed, "batch-64.servetop") == tmp_path / "batch-64.servetop"
    assert names(tmp_path) == ["batch-64.servetop"]
    assert shelf.preview(tmp_path / "batch-64.servetop", bins=1).info.requests == 8


def test_renaming_never_overwrites(record: Callable[..., Path], tmp_path: Path) -> None:
    one, two = record("one"), record("two")
    before = two.read_bytes()
    with pytest.raises(RecordingError, match="a recording two already exists"):
        FolderStore(tmp_path).rename(one, "two")
    assert (names(tmp_path), two.read_bytes()) == (["one.servetop", "two.servetop"], before)


@pytest.mark.parametrize(
    "name", ["", "  ", ".servetop", ".hidden", "../up", "a/b", "a\\b", "a\x1b[2J", "a\nb", "m" * 201]
)
def test_an_invalid_name_is_rejected(name: str, record: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="name"):
        FolderStore(tmp_path).rename(record("one"), name)
    assert names(tmp_path) == ["one.servetop"]


def test_deleting_removes_all_files_of_a_recording_and_no_others(record: Callable[..., Path], tmp_path: Path) -> None:
    one = record("one")
    record("two")
    for ending in ("-wal", "-shm"):
        one.with_name(one.name + ending).touch()
    FolderStore(tmp_path).delete(one)
    assert names(tmp_path) == ["two.servetop"]


def test_a_recording_of_a_running_run_is_not_renamed_or_deleted(recorder: Recorder, make_tick: MakeTick) -> None:
    recorder.commit(TickTransaction(tick=make_tick(7, ok=1)))
    shelf = FolderStore(recorder.path.parent)
    for change in (lambda: shelf.delete(recorder.path), lambda: shelf.rename(recorder.path, "other")):
        with pytest.raises(RecordingError, match="is being recorded: stop its run first"):
            change()
    assert recorder.path.is_file()


def test_a_recently_written_recording_without_an_end_may_still_grow(
    record: Callable[..., Path], tmp_path: Path
) -> None:
    path = record("left")
    elsewhere = '{"pid": 1, "started": 0.0, "host": "another-machine"}'
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE run SET end_at = NULL, exit_code = NULL, writer = ?", (elsewhere,))
    shelf = FolderStore(tmp_path)
    assert shelf.preview(path, bins=1).info.state is RecordingState.BROKEN_OFF
    with pytest.raises(RecordingError, match="so it may still grow: try again in"):
        shelf.delete(path)
    os.utime(path, (NOON, NOON))
    shelf.delete(path)
    assert names(tmp_path) == []


def test_a_missing_recording_is_reported_as_missing(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="no longer exists"):
        FolderStore(tmp_path).delete(tmp_path / "gone.servetop")


def test_opening_a_recording_closes_the_previous_one(record: Callable[..., Path], tmp_path: Path) -> None:
    shelf = FolderStore(tmp_path)
    first = shelf.open(record("one"))
    assert len(first.poll().ticks) == 8
    second = shelf.open(record("two"))
    assert second.name == "two"
    with pytest.raises(Exception, match="closed"):
        first.ticks()
    shelf.close()


def test_a_command_of_a_newer_servetop_is_omitted_and_reported(record: Callable[..., Path]) -> None:
    path = record("newer")
    with closing(sqlite3.connect(path)) as connection, connection:
        insert = "INSERT INTO command (at, action, text, source) VALUES (1.0, ?, '', 'keyboard')"
        connection.executemany(insert, [("mark",), ("juggle",), ("mark",)])
    reader = RecordingReader.open(path)
    update = reader.poll()
    reader.close()
    assert [str(command.action) for command in update.commands] == ["mark", "mark"]
    assert "juggle" in update.notes[-1].text
    assert len(update.ticks) == 8
