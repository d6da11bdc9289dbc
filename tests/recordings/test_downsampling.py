"""The recording of a long watch is merged and dropped while it grows, and every reader copes with it."""

import itertools
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from servetop.analysis.series.client_columns import COUNT_GETTERS
from servetop.analysis.series.tick_history import ENGINE_DELTA_COLUMNS, GAUGE_COLUMNS, TickHistory
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.events import EngineSample, Note, RunEnd, Severity
from servetop.core.interfaces.run_source import EngineFacts, RunHeader
from servetop.core.interfaces.series_scrape import MergedScrape, unpack_numbers
from servetop.core.tick import TICK_SECONDS, Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.verify.verify import verify
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.watch_summary import watch_summary
from tests.recordings.conftest import START_PROGRAM
from tests.recordings.rows import change
from tests.recordings.watched_rows import NAMES, fleet_tick, watched_tick

MINUTE = round(60 / TICK_SECONDS)
Record = Callable[..., Path]


@pytest.fixture
def record(tmp_path: Path, header: RunHeader) -> Record:
    """Record a watch of `ticks` ticks; what is older than `full` seconds is merged, than `keep` dropped."""

    def write(
        ticks: int,
        *,
        full: float | None = 60.0,
        keep: float | None = None,
        tick: Callable[[int], TickTransaction] = watched_tick,
        name: str = "watch",
    ) -> Path:
        config = replace(header.config, stages=(), watch=WatchConfig(keep=keep))
        facts = EngineFacts(name="vllm", title="vLLM", model="m", kv_blocks_total=100, max_num_seqs=64)
        path = tmp_path / f"{name}.servetop"
        recorder = Recorder.create(path, replace(header, config=config, engine=facts))
        if full is not None:
            recorder.downsample(keep=keep, full=full)
        for number in range(ticks):
            recorder.commit(tick(number))
        recorder.close(RunEnd(at=ticks * TICK_SECONDS, exit_code=0, reason=""))
        return path

    return write


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def unsound(path: Path) -> list[str]:
    return [check.detail for check in verify(path).checks if not check.sound]


def ticks_of(path: Path) -> Sequence[Tick]:
    with closing(RecordingReader.open(path)) as reader:
        return reader.ticks()


def column(ticks: Sequence[Tick | None], name: str) -> list[float]:
    return [getattr(tick.engine, name) for tick in ticks if tick is not None]


def test_what_is_older_than_the_full_time_has_a_row_every_ten_seconds(record: Record) -> None:
    path = record(5 * MINUTE)
    assert count(path, "tick") == 40 + 3 * 6 + 5 + MINUTE
    assert count(path, "engine_sample") == pytest.approx(40 + 3 * 6 + 5 + MINUTE, abs=2)
    assert count(path, "engine_series") == pytest.approx(4 * 6 + 60, abs=2)
    assert unsound(path) == []


def test_every_tick_is_read_with_the_gauges_means_and_maxima_and_the_counters_of_each_ten_seconds(
    record: Record,
) -> None:
    merged, whole = ticks_of(record(5 * MINUTE)), ticks_of(record(5 * MINUTE, full=None, name="whole"))
    assert [tick.index for tick in merged] == [tick.index for tick in whole] == [*range(5 * MINUTE)]
    for first in range(0, 4 * MINUTE, 40):
        ours, theirs = merged[first : first + 40], whole[first : first + 40]
        for name in ("running", "kv_usage"):
            assert np.mean(column(ours, name)) == pytest.approx(np.mean(column(theirs, name)))
            assert max(column(ours, name)) == max(column(theirs, name))
        last = [column(each[-1:], "generation_tokens_total") for each in (ours, theirs)]
        assert last[0] == last[1]
        assert np.allclose(column(ours, "generation_tokens_total"), column(theirs, "generation_tokens_total"), atol=1.0)
        assert np.allclose(column(ours, "scrape_end"), column(theirs, "scrape_end"), atol=0.26)
    assert [tick.engine for tick in merged[4 * MINUTE :]] == [tick.engine for tick in whole[4 * MINUTE :]]


def test_the_summary_has_the_same_figures(record: Record) -> None:
    summaries = []
    for path in (record(5 * MINUTE), record(5 * MINUTE, full=None, name="whole")):
        with closing(RecordingReader.open(path)) as reader:
            summaries.append(watch_summary(reader))
    merged, whole = summaries
    assert merged.watched == whole.watched
    assert merged.server == whole.server
    assert merged.engine_metrics == whole.engine_metrics


