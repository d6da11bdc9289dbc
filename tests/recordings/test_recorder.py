"""The recorder: one file, one transaction per tick, clear errors, no secrets."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.core.errors import RecordingError
from servetop.core.events import Action, EngineSample, LogLine, Note, RequestRecord, RunEnd, Severity, StageChange
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.interfaces.series_scrape import SeriesScrape, pack_numbers
from servetop.core.tick import Tick
from servetop.recordings.format import schema
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction

END = RunEnd(at=2.5, exit_code=0, reason="")


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """The rows that any SQLite tool reads."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def test_a_closed_recording_is_one_plain_sqlite_file_with_its_signature(
    recorder: Recorder, make_tick: Callable[..., Tick], make_request: Callable[..., RequestRecord]
) -> None:
    recorder.commit(
        TickTransaction(tick=make_tick(0, ok=1, in_flight=3, ttfts=[0.1]), requests=[make_request(7, 0.05)])
    )
    recorder.close(END)
    assert [path.name for path in recorder.path.parent.iterdir()] == ["run.servetop"]
    assert query(recorder.path, "PRAGMA journal_mode") == [("delete",)]
    assert query(recorder.path, "PRAGMA application_id") == [(0x73767470,)]
    assert query(recorder.path, "PRAGMA user_version") == [(1024,)]
    assert query(recorder.path, "SELECT number, ok, in_flight, length(ttft) FROM tick") == [(0, 1, 3, 14)]
    assert query(recorder.path, "SELECT id, due, output_tokens, status FROM request") == [(7, 0.05, 2, "ok")]
    assert query(recorder.path, "SELECT end_at, exit_code FROM run") == [(2.5, 0)]
    assert query(recorder.path, "PRAGMA integrity_check") == [("ok",)]


def test_closing_twice_changes_nothing_and_a_closed_recorder_rejects_data(recorder: Recorder) -> None:
    recorder.close(END)
    recorder.close(RunEnd(at=9.0, exit_code=1, reason="again"))
    assert query(recorder.path, "SELECT end_at, exit_code FROM run") == [(2.5, 0)]
    with pytest.raises(RecordingError, match="is closed"):
        recorder.commit(TickTransaction())


def test_an_existing_file_is_never_touched(tmp_path: Path, header: RunHeader) -> None:
    path = tmp_path / "precious.servetop"
    path.write_text("mine")
    with pytest.raises(RecordingError, match=r"precious\.servetop already exists.*--record"):
        Recorder.create(path, header)
    assert path.read_text() == "mine"


def test_a_missing_folder_is_created(tmp_path: Path, header: RunHeader) -> None:
    path = tmp_path / "deep" / "down" / "run.servetop"
    Recorder.create(path, header).close(END)
    assert path.exists()


@pytest.mark.parametrize(
    ("place", "reason"),
    [("file/run.servetop", "file exists|not a directory"), ("x" * 300, "file name too long"), (".", "already exists")],
)
def test_an_impossible_path_is_reported_in_one_line(place: str, reason: str, tmp_path: Path, header: RunHeader) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordingError, match=reason) as caught:
        Recorder.create(tmp_path / place, header)
    assert "\n" not in str(caught.value)


def test_the_header_is_read_as_it_was_written(tmp_path: Path, header: RunHeader) -> None:
    config = RunConfig(
        engine=EngineConfig(name="vllm", url="http://gpu7:8000", extra_args=("--max-model-len", "4096")),
        workload=WorkloadConfig(burstiness=float("inf"), extra_body={"top_k": 5, "stop": None}),
        stages=(StageConfig(duration=30.0), StageConfig(request_rate=8.0, max_num_seqs=64)),
        goodput={"ttft": 0.2},
        metadata={"node": "gpu7"},
    )
    full = replace(header, config=config, versions={"servetop": "0.1.0"}, host={"cpus": 2, "name": "box"}, pid=4711)
    recorder = Recorder.create(tmp_path / "full.servetop", full)
    with closing(RecordingReader.open(recorder.path)) as reader:
        assert reader.header == full
        facts = EngineFacts(name="vllm", title="vLLM", version="0.32", kv_blocks_total=759, not_exported=("running",))
        recorder.set_engine(facts)
        assert reader.poll().header == replace(full, engine=facts)
        assert reader.header.engine == facts
        manifest = {"engine": {"argv": ["vllm", "serve"]}, "gpu": {"devices": [{"name": "H100", "memory": 85 << 30}]}}
        recorder.set_manifest(manifest)
        assert reader.poll().header == replace(full, engine=facts, manifest=manifest)
    recorder.close(END)


