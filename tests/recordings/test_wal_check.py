"""Commits that SQLite drops after a torn frame are counted and reported."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.wal_check import check_wal
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction

TICKS = 40
FRAME = 4096 + 24


@pytest.fixture
def copied_recording(recorder: Recorder, make_tick: Callable[..., Tick]) -> Path:
    """The files after a kill -9 at 40 ticks, copied from a running recording."""
    for number in range(TICKS):
        recorder.commit(TickTransaction(tick=make_tick(number)))
    copy = recorder.path.with_name("copy.servetop")
    for suffix in ("", "-wal"):
        shutil.copyfile(f"{recorder.path}{suffix}", f"{copy}{suffix}")
    return copy


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def alter(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x40
    path.write_bytes(data)


def ticks_and_damage(path: Path) -> tuple[int, str]:
    """Read the recording as a viewer does after the writer has died."""
    with closing(RecordingReader.open(path)) as reader:
        return len(reader.poll().ticks), reader.damage or ""


@pytest.fixture(autouse=True)
def dead_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat the writer, which is the test itself, as dead."""
    monkeypatch.setattr("servetop.recordings.format.liveness.Writer.is_alive", lambda self: False)


def test_the_log_of_a_killed_run_is_sound(copied_recording: Path) -> None:
    assert check_wal(copied_recording).commits == TICKS
    assert ticks_and_damage(copied_recording) == (TICKS, "")


def test_an_incomplete_last_transaction_is_not_damage(copied_recording: Path) -> None:
    log = log_of(copied_recording)
    with log.open("ab") as file:
        file.write(log.read_bytes()[-FRAME : -FRAME // 2])
    assert check_wal(copied_recording).damage is None


def test_a_newest_transaction_that_is_half_written_over_an_older_log_is_not_damage(copied_recording: Path) -> None:
    """As if killed between the head of its last frame and the page."""
    log = log_of(copied_recording)
    data = log.read_bytes()
    log.write_bytes(data[: -FRAME // 2] + data[:FRAME])
    state = check_wal(copied_recording)
    assert (state.commits, state.dropped, state.damage) == (TICKS - 1, 0, None)
    assert ticks_and_damage(copied_recording) == (TICKS - 1, "")


def test_commits_after_a_torn_frame_are_counted_and_reported(copied_recording: Path) -> None:
    log = log_of(copied_recording)
    alter(log, log.stat().st_size // 2)
    state = check_wal(copied_recording)
    ticks, damage = ticks_and_damage(copied_recording)
    assert state.commits + state.dropped == TICKS
    assert 0 < ticks == state.commits < TICKS
    assert f"its write-ahead log is torn: at least {state.dropped} later commits were dropped" in damage


def test_a_log_with_a_torn_header_is_lost_and_reported(copied_recording: Path) -> None:
    alter(log_of(copied_recording), 10)
    assert check_wal(copied_recording).damage == "the header of its write-ahead log is damaged"
    assert "no tick could be read" in ticks_and_damage(copied_recording)[1]


def test_a_damaged_log_is_kept_unchanged(copied_recording: Path) -> None:
    alter(log_of(copied_recording), 40_000)
    before = log_of(copied_recording).read_bytes()
    ticks_and_damage(copied_recording)
    assert log_of(copied_recording).read_bytes() == before


def test_a_finished_recording_needs_no_log(tmp_path: Path, header: RunHeader) -> None:
    assert check_wal(tmp_path / "none.servetop").damage is None