def test_a_history_of_merged_ticks_is_that_of_the_ticks_made_from_them(record: Record) -> None:
    ticks = ticks_of(record(5 * MINUTE, tick=lambda number: watched_tick(number, gpus=1)))
    merged, made = TickHistory(ticks), TickHistory(list(ticks))
    assert len(merged) == len(made) == 5 * MINUTE
    for name in (*COUNT_GETTERS, *GAUGE_COLUMNS, *ENGINE_DELTA_COLUMNS, "throttled"):
        np.testing.assert_allclose(merged.column(name), made.column(name), atol=1e-9)
    assert merged.ticks[333].engine == made.ticks[333].engine


def test_a_recording_that_is_read_while_it_is_merged_gives_the_same_ticks(tmp_path: Path, header: RunHeader) -> None:
    recorder = Recorder.create(tmp_path / "live.servetop", header)
    recorder.downsample(full=10.0)
    indexes: list[int] = []
    with closing(RecordingReader.open(recorder.path)) as reader:
        for number in range(2 * MINUTE):
            recorder.commit(watched_tick(number))
            if number % 7 == 0:
                indexes += [tick.index for tick in reader.poll().ticks]
        assert indexes == [*range(indexes[-1] + 1)]
        again = reader.past_ticks(35, 90)
        assert [tick.index for tick in again] == [*range(35, 91)]
        late = RecordingReader.open(recorder.path)
        by_parts = [tick.index for _ in range(4 * MINUTE) for tick in late.poll(most_ticks=50).ticks]
        late.close()
        assert by_parts == [*range(2 * MINUTE)]
    recorder.close(RunEnd(at=30.0, exit_code=0, reason=""))


def test_ten_seconds_in_which_the_server_restarts_or_is_silent_are_kept(record: Record) -> None:
    def restarting(number: int) -> TickTransaction:
        batch = watched_tick(number, since=100.0 if number >= 420 else 0.0)
        if 200 <= number < 240 and batch.tick is not None:  # no metrics from 0:50 to 1:00
            stale = watched_tick(199).tick
            assert stale is not None
            batch = TickTransaction(tick=Tick(client=batch.tick.client, engine=stale.engine))
        return batch

    path = record(4 * MINUTE, full=10.0, tick=restarting)
    with closing(sqlite3.connect(path)) as connection:
        kept = {row[0] for row in connection.execute("SELECT number FROM tick WHERE merged IS NULL AND number < 900")}
    assert {*range(400, 440)} <= kept
    assert {*range(200, 240)} <= kept
    totals = column(ticks_of(path), "generation_tokens_total")
    increases = [later - earlier if later >= earlier else later for earlier, later in itertools.pairwise(totals)]
    assert sum(increases) == pytest.approx(column([watched_tick(419).tick], "generation_tokens_total")[0] - 10 + 5600)
    assert unsound(path) == []


def test_what_is_older_than_keep_is_dropped_and_its_space_is_used_again(record: Record) -> None:
    sizes = [
        record(minutes * MINUTE, full=30.0, keep=120.0, name=f"of {minutes}").stat().st_size for minutes in (4, 20)
    ]
    assert sizes[1] <= 1.1 * sizes[0]
    path = record(6 * MINUTE, full=30.0, keep=120.0)
    ticks = ticks_of(path)
    assert ticks[0].start == pytest.approx(240.0, abs=10.0)
    assert ticks[-1].index == 6 * MINUTE - 1
    assert unsound(path) == []
    with closing(RecordingReader.open(path)) as reader:
        series = reader.engine_series()
        figures = watch_summary(reader).watched
    assert series[0].names == NAMES
    assert figures is not None
    assert figures.output_throughput == pytest.approx(40.0, rel=0.1)  # the first ten seconds have no count before them


def test_a_lost_beginning_is_not_taken_for_a_dropped_one(record: Record) -> None:
    path = record(6 * MINUTE, full=30.0, keep=120.0)
    change(path, "DELETE FROM tick WHERE number < 1080")
    assert unsound(path) == ["the ticks before second 270.00 are missing"]


def test_a_lost_merged_row_is_noticed(record: Record) -> None:
    path = record(4 * MINUTE)
    change(path, "DELETE FROM tick WHERE number = 199")
    assert unsound(path) == ["ticks are missing or out of order after second 40.00"]


def test_the_samples_of_each_of_several_servers_are_merged_and_read_as_before(record: Record) -> None:
    path = record(5 * MINUTE, tick=lambda number: fleet_tick(number, replicas=3))
    assert count(path, "replica_sample") < 3 * (10 + 4 * 6 + 60 + 4)
    with closing(RecordingReader.open(path)) as reader:
        samples = reader.replica_samples()
        scrapes = [each for each in reader.poll().engine_series if each.replica == 1]
    of_one = [each for each in samples if each.replica == 1]
    assert len(of_one) == 300
    assert sum(each.count if isinstance(each, MergedScrape) else 1 for each in scrapes) == 300
    assert np.diff([each.scrape_end for each in of_one]).max() < 1.6
    totals = np.array([each.generation_tokens_total for each in of_one], dtype=np.float64)
    assert np.diff(totals).min() >= 0
    numbers = [np.frombuffer(unpack_numbers(each.numbers, count=3) or b"", "<f8") for each in scrapes]
    assert np.diff([each[1] for each in numbers]).max() <= 20.0
    assert unsound(path) == []


