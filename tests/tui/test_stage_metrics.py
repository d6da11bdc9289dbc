"""The figures of a stage on the screen count the same requests as the rows of the recording."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from servetop.recordings.read.reader import RecordingReader
from servetop.tui.state.frame import Frame

GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize("name", ["vllm", "without_metrics", "whitepaper"])
def test_the_stages_count_each_first_token_of_the_rows(name: str, frame_of: Callable[..., Frame]) -> None:
    path = GOLDEN / f"{name}.servetop"
    with contextlib.closing(RecordingReader.open(path)) as reader:
        stages = frame_of(reader, 1e6).per_stage()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        ((rows,),) = connection.execute(
            "SELECT count(first_token_at) FROM request WHERE stage IN (SELECT number FROM stage WHERE warmup = 0)"
        )
    assert sum(stage.histograms["ttft"].count for stage in stages) == rows > 0
