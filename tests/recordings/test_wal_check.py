"""Commits that SQLite drops after a torn frame are counted and reported."""

import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.verify.wal_check import check_wal
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction

TICKS = 40
FRAME = 4096 + 24


@pytest.fixture
def left_behind(recorder: Recorder, make_tick: Callable[..., Tick]) -> Path:
    """The files after a kill -9 at 40 ticks, copied from a running recording."""
    for number in range(TICKS):
        recorder.commit(TickTransaction(tick=make_tick(number)))
    copy = recorder.path.with_name("copy.servetop")
    for ending in ("", "-wal"):
        shutil.copyfile(f"{recorder.path}{ending}", f"{copy}{ending}")
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
def gone_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat the writer, which is the test itself, as dead."""
    monkeypatch.setattr("servetop.recordings.library.liveness.Writer.is_alive", lambda self: False)


def test_the_log_of_a_killed_run_is_sound(left_behind: Path) -> None:
    assert check_wal(left_behind).commits == TICKS
    assert ticks_and_damage(left_behind) == (TICKS, "")


def test_an_incomplete_last_transaction_is_not_damage(left_behind: Path) -> None:
    log = log_of(left_behind)
    with log.open("ab") as file:
        file.write(log.read_bytes()[-FRAME : -FRAME // 2])
    assert check_wal(left_behind).damage is None


def test_commits_after_a_torn_frame_are_counted_and_reported(left_behind: Path) -> None:
    log = log_of(left_behind)
    alter(log, log.stat().st_size // 2)
    state = check_wal(left_behind)
    ticks, damage = ticks_and_damage(left_behind)
    assert state.commits + state.dropped == TICKS
    assert 0 < ticks == state.commits < TICKS
    assert f"its write-ahead log is torn: at least {state.dropped} later commits were dropped" in damage


def test_a_log_with_a_torn_header_is_lost_and_reported(left_behind: Path) -> None:
    alter(log_of(left_behind), 10)
    assert check_wal(left_behind).damage == "the header of its write-ahead log is damaged"
    assert "no tick could be read" in ticks_and_damage(left_behind)[1]


def test_a_damaged_log_is_kept_unchanged(left_behind: Path) -> None:
    alter(log_of(left_behind), 40_000)
    before = log_of(left_behind).read_bytes()
    ticks_and_damage(left_behind)
    assert log_of(left_behind).read_bytes() == before


def test_a_finished_recording_needs_no_log(tmp_path: Path, header: RunHeader) -> None:
    assert check_wal(tmp_path / "none.servetop").damage is None