def test_gpus_are_merged(record: Record) -> None:
    path = record(2 * MINUTE, full=10.0, tick=lambda number: watched_tick(number, gpus=2))
    assert count(path, "gpu_sample") < 2 * (12 * 6 + 84)
    with closing(RecordingReader.open(path)) as reader:
        samples = [each for each in reader.gpu_samples() if each.index == 1]
        ticks = reader.ticks()
    assert len(samples) == 2 * MINUTE
    assert np.mean([each.utilisation for each in samples]) == pytest.approx(
        np.mean(column(ticks, "running")) / 20, rel=0.02
    )
    assert [len(tick.gpus) for tick in ticks] == [2] * (2 * MINUTE)


def test_notes_are_never_merged_and_dropped_only_when_old(tmp_path: Path, header: RunHeader) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    recorder.downsample(full=10.0, keep=60.0)
    for number in range(2 * MINUTE):
        note = Note(at=number * TICK_SECONDS, severity=Severity.INFO, source="user", text=f"mark {number}")
        recorder.commit(replace(watched_tick(number), notes=[note]))
    with closing(RecordingReader.open(recorder.path)) as reader:
        marks = [each.at for each in reader.notes()]
    recorder.close(RunEnd(at=120.0, exit_code=0, reason=""))
    assert marks == [number * TICK_SECONDS for number in range(round(marks[0] / TICK_SECONDS), 2 * MINUTE)]
    assert marks[0] == 60.0


def test_a_step_that_cannot_be_written_is_repeated(tmp_path: Path, header: RunHeader) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    recorder.downsample(full=10.0)
    for number in range(119):
        recorder.commit(watched_tick(number))
    change(recorder.path, "CREATE TEMP TABLE unused (a)")
    with closing(sqlite3.connect(recorder.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        recorder.commit(watched_tick(119))
        assert count(recorder.path, "tick") == 119
        other.execute("ROLLBACK")
    recorder.commit(watched_tick(120))
    recorder.close(RunEnd(at=30.25, exit_code=0, reason=""))
    assert count(recorder.path, "tick") == 40 + 1 + 41
    assert unsound(recorder.path) == []


@pytest.mark.parametrize("after", [83, 160, 241, 317, 402])
def test_a_watch_that_is_killed_at_any_time_leaves_a_sound_recording(
    tmp_path: Path, start_program: START_PROGRAM, after: int
) -> None:
    path = tmp_path / "killed.servetop"
    writer = start_program("watch_writer.py", path)
    assert writer.stdout is not None
    for line in writer.stdout:
        if line == f"tick {after}\n":
            break
    writer.kill()
    writer.wait()
    assert unsound(path) == []
    indexes = [tick.index for tick in ticks_of(path)]
    assert indexes == [*range(indexes[0], indexes[-1] + 1)]
    assert indexes[-1] >= after


def test_a_row_that_claims_to_stand_for_more_than_any_is_damage(record: Record) -> None:
    path = record(3 * MINUTE)
    change(path, "UPDATE engine_sample SET merged = 1000000 WHERE seq = (SELECT min(seq) FROM engine_sample)")
    with closing(RecordingReader.open(path)) as reader:
        assert len(reader.engine_samples()) < 3 * MINUTE
        assert reader.damage is not None


def test_the_header_of_a_merged_recording_tells_versions_that_know_one_length_of_a_tick(record: Record) -> None:
    with closing(sqlite3.connect(record(2 * MINUTE))) as connection:
        assert connection.execute("SELECT tick_seconds FROM run").fetchone() == (10.0,)
    with closing(sqlite3.connect(record(30, name="short"))) as connection:
        assert connection.execute("SELECT tick_seconds FROM run").fetchone() == (0.25,)


def test_ticks_with_requests_of_a_client_are_never_merged(tmp_path: Path, header: RunHeader) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    recorder.downsample(full=10.0)
    for number in range(MINUTE):
        tick = watched_tick(number).tick
        assert tick is not None
        recorder.commit(TickTransaction(tick=replace(tick, client=replace(tick.client, output_tokens=1))))
    recorder.close(RunEnd(at=60.0, exit_code=0, reason=""))
    assert count(recorder.path, "tick") == MINUTE
    assert isinstance(ticks_of(recorder.path)[0].engine, EngineSample)