def test_every_kind_of_event_is_written_to_its_table(recorder: Recorder, reader: RecordingReader) -> None:
    stage = StageChange(at=1.0, index=0, label="8 req/s", request_rate=8.0, max_concurrency=None, max_num_seqs=64)
    note = Note(at=1.5, severity=Severity.WARNING, source="metrics", text="the metrics page vanished")
    line = LogLine(at=0.2, text="INFO: loading weights")
    sample = EngineSample(scrape_start=1.0, scrape_end=1.01, running=3.0, kv_usage=0.5)
    series = SeriesScrape(at=1.01, names="vllm:request_success_total", numbers=pack_numbers([3.0]))
    recorder.commit(
        TickTransaction(stages=[stage], notes=[note], log_lines=[line], engine_samples=[sample], engine_series=[series])
    )
    update = reader.poll()
    assert (update.stages, update.notes, update.log_lines) == ([stage], [note], [line])
    assert reader.engine_samples() == [sample]
    assert update.engine_series == reader.engine_series() == [series]


def test_a_command_is_read_once_and_its_reply_is_written(recorder: Recorder, reader: RecordingReader) -> None:
    reader.send(Action.SET_RATE, value=32.0, text="more")
    (command,) = recorder.new_commands()
    assert (command.action, command.value, command.text, command.source) == (Action.SET_RATE, 32.0, "more", "keyboard")
    assert recorder.new_commands() == []
    recorder.commit(TickTransaction(commands=[replace(command, applied_at=1.25, reply="32 req/s from now on")]))
    assert query(recorder.path, "SELECT obeyed_at, reply FROM command") == [(1.25, "32 req/s from now on")]


def test_an_end_and_a_header_that_are_not_unicode_are_written(tmp_path: Path, header: RunHeader) -> None:
    path = tmp_path / "x.servetop"
    recorder = Recorder.create(path, replace(header, host={"cwd": "/a\udcff"}, manifest={"b\udcff": [1]}))
    recorder.close(RunEnd(at=1.0, exit_code=3, reason="died: \ud83d"), headline="engine failed: \ud83d")
    with closing(RecordingReader.open(path)) as reader:
        assert (reader.end and reader.end.reason) == "died: ?"
        assert (reader.header.host, reader.header.manifest) == ({"cwd": "/a?"}, {"b?": [1]})


def test_secrets_never_reach_the_file(
    tmp_path: Path,
    header: RunHeader,
    make_request: Callable[..., RequestRecord],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", "correct-horse-battery")
    engine = EngineConfig(
        url="http://user:hunter2222@gpu7:8000",
        api_key_env="MY_KEY",
        extra_args=("--api-key", "plainsecret1", "--hf-token=plainsecret2"),
    )
    metadata = {"Authorization": "Bearer plainsecret3", "note": "uses sk-plainsecret4 and hf_plainsecret5"}
    config = replace(header.config, engine=engine, metadata=metadata)
    recorder = Recorder.create(tmp_path / "secret.servetop", replace(header, config=config))
    recorder.set_engine(EngineFacts(name="vllm", title="vLLM", url="http://user:hunter2222@gpu7:8000"))
    recorder.commit(
        TickTransaction(
            log_lines=[LogLine(at=0.0, text="args: {'api_key': ['plainsecret6'], 'port': 8000}")],
            notes=[Note(at=0.0, severity=Severity.INFO, source="user", text="key is correct-horse-battery")],
            requests=[make_request(1, 0.0, error="HTTP 401: bad key correct-horse-battery")],
        )
    )
    recorder.close(RunEnd(at=1.0, exit_code=1, reason="refused correct-horse-battery"))
    content = recorder.path.read_bytes()
    assert not [word for word in (b"plainsecret", b"hunter2222", b"correct-horse") if word in content]
    with closing(RecordingReader.open(recorder.path)) as reader:
        assert reader.header.config.engine.api_key_env == "MY_KEY"
        assert reader.header.config.engine.extra_args == ("--api-key", "[redacted]", "--hf-token=[redacted]")
        assert reader.poll().log_lines[0].text == "args: {'api_key': [redacted], 'port': 8000}"


def test_the_schema_of_format_1_24_is_unchanged() -> None:
    """If you add a column, increment FORMAT_MINOR, extend docs/reference/recording-format.md and update this test."""
    widths = {table.name: len(table.names) + 1 for table in schema.EVENT_TABLES}
    assert (schema.FORMAT_MAJOR, schema.FORMAT_MINOR) == (1, 24)
    assert widths == {
        "request": 30,
        "in_flight": 10,
        "tick": 70,
        "engine_sample": 31,
        "replica_sample": 32,
        "replica_change": 9,
        "engine_series": 6,
        "gpu_sample": 15,
        "stage": 16,
        "skipped_cell": 10,
        "command": 8,
        "note": 8,
        "log_line": 4,
        "search_state": 10,
    }


def test_every_column_is_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "reference" / "recording-format.md").read_text()
    columns = [*schema.RUN_COLUMNS, *(name for table in schema.EVENT_TABLES for name in table.names)]
    assert [name for name in columns if f"`{name}`" not in text] == []


def test_a_recording_that_is_removed_immediately_fails_in_one_line(
    tmp_path: Path, header: RunHeader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def removed(path: Path) -> None:
        path.unlink()
        path.stat()

    monkeypatch.setattr("servetop.recordings.write.recorder.OpenFile", removed)
    with pytest.raises(RecordingError, match=r"cannot record to .*run\.servetop: it was removed immediately"):
        Recorder.create(tmp_path / "run.servetop", header)
