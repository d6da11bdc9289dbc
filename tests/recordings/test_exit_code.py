"""What is stored at the close of a recording is what a later summary of it says."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from servetop.core.events import RequestRecord, RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.summary import run_summary
from servetop.run.exit_code import close_recording
from tests.recordings.rows import stage


@pytest.mark.parametrize(
    ("end", "counted"),
    [
        (RunEnd(at=2.5, exit_code=0, reason=""), [0, 1, 2, 3, 4, 5]),
        (RunEnd(at=2.5, exit_code=130, reason="interrupted"), [0, 1, 2]),
    ],
)
def test_the_last_repeat_of_a_cell_counts_only_if_the_run_ended_as_planned(
    end: RunEnd,
    counted: list[int],
    tmp_path: Path,
    header: RunHeader,
    make_tick: Callable[..., Tick],
    make_request: Callable[..., RequestRecord],
) -> None:
    recorder = Recorder.create(tmp_path / "run.servetop", header)
    repeats = [stage(0, 0.0, max_num_seqs=8), stage(1, 1.2, max_num_seqs=8)]
    requests = [make_request(number, number * 0.4, stage=number // 3) for number in range(6)]
    recorder.commit(TickTransaction(stages=repeats))
    for number in range(10):
        recorder.commit(TickTransaction(tick=make_tick(number), requests=requests if number == 9 else []))
    closed, summary = close_recording(recorder, end, header.config)
    assert closed == end

    with contextlib.closing(RecordingReader.open(recorder.path)) as reader:
        again = run_summary(reader)
    assert again.measured.requests.completed == len(counted)
    assert summary is None or summary.measured.requests.completed == len(counted)
    with contextlib.closing(sqlite3.connect(recorder.path)) as connection:
        assert [row[0] for row in connection.execute("SELECT id FROM counted_request ORDER BY id")] == counted
