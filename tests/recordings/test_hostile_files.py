"""An untrusted recording is rejected, or its valid part is read, with one line on the problem."""

import contextlib
import json
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from servetop.analysis.live_stats import live_stats
from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.summary.summary_json import summary_json
from servetop.core.errors import RecordingError
from servetop.core.events import RequestRecord, RunEnd, StageChange
from servetop.core.interfaces.recording_store import RecordingState
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import Tick
from servetop.recordings.format.reader_limits import MAX_STAGES
from servetop.recordings.format.schema import RUN_COLUMNS
from servetop.recordings.library.catalog import describe, list_recordings
from servetop.recordings.library.folder_store import FolderStore
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.resume import resume_recording
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import run_summary
from tests.recordings.rows import change

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"


@pytest.fixture
def recording(
    tmp_path: Path, header: RunHeader, make_tick: Callable[..., Tick], make_request: Callable[..., RequestRecord]
) -> Path:
    """A sound recording: 40 ticks with a request each."""
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    stage = StageChange(at=0.0, index=0, label="8 req/s", request_rate=8.0, max_concurrency=None, max_num_seqs=None)
    for number in range(40):
        tick = make_tick(number, ok=1, output_tokens=2, ttfts=[0.01, 0.02])
        recorder.commit(
            TickTransaction(tick=tick, requests=[make_request(number, number / 4)], stages=[] if number else [stage])
        )
    recorder.close(RunEnd(at=10.0, exit_code=0, reason=""))
    return recorder.path


