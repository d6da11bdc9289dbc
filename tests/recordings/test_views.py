"""The views of a recording give any SQLite tool the figures that servetop prints."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop import api
from servetop.cli.main import main
from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.core.errors import RecordingError
from servetop.core.events import RequestRecord, RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import TICK_SECONDS, Tick
from servetop.recordings.format.views import VIEWS
from servetop.recordings.library.samples import sample_path
from servetop.recordings.read.load_requests import Selection
from servetop.recordings.read.load_run import load_run
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.resume import resume_recording
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.cooldown import CoolDowns, whole_selection
from tests.recordings.rows import change, sample, stage

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "recording-format.md"
RESULTS = Path(__file__).parents[1] / "corpus" / "results"
END = RunEnd(at=9.0, exit_code=0, reason="")
LOAD = RunConfig(
    engine=EngineConfig(name="sim"),
    workload=WorkloadConfig(input_len=32, output_len=8),
    stages=(
        StageConfig(request_rate=20, duration=1, warmup=True),
        StageConfig(request_rate=40, duration=2),
        StageConfig(request_rate=80, duration=2),
    ),
    cooldown=0.5,
)


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run with a warm-up and cool-downs, and an imported one."""
    folder = tmp_path_factory.mktemp("views")
    run, imported = folder / "run.servetop", folder / "imported.servetop"
    api.run(LOAD, run)
    assert main(["import", str(RESULTS / "vllm-rate.json"), "-o", str(imported)]) == 0
    return {"run": run, "imported": imported}


@pytest.mark.parametrize("name", ["run", "imported"])
def test_counted_requests_are_those_of_the_totals(name: str, recordings: dict[str, Path]) -> None:
    path = recordings[name]
    with api.open_recording(path) as recording:
        requests, summary = recording.requests(), recording.summary().requests
    counted = requests["counted"]
    assert {row[0] for row in query(path, "SELECT id FROM counted_request")} == set(requests["id"][counted].tolist())
    assert (name == "imported") == bool(counted.all())
    found = query(path, "SELECT count(*), sum(output_tokens) FROM counted_request WHERE status = 'ok'")
    assert found == [(summary.completed, summary.total_output_tokens)]


@pytest.mark.parametrize("name", ["run", "imported"])
def test_latencies_of_stages_are_those_of_the_summary(name: str, recordings: dict[str, Path]) -> None:
    path = recordings[name]
    with api.open_recording(path) as recording:
        stages = recording.stages()
    rows = query(path, "SELECT stage, metric, requests, mean, p50, p90, p99 FROM stage_latency")
    assert {row[0] for row in rows} == set(stages["stage"].tolist())
    for number, metric, requests, *figures in rows:
        (place,) = np.flatnonzero(stages["stage"] == number)
        expected = [stages[f"{metric}_{statistic}_s"][place] for statistic in ("mean", "p50", "p90", "p99")]
        assert figures == pytest.approx(expected, rel=1e-9)
        assert requests == stages["ok_requests"][place]


def assert_like_the_summary(path: Path) -> None:
    with api.open_recording(path) as recording:
        stages = recording.stages()
    known = [name for name in ("tpot", "itl") for mean in stages[f"{name}_mean_s"] if not np.isnan(mean)]
    rows = query(path, "SELECT stage, metric, mean, p50, p90, p99 FROM stage_token_latency")
    assert sorted(row[1] for row in rows) == sorted(known)
    for number, metric, *figures in rows:
        (place,) = np.flatnonzero(stages["stage"] == number)
        expected = [stages[f"{metric}_{statistic}_s"][place] for statistic in ("mean", "p50", "p90", "p99")]
        assert figures == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["run", "imported"])
def test_latencies_of_tokens_are_those_of_the_summary(name: str, recordings: dict[str, Path]) -> None:
    assert_like_the_summary(recordings[name])
    assert query(recordings[name], "SELECT DISTINCT metric FROM stage_token_latency ORDER BY 1") == [
        ("itl",),
        ("tpot",),
    ]


