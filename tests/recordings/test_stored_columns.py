"""The columns of stored samples are those of the samples, read without making them."""

import dataclasses
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.events import EngineSample, RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.merged.merged_sample import MergedSample
from servetop.core.merged.sample_columns import HighestColumns
from servetop.recordings.format import schema
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.read.stored_columns import StoredColumns
from servetop.recordings.write.recorder import Recorder
from tests.recordings.watched_rows import watched_tick

TICKS = 400
NAMES = [each.name for each in dataclasses.fields(EngineSample)]


@pytest.fixture
def watch(tmp_path: Path, header: RunHeader) -> Path:
    """A watch of 100 s, of which all but about the last 20 s are merged."""
    path = tmp_path / "watch.servetop"
    config = dataclasses.replace(header.config, stages=(), watch=WatchConfig())
    recorder = Recorder.create(path, dataclasses.replace(header, config=config))
    recorder.downsample(full=20.0)
    for number in range(TICKS):
        recorder.commit(watched_tick(number))
    recorder.close(RunEnd(at=TICKS / 4, exit_code=0, reason=""))
    return path


def test_each_column_is_that_of_the_samples_with_the_maxima_of_gauges(watch: Path) -> None:
    with closing(RecordingReader.open(watch)) as reader:
        samples = reader.stored(schema.ENGINE_SAMPLE)
        columns = StoredColumns(reader.tables, schema.ENGINE_SAMPLE)
    assert any(isinstance(each, MergedSample) for each in samples)
    for name in NAMES:
        np.testing.assert_array_equal(columns.column(name), HighestColumns(samples).column(name))
    assert columns.column("running").max() == 20.0
    assert np.isnan(columns.column("max_num_seqs")).all()


def test_an_invalid_row_is_omitted_and_recorded_as_damage(watch: Path) -> None:
    with closing(sqlite3.connect(watch)) as connection, connection:
        last = connection.execute("SELECT max(seq) FROM engine_sample").fetchone()[0]
        connection.execute("UPDATE engine_sample SET running = 'many' WHERE seq = ?", (last,))
    with closing(RecordingReader.open(watch)) as reader:
        columns = StoredColumns(reader.tables, schema.ENGINE_SAMPLE)
        known = len(reader.stored(schema.ENGINE_SAMPLE))
        assert columns.column("running").size == known
        assert reader.damage is not None
        assert f"row {last} of table engine_sample" in reader.damage
