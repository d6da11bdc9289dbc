"""Verification of sound and damaged recordings."""

import os
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from servetop.core.events import RequestRecord, RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.verify.verdict import VerifyVerdict
from servetop.recordings.verify.verify import verify
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from tests.recordings.rows import change

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def recording(
    tmp_path: Path, header: RunHeader, make_tick: Callable[..., Tick], make_request: Callable[..., RequestRecord]
) -> Path:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    for number in range(100):
        recorder.commit(
            TickTransaction(tick=make_tick(number, ok=1, ttfts=[0.1]), requests=[make_request(number, number / 4)])
        )
    recorder.close(RunEnd(at=25.0, exit_code=0, reason=""))
    return recorder.path


def unsound(path: Path) -> dict[str, str]:
    return {check.name: check.detail for check in verify(path).checks if not check.sound}


def test_an_unaltered_recording_is_sound(recording: Path) -> None:
    assert {check.name: check.detail for check in verify(recording).checks if check.sound} == {
        "header": "format 1.24, servetop an unknown version",
        "pages": "SQLite found no errors",
        "ticks": "100 without a gap, 25.0 s; checksums match",
        "requests": "100, matching the counts of the ticks",
        "other rows": "none",
        "log": "no write-ahead log is needed",
        "end": "after 25.0 s, exit code 0",
    }


@pytest.mark.parametrize("name", ["vllm", "dies", "whitepaper", "without_metrics"])
def test_recordings_of_older_versions_are_sound(name: str) -> None:
    assert unsound(GOLDEN / f"{name}.servetop") == {}


def test_a_run_that_goes_on_is_sound(recorder: Recorder, make_tick: Callable[..., Tick]) -> None:
    recorder.commit(TickTransaction(tick=make_tick(0)))
    assert unsound(recorder.path) == {}
    assert verify(recorder.path).checks[-1].detail == "still being written"


MISCOUNTED = "99 rows have status ok, but the ticks count 100"
INVALID = "1 row of table request is invalid"


@pytest.mark.parametrize(
    ("statement", "name", "detail"),
    [
        ("UPDATE tick SET ok = 2 WHERE seq = 50", "ticks", "row 50 of table tick: its checksum does not match"),
        ("DELETE FROM tick WHERE seq = 50", "ticks", "missing or out of order after second 12.25"),
        ("DELETE FROM tick WHERE seq = 1", "ticks", "the ticks before second 0.25 are missing"),
        ("DELETE FROM request WHERE seq = 7", "requests", MISCOUNTED),
        ("UPDATE request SET status = 'error' WHERE seq = 7", "requests", MISCOUNTED),
        ("UPDATE request SET done_at = 9e99 WHERE seq = 7", "requests", INVALID),
        ("UPDATE request SET token_source = CAST(x'75ff' AS TEXT) WHERE seq = 7", "requests", "Could not decode"),
        ("UPDATE request SET chunk_times = x'00' WHERE seq = 7", "requests", INVALID),
        ("UPDATE request SET chunk_times = 'text' WHERE seq = 7", "requests", INVALID),
        ("UPDATE request SET chunk_tokens = x'3102030405' WHERE seq = 7", "requests", INVALID),
        ("UPDATE request SET output_tokens = NULL WHERE seq = 7", "requests", INVALID),
        ("ALTER TABLE request RENAME prompt_tokens TO p", "requests", "table request has no column prompt_tokens"),
        ("INSERT INTO note (at, severity, source, text) VALUES (1, 'x', '', '')", "other rows", "row 1 of table note"),
        ("UPDATE run SET end_at = -1", "end", "its end is invalid: end_at is -1.0"),
        ("UPDATE run SET config = 'x'", "header", "its header cannot be decoded"),
        ("CREATE VIEW v AS SELECT 1", "file", "it contains the view v, which servetop does not create"),
    ],
)
def test_damage_is_reported_by_the_check_that_finds_it(recording: Path, statement: str, name: str, detail: str) -> None:
    change(recording, statement)
    assert detail in unsound(recording)[name]
    assert "with text" not in unsound(recording)[name]


def test_a_table_whose_first_page_was_overwritten_by_an_empty_one_is_not_sound(recording: Path) -> None:
    """SQLite finds no error in the table, which merely has no rows."""
    with closing(sqlite3.connect(recording)) as connection:
        roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_master"))
    size = 4096
    empty = recording.read_bytes()[(roots["gpu_sample"] - 1) * size : roots["gpu_sample"] * size]
    overwrite(recording, (roots["tick"] - 1) * size, empty)
    assert re.search("never used|wrong # of entries", unsound(recording)["pages"])  # what SQLite finds first


def test_an_index_that_leads_to_a_missing_row_is_not_sound(recording: Path) -> None:
    where = "FROM sqlite_master WHERE name = 'request_by_stage'"
    with closing(sqlite3.connect(recording)) as connection:
        index = connection.execute(f"SELECT * {where}").fetchone()
    change_schema(recording, f"DELETE {where}")
    change(recording, "UPDATE request SET stage = 99 WHERE seq = 7")
    change_schema(recording, "INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", index)
    assert unsound(recording)["pages"]


def change_schema(path: Path, statement: str, values: Sequence[object] = ()) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement, tuple(values))


def test_a_torn_file_is_not_sound(recording: Path) -> None:
    os.truncate(recording, recording.stat().st_size // 2)
    assert unsound(recording)


@pytest.mark.parametrize("missing", [1, 100, 4095])
def test_a_file_that_ends_within_its_last_page_is_damaged(recording: Path, missing: int) -> None:
    os.truncate(recording, recording.stat().st_size - missing)
    assert "of its last page" in unsound(recording)["pages"]
    with closing(RecordingReader.open(recording)) as reader:
        reader.poll()
        assert "of its last page" in (reader.damage or "")


def test_a_missing_file_is_one_failed_check(tmp_path: Path) -> None:
    assert list(unsound(tmp_path / "gone.servetop")) == ["file"]


@pytest.mark.parametrize(
    ("damage", "verdict"),
    [
        (lambda path: None, VerifyVerdict.SOUND),
        (lambda path: os.truncate(path, path.stat().st_size // 2), VerifyVerdict.NOT_SOUND),
        (lambda path: overwrite(path, 100, bytes(3996)), VerifyVerdict.NOT_SOUND),
        (lambda path: change(path, "UPDATE run SET config = 'x'"), VerifyVerdict.NOT_SOUND),
        (lambda path: overwrite(path, 0, b"PK"), VerifyVerdict.NOT_A_RECORDING),
        (lambda path: os.truncate(path, 99), VerifyVerdict.NOT_A_RECORDING),
        (lambda path: os.truncate(path, 0), VerifyVerdict.NOT_A_RECORDING),
        (lambda path: change(path, "PRAGMA application_id = 1"), VerifyVerdict.NOT_A_RECORDING),
        (lambda path: change(path, "PRAGMA user_version = 9000"), VerifyVerdict.NOT_A_RECORDING),
        (lambda path: change(path, "CREATE VIEW v AS SELECT 1"), VerifyVerdict.NOT_A_RECORDING),
        (Path.unlink, VerifyVerdict.NOT_A_RECORDING),
    ],
    ids=[
        "unaltered", "truncated", "first page lost", "header lost", "another kind of file", "too short", "empty",
        "another program's", "a newer servetop's", "with a view", "missing",
    ],
)  # fmt: skip
def test_a_damaged_recording_is_not_sound_and_another_file_is_not_a_recording(
    recording: Path, damage: Callable[[Path], object], verdict: VerifyVerdict
) -> None:
    damage(recording)
    assert verify(recording).verdict is verdict


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)
