"""The catalogue of recordings, and how they are found by name."""

import dataclasses
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig
from servetop.core.errors import RecordingError
from servetop.core.events import RunEnd
from servetop.core.interfaces.recording_store import RecordingState
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import Tick
from servetop.recordings.library.catalog import (
    describe,
    latest,
    list_recordings,
    resolve,
)
from servetop.recordings.library.paths import new_recording_path, recordings_folder
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction

MakeTick = Callable[..., Tick]
NOON = 1_700_000_000.0


@pytest.fixture
def record(tmp_path: Path, header: RunHeader, make_tick: MakeTick) -> Callable[..., Path]:
    """A finished recording of ten ticks, started a number of seconds after NOON."""

    def make(name: str, *, after: float = 0.0) -> Path:
        anchor = ClockAnchor(origin_ns=0, wall_epoch_s=NOON + after)
        recorder = Recorder.create(tmp_path / f"{name}.servetop", dataclasses.replace(header, anchor=anchor))
        for number in range(10):
            tokens = 50 if number in (3, 4, 5) else 10
            recorder.commit(TickTransaction(tick=make_tick(number, ok=2, errors=1, output_tokens=tokens)))
        recorder.close(RunEnd(at=2.75, exit_code=0, reason=""))
        return recorder.path

    return make


def test_a_recording_is_described_by_its_header_and_ticks(record: Callable[..., Path]) -> None:
    info = describe(record("one"))
    assert (info.state, info.exit_code, info.engine, info.model) == (RecordingState.FINISHED, 0, "sim", "llama-2-7b")
    assert (info.started, info.duration, info.requests, info.label) == (NOON, 2.75, 30, "test")
    assert info.peak_output_tokens_per_s == 120  # ticks 4-7


def test_a_description_does_not_read_the_wide_rows(record: Callable[..., Path]) -> None:
    with closing(sqlite3.connect(record("one"))) as connection:
        totals = "SELECT max(number), sum(ok + errors + timeouts + cancelled + truncated) FROM tick"
        peak = "SELECT max(tokens) FROM (SELECT sum(output_tokens) AS tokens FROM tick GROUP BY number / 4)"
        plans = [connection.execute(f"EXPLAIN QUERY PLAN {query}").fetchall() for query in (totals, peak)]
    assert all("COVERING INDEX tick_totals" in str(plan) for plan in plans)


def test_recordings_are_listed_newest_first_including_unreadable_ones(
    record: Callable[..., Path], tmp_path: Path
) -> None:
    record("older", after=10.0)
    record("newer", after=20.0)
    (tmp_path / "junk.servetop").write_bytes(b"junk" * 100)
    os.utime(tmp_path / "junk.servetop", (NOON + 15, NOON + 15))
    (tmp_path / "notes.txt").write_text("not listed")
    listed = list_recordings(tmp_path)
    assert [info.path.stem for info in listed] == ["newer", "junk", "older"]
    assert listed[1].state is RecordingState.UNREADABLE
    assert "is not a servetop recording" in listed[1].problem


def test_a_running_recording_is_live(recorder: Recorder, make_tick: MakeTick) -> None:
    recorder.commit(TickTransaction(tick=make_tick(7, ok=1)))
    info = describe(recorder.path)
    assert (info.state, info.duration, info.exit_code) == (RecordingState.LIVE, 2.0, None)


def test_a_folder_that_does_not_exist_has_no_recordings(tmp_path: Path) -> None:
    assert list_recordings(tmp_path / "none") == []
    with pytest.raises(RecordingError, match="no recording in"):
        latest(tmp_path / "none")


def test_a_recording_is_found_by_path_by_name_and_as_the_latest(record: Callable[..., Path], tmp_path: Path) -> None:
    older, newer = record("older"), record("newer", after=5.0)
    assert resolve("latest", folder=tmp_path) == newer
    assert resolve(str(older), folder=tmp_path / "elsewhere") == older
    assert resolve("older", folder=tmp_path) == older
    assert resolve("older.servetop", folder=tmp_path) == older
    with pytest.raises(RecordingError, match="no such recording: oldr: did you mean older"):
        resolve("oldr", folder=tmp_path)