@pytest.mark.parametrize("name", ["sample:overload", "sample:h200"])
def test_latencies_of_tokens_of_an_older_sample_are_those_of_its_summary(name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.servetop"
    path.write_bytes(sample_path(name).read_bytes())
    change(path, "ALTER TABLE run ADD COLUMN counted TEXT", *VIEWS.values())
    assert_like_the_summary(path)


@pytest.mark.parametrize("largest", [255, 256, 70_000])
def test_chunks_have_their_times_and_tokens(
    largest: int, tmp_path: Path, header: RunHeader, make_request: Callable[..., RequestRecord]
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    requests = [
        make_request(1, 1.0, tokens_at=(0.5, 0.75, 69.0), chunk_tokens=[3, 0, largest]),
        make_request(2, 1.0, tokens_at=(0.25, 0.5)),
        make_request(3, 1.0, tokens_at=()),
    ]
    recorder.commit(TickTransaction(requests=requests))
    recorder.close(END)
    sql = "SELECT id, number, seconds, tokens FROM chunk JOIN request ON request.seq = chunk.request ORDER BY 1, 2"
    found = query(recorder.path, sql)
    assert found == [(1, 0, 0.5, 3), (1, 1, 0.25, 0), (1, 2, 68.25, largest), (2, 0, 0.25, 1), (2, 1, 0.25, 1)]


@pytest.mark.parametrize(("unknown", "rows"), [(1, 2), (2, 0)])
def test_stages_whose_chunks_are_of_unknown_size_have_no_latencies_of_tokens(
    unknown: int, rows: int, tmp_path: Path, header: RunHeader, make_request: Callable[..., RequestRecord]
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    sizes = [100 if number < unknown else 4 for number in range(100)]
    requests = [
        make_request(number, float(number), tokens_at=(0.1, 0.2, 0.3, 0.4), output_tokens=size)
        for number, size in enumerate(sizes)
    ]
    recorder.commit(TickTransaction(requests=requests))
    recorder.close(END)
    found = query(recorder.path, "SELECT metric, count FROM stage_token_latency ORDER BY 1")
    assert found == [("itl", 3 * 99), ("tpot", 99)][:rows]


def test_rates_of_the_engine_add_up_to_the_servers_tokens(recordings: dict[str, Path]) -> None:
    path = recordings["run"]
    with api.open_recording(path) as recording:
        stages, ticks = recording.stages(), recording.ticks()
        servers = [each.measured.server.generation_tokens for each in recording.summary().stages]
    for start, end, expected in zip(stages["start_s"], stages["end_s"], servers, strict=True):
        where = f"at >= {start} AND at < {end}"
        assert query(path, f"SELECT sum(generation_tokens) FROM engine_rate WHERE {where}") == [(expected,)]
        ((rate,),) = query(path, f"SELECT sum(generation_tokens_per_s * seconds) FROM engine_rate WHERE {where}")
        assert rate == pytest.approx(expected)
    recorded = set(ticks["tick"].tolist())
    end = (max(recorded) + 1) * TICK_SECONDS  # a last scrape may follow
    found = {row[0] for row in query(path, f"SELECT tick FROM engine_rate WHERE at < {end}")}
    assert found
    assert found <= recorded


def test_a_counter_that_fell_began_again(tmp_path: Path, header: RunHeader) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    totals = (100.0, 150.0, 30.0, None, 40.0)
    samples = [sample(float(number), generation_tokens_total=each) for number, each in enumerate(totals)]
    recorder.commit(TickTransaction(engine_samples=samples))
    recorder.close(END)
    rows = query(recorder.path, "SELECT seconds, generation_tokens, generation_tokens_per_s FROM engine_rate")
    assert rows == [(None, None, None), (1.0, 50.0, 50.0), (1.0, 30.0, 30.0), (1.0, None, None), (1.0, None, None)]


def test_requests_of_superseded_attempts_and_cool_downs_are_left_out(
    tmp_path: Path, header: RunHeader, make_request: Callable[..., RequestRecord]
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    requests = [make_request(number, float(number), stage=number // 4) for number in range(12)]
    recorder.commit(TickTransaction(requests=requests))
    excluded = ((1, float("-inf")), (2, 10.0))
    recorder.close(END, counted=Selection(start=2.0, excluded=excluded).as_json())
    assert query(recorder.path, "SELECT id FROM counted_request ORDER BY id") == [(2,), (3,), (8,), (9,)]


def test_a_run_that_ended_in_its_warm_up_has_no_counted_requests(
    tmp_path: Path, header: RunHeader, make_request: Callable[..., RequestRecord]
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    requests = [make_request(number, float(number)) for number in range(6)]
    recorder.commit(TickTransaction(stages=[stage(0, 0.0, warmup=True)], requests=requests))
    with contextlib.closing(recorder.reader()) as reader:
        run = load_run(reader)
        counted = whole_selection(run, CoolDowns.load(reader, run)).as_json()
    recorder.close(END, counted=counted)
    assert query(recorder.path, "SELECT count(*) FROM counted_request") == [(0,)]


@pytest.mark.parametrize(("after", "expected"), [(True, [(4,), (5,)]), (False, [])])
def test_before_the_end_of_a_run_warm_ups_are_left_out(
    after: bool,
    expected: list[tuple[int]],
    tmp_path: Path,
    header: RunHeader,
    make_request: Callable[..., RequestRecord],
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    stages = [stage(0, 0.0, warmup=True), *([stage(1, 4.0)] if after else [])]
    recorder.commit(TickTransaction(stages=stages, requests=[make_request(each, float(each)) for each in range(6)]))
    assert query(recorder.path, "SELECT id FROM counted_request ORDER BY id") == expected
    recorder.close(END)


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_with_another_text_is_refused(name: str, recordings: dict[str, Path], tmp_path: Path) -> None:
    for number, text in enumerate((f"CREATE VIEW {name} AS SELECT 1", VIEWS[name] + " ", VIEWS[name].upper())):
        path = tmp_path / f"{number}.servetop"
        path.write_bytes(recordings["imported"].read_bytes())
        change(path, f"DROP VIEW {name}", text)
        with contextlib.suppress(RecordingError), contextlib.closing(RecordingReader.open(path)):
            assert query(path, f"SELECT sql FROM sqlite_master WHERE name = '{name}'") == [(VIEWS[name],)]
            continue
        with pytest.raises(RecordingError, match=rf"(?i)it contains the view {name}, which servetop does not create"):
            RecordingReader.open(path)


def test_a_view_under_another_name_is_refused(recordings: dict[str, Path], tmp_path: Path) -> None:
    path = tmp_path / "renamed.servetop"
    path.write_bytes(recordings["imported"].read_bytes())
    change(path, VIEWS["engine_rate"].replace("engine_rate", "engine_rates"))
    with pytest.raises(RecordingError, match="the view engine_rates, which servetop does not create"):
        RecordingReader.open(path)


def test_an_older_file_is_read_without_views_and_gets_them_when_it_is_resumed(
    tmp_path: Path, header: RunHeader, make_request: Callable[..., RequestRecord], make_tick: Callable[..., Tick]
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    recorder.commit(TickTransaction(tick=make_tick(0, ok=1), requests=[make_request(1, 0.0)]))
    recorder.close(END)
    drops = [f"DROP VIEW {name}" for name in VIEWS]
    change(recorder.path, *drops, "ALTER TABLE run DROP COLUMN counted", "PRAGMA user_version = 1021")
    with contextlib.closing(RecordingReader.open(recorder.path)) as reader:
        assert reader.request_count() == 1
    resumed, _ = resume_recording(recorder.path)
    resumed.close(END)
    assert query(recorder.path, "SELECT id FROM counted_request") == [(1,)]


def test_the_queries_of_the_docs_run(recordings: dict[str, Path]) -> None:
    section = DOCS.read_text(encoding="utf-8").split("## Queries with sqlite3")[1].split("\n## ")[0]
    queries = re.findall(r"SELECT.*?;", section, re.DOTALL)
    assert len(queries) >= 9
    found = [query(recordings["run"], each) for each in queries]
    assert (
        sum(bool(rows) for rows in found) >= 5
    )  # the others find failures, commands, high KV usage and preemptions, which this run has not