def read_everywhere(path: Path) -> tuple[str, dict[str, object]]:
    """Read a file with every reader of servetop; return the error or damage, and the summary."""
    with contextlib.suppress(RecordingError):
        FolderStore(path.parent).preview(path, bins=20)
    describe(path)
    try:
        with closing(RecordingReader.open(path)) as reader:
            history = TickHistory()
            update = reader.poll()
            for tick in update.ticks:
                history.append(tick)
            for tick in history.ticks[:: max(1, len(history) // 5)]:
                live_stats(history, tick.end)
            reader.requests(0.0, 100.0)
            reader.requests(0.0, 100.0, most=5)
            summary = summary_json(run_summary(reader))
            json.dumps(summary, allow_nan=False)
            return reader.damage or "", summary
    except RecordingError as error:
        return str(error), {}


@pytest.mark.parametrize(
    ("what", "statements"),
    [
        ("a view in place of run", ("DROP TABLE run", f"CREATE VIEW run AS {ENDLESS} i AS seq FROM n")),
        ("a view in place of tick", ("DROP TABLE tick", f"CREATE VIEW tick AS {ENDLESS} i AS seq FROM n")),
        ("an unused view", ("CREATE VIEW fine AS SELECT 1",)),
        ("a trigger", ("CREATE TRIGGER t AFTER INSERT ON command BEGIN DELETE FROM tick; END",)),
        ("a virtual table", ("CREATE VIRTUAL TABLE v USING fts5(text)",)),
        ("a generated column", ("CREATE TABLE g (a INTEGER, b AS (zeroblob(a)))",)),
        ("a check", ("CREATE TABLE c (a INTEGER CHECK (abs(a) > 0))",)),
        ("an index on a function", ("CREATE INDEX i ON note (zeroblob(at))",)),
        ("a partial index", ("CREATE INDEX i ON note (at) WHERE abs(at) > 0",)),
        ("a collation", ("CREATE TABLE c (a TEXT COLLATE nocase)",)),
    ],
)
def test_a_file_with_anything_but_plain_tables_and_indexes_is_not_opened(
    recording: Path, what: str, statements: tuple[str, ...]
) -> None:
    change(recording, *statements)
    with pytest.raises(RecordingError, match=r"run\.servetop is not opened: it contains .*, which servetop does not"):
        RecordingReader.open(recording)


def test_plain_tables_columns_and_indexes_of_a_newer_minor_version_are_ignored(recording: Path) -> None:
    change(
        recording,
        "CREATE TABLE omen (seq INTEGER PRIMARY KEY, at REAL, text TEXT)",
        "CREATE INDEX omen_at ON omen (at, text)",
        "ALTER TABLE tick ADD COLUMN omens INTEGER",
        "ANALYZE",
    )
    damage, summary = read_everywhere(recording)
    assert damage == ""
    assert summary["completed"] == 40


INVALID_VALUES = {
    "run.end_at": "UPDATE run SET end_at = 9e999",
    "run.end_reason": "UPDATE run SET end_reason = x'ff00'",
    "run.exit_code": "UPDATE run SET exit_code = 'none'",
    "run.steady": "UPDATE run SET steady = '[{\"stage\": 0, \"start\": 5, \"end\": 5, \"method\": \"window\"}]'",
    "run.wall_epoch_s": "UPDATE run SET wall_epoch_s = 9e300",
    "run.wall_epoch_s text": "UPDATE run SET wall_epoch_s = 'x'",
    "run.origin_ns": "UPDATE run SET origin_ns = 1.5",
    "run.config": "UPDATE run SET config = '[]'",
    "run.config deep": "UPDATE run SET config = '" + "[" * 5000 + "'",
    "run.versions": "UPDATE run SET versions = '[1]'",
    "run.host": "UPDATE run SET host = '\"me\"'",
    "run.engine": "UPDATE run SET engine = '[1]'",
    "run.writer pid": "UPDATE run SET end_at = NULL, writer = json_set(writer, '$.pid', -1)",
    "run.writer large": "UPDATE run SET end_at = NULL, writer = json_set(writer, '$.pid', 99999999999999999999)",
    "run.pid": "UPDATE run SET pid = -9e18",
    "run twice": f"INSERT INTO run SELECT 2, {', '.join(RUN_COLUMNS)} FROM run",
    "tick.number": "UPDATE tick SET number = 9223372036854775807 WHERE seq = 40",
    "tick.number negative": "UPDATE tick SET number = -5 WHERE seq = 1",
    "tick.output_tokens": "UPDATE tick SET output_tokens = 9223372036854775807",
    "tick.gpus": "UPDATE tick SET gpus = '[1]'",
    "tick.ttft": "UPDATE tick SET ttft = zeroblob(20)",
    "tick.cpu_seconds": "UPDATE tick SET cpu_seconds = 9e999 WHERE seq = 7",
    "stage.at": "UPDATE stage SET at = 9e999",
    "stage.number": "UPDATE stage SET number = 9223372036854775807",
    "stage.request_rate": "UPDATE stage SET request_rate = 'fast'",
    "request.done_at": "UPDATE request SET done_at = 9e999 WHERE seq = 3",
    "request.due": "UPDATE request SET due = -1e300 WHERE seq = 3",
    "request.output_tokens": "UPDATE request SET output_tokens = 9223372036854775807 WHERE seq = 3",
    "request.reasoning_tokens": "UPDATE request SET reasoning_tokens = 1e308",
    "request.sent text": "UPDATE request SET sent = 'soon' WHERE seq = 3",
    "request.id": "UPDATE request SET id = 1e300 WHERE seq = 3",
    "request.chunk_times": "UPDATE request SET chunk_times = x'ffffffffff' WHERE seq = 3",
    "request.chunk_times huge": "UPDATE request SET chunk_times = zeroblob(30000000) WHERE seq = 3",
    "request.error": "UPDATE request SET error = zeroblob(40000000) WHERE seq = 3",
    "note.text": "INSERT INTO note (at, severity, source, text) VALUES (1, 'info', 'x', zeroblob(60000000))",
    "note.at": "INSERT INTO note (at, severity, source, text) VALUES (-9e999, 'loud', 7, NULL)",
    "engine_sample": "INSERT INTO engine_sample (scrape_start, scrape_end, running) VALUES (1, 9e999, 1e308)",
    "gpu_sample": "INSERT INTO gpu_sample (at, device, name, power) VALUES (1, 0, 'x', 1e308)",
    "command": "INSERT INTO command (at, action, value, text, source) VALUES (1, 'no_such', 9e999, '', '')",
}  # fmt: skip


IGNORED_VALUES = (
    "run.steady", "run twice", "run.writer pid", "run.writer large", "command", "request.output_tokens", "gpu_sample",
)  # fmt: skip
"""Values that are ignored, or that a faulty server may have sent."""


@pytest.mark.parametrize("what", INVALID_VALUES)
def test_invalid_values_anywhere_are_reported_in_one_line_and_never_counted(recording: Path, what: str) -> None:
    change(recording, INVALID_VALUES[what])
    message, summary = read_everywhere(recording)
    if what not in IGNORED_VALUES:
        assert "is damaged" in message
    assert len(message.splitlines()) <= 1
    if summary and not what.startswith("request"):
        assert summary["completed"] == 40


def test_an_altered_tick_is_detected_by_its_checksum_and_omitted(recording: Path) -> None:
    change(recording, "UPDATE tick SET output_tokens = 3 WHERE seq = 21")
    with closing(RecordingReader.open(recording)) as reader:
        assert [tick.index for tick in reader.poll().ticks] == list(range(20))
        assert "row 21 of table tick: its checksum does not match: it was torn or altered" in str(reader.damage)


@pytest.mark.parametrize("column", ["ttft", "itl", "stage", "gpus", "number", "checksum", "engine_running"])
def test_the_checksum_detects_any_change_of_a_tick(recording: Path, column: str) -> None:
    change(recording, f"UPDATE tick SET {column} = CASE WHEN {column} IS NULL THEN 5 ELSE NULL END WHERE seq = 21")
    with closing(RecordingReader.open(recording)) as reader:
        assert len(reader.poll().ticks) == 20
        assert reader.damage is not None


def test_ticks_of_an_older_version_without_checksums_are_read_before_resumed_ones(
    recording: Path, header: RunHeader, make_tick: Callable[..., Tick]
) -> None:
    change(
        recording,
        "ALTER TABLE tick DROP COLUMN checksum",
        "ALTER TABLE tick DROP COLUMN ttfot",
        "PRAGMA user_version = 1003",
    )
    recorder, start = resume_recording(recording)
    recorder.commit(TickTransaction(tick=make_tick(start.first_tick, ttfts=[0.5])))
    recorder.close(RunEnd(at=11.0, exit_code=0, reason=""))
    with closing(RecordingReader.open(recording)) as reader:
        assert len(reader.poll().ticks) == len(reader.ticks()) == 41
        assert reader.damage is None
    change(recording, "UPDATE tick SET ok = 9 WHERE seq = 41")
    with closing(RecordingReader.open(recording)) as reader:
        assert len(reader.ticks()) == 40


def test_a_run_of_twenty_thousand_stages_is_limited_to_the_maximum(recording: Path) -> None:
    change(
        recording,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO stage"
        " (at, number, label, request_rate, repeat, warmup) SELECT i / 100.0, i, 'x', 1.0, 0, 0 FROM n",
    )
    with closing(RecordingReader.open(recording)) as reader:
        assert len(reader.stages()) == MAX_STAGES
        assert f"it has more than {MAX_STAGES} stages" in str(reader.damage)


def test_a_folder_with_hostile_files_is_listed_with_their_errors(recording: Path) -> None:
    for number, statement in enumerate(INVALID_VALUES.values()):
        hostile = recording.with_name(f"hostile{number}.servetop")
        shutil.copyfile(recording, hostile)
        change(hostile, statement)
    view = recording.with_name("view.servetop")
    shutil.copyfile(recording, view)
    change(view, "CREATE VIEW fine AS SELECT 1")
    found = {info.path.stem: info for info in list_recordings(recording.parent)}
    assert len(found) == len(INVALID_VALUES) + 2
    assert found["run"].state is RecordingState.FINISHED
    assert found["view"].state is RecordingState.UNREADABLE
    assert "which servetop does not create" in found["view"].problem