def test_a_label_is_enough_for_the_only_recording_that_has_it(record: Callable[..., Path], tmp_path: Path) -> None:
    ramp = record("20261125-101500-rampsearch-llama-2-7b")
    first, last = (record(f"20261125-10{minute}00-soak-llama-2-7b") for minute in (20, 30))
    assert resolve("rampsearch", folder=tmp_path) == ramp
    with pytest.raises(RecordingError, match=f"2 recordings are called soak: use the whole name, as in {last.stem}"):
        resolve("soak", folder=tmp_path)
    assert resolve(first.stem, folder=tmp_path) == first


def test_the_beginning_of_a_label_is_enough_for_the_only_recording_that_has_it(
    record: Callable[..., Path], tmp_path: Path
) -> None:
    ramp, *soaks = (
        record(f"20261125-10{minute}00-{label}") for minute, label in ((15, "ramp"), (20, "soak-a"), (30, "soak-b"))
    )
    assert resolve("ra", folder=tmp_path) == ramp
    assert resolve("soak-b", folder=tmp_path) == soaks[1]
    with pytest.raises(
        RecordingError, match="2 recordings have a part that begins with so: use the whole name, as in 2"
    ):
        resolve("so", folder=tmp_path)


def test_the_beginning_of_a_name_is_enough_for_the_only_recording_that_has_it(
    record: Callable[..., Path], tmp_path: Path
) -> None:
    older, newer = record("20261125-101500-llama-2-7b"), record("20261125-102000-llama-2-7b")
    assert resolve("20261125-1015", folder=tmp_path) == older
    with pytest.raises(
        RecordingError, match=f"2 recordings begin with 20261125-10: use the whole name, as in {newer.stem}"
    ):
        resolve("20261125-10", folder=tmp_path)
    with pytest.raises(RecordingError, match="no such recording"):
        resolve("", folder=tmp_path)


def test_latest_skips_unreadable_recordings(record: Callable[..., Path], tmp_path: Path) -> None:
    path = record("good")
    (tmp_path / "junk.servetop").write_bytes(b"junk")
    assert latest(tmp_path) == path


@pytest.mark.parametrize(
    ("engine", "label", "name"),
    [
        (EngineConfig(name="vllm", model="meta-llama/Llama-2-7b-hf"), "", "vllm-Llama-2-7b-hf"),
        (EngineConfig(name="vllm", model="/models/my model/"), "a/b: c!", "a-b-c-my-model"),
        (EngineConfig(name="openai", model="", url="http://x"), "", "openai"),
        (EngineConfig(name="auto", model="", url="http://ann:pw@gpu7:8000/v1"), "", "gpu7-8000"),
        (EngineConfig(name="auto", model="", url="gpu7"), "", "gpu7"),
        (EngineConfig(model="../../etc"), "../..", "etc"),
        (EngineConfig(model="m" * 300), "", "sim-" + "m" * 48),
    ],
)
def test_the_name_of_a_new_recording_contains_time_label_and_model(
    engine: EngineConfig, label: str, name: str, tmp_path: Path
) -> None:
    path = new_recording_path(RunConfig(engine=engine, label=label), NOON, folder=tmp_path)
    assert path.parent == tmp_path
    stamp, rest = path.name[:15], path.name[16:]
    assert stamp[:6] == "202311"
    assert rest == f"{name}.servetop"


def test_two_runs_started_in_the_same_second_get_different_names(tmp_path: Path) -> None:
    first = new_recording_path(RunConfig(), NOON, folder=tmp_path)
    first.touch()
    second = new_recording_path(RunConfig(), NOON, folder=tmp_path)
    assert second.stem == f"{first.stem}-2"


def test_a_folder_that_cannot_be_used_has_a_name_for_a_new_recording(tmp_path: Path) -> None:
    unusable = tmp_path / ("x" * 300)
    assert new_recording_path(RunConfig(), 0.0, folder=unusable).parent == unusable


def test_the_folder_is_the_users_data_folder_unless_set_by_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert recordings_folder({}) == tmp_path / "servetop" / "recordings"
    assert recordings_folder({"SERVETOP_RECORDINGS": "/data/runs"}) == Path("/data/runs")
