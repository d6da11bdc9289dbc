"""The memory that the summary and the check of a recording take for each request."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from servetop.analysis.columns.request_columns import PER_REQUEST
from servetop.core.clock import ClockAnchor
from servetop.core.config import RunConfig
from servetop.core.events import RequestRecord, RequestStatus, RunEnd, StageChange, TokenSource
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.tick import ClientTick, LoadGauges, Tick
from servetop.recordings.read.load_requests import Selection, load_requests
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.summary.load_stage_figures import load_figures
from servetop.reports.summary.summary import run_summary

FEW, MANY = 10_000, 30_000
TICKS = 20
MOST_BYTES = 200
"""With reserved space that is not written; 5,000,000 requests take less than 900 MB with the rest of the recording."""


def write(path: Path, requests: int) -> Path:
    """Record a run of five seconds with no two equal latencies."""
    generator = np.random.default_rng(1)
    config = RunConfig(goodput={"ttft": 0.5})
    recorder = Recorder.create(path, RunHeader(config=config, anchor=ClockAnchor.take()))
    stage = StageChange(at=0.0, index=0, label="", request_rate=1.0, max_concurrency=None, max_num_seqs=None)
    for number in range(TICKS):
        due = np.sort(generator.uniform(number / 4, (number + 1) / 4, requests // TICKS))
        ttft, rest = generator.gamma(4.0, 0.01, (2, due.size))
        records = [
            RequestRecord(
                id=number * due.size + index, stage=0, due=float(at), sent=float(at + 0.001),
                first_token_at=float(at + first), done_at=float(at + first + later), prompt_tokens=128,
                output_tokens=2, status=RequestStatus.OK, token_source=TokenSource.USAGE,
                chunk_times=np.array([at + first, at + first + later]), chunk_tokens=np.ones(2, np.int64),
            )
            for index, (at, first, later) in enumerate(zip(due, ttft + 0.001, rest, strict=True))
        ]  # fmt: skip
        tick = Tick(client=ClientTick(index=number, ok=due.size, gauges=LoadGauges(stage=0, request_rate=1.0)))
        stages = [] if number else [stage]
        recorder.commit(TickTransaction(tick=tick, requests=records, stages=stages))
    recorder.close(RunEnd(at=TICKS / 4, exit_code=0, reason=""))
    return path


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    folder = tmp_path_factory.mktemp("memory")
    return {count: write(folder / f"{count}.servetop", count) for count in (FEW, MANY)}


def peak(path: Path, action: Callable[[RecordingReader], object]) -> int:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        tracemalloc.start()
        try:
            action(reader)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("action", [run_summary, load_figures])
def test_a_request_takes_few_bytes(
    recordings: dict[int, Path], monkeypatch: pytest.MonkeyPatch, action: Callable[[RecordingReader], object]
) -> None:
    for limit in (
        "recordings.read.load_requests.BLOCK",
        "recordings.read.load_requests._MIN_PENDING_GAPS",
        "recordings.read.growing_column._FIRST",
    ):
        monkeypatch.setattr(f"servetop.{limit}", 100)
    monkeypatch.setattr("servetop.analysis.summary.request_metrics._BLOCK", 100)
    monkeypatch.setattr("servetop.analysis.summary.in_flight_timeline._BLOCK", 100)
    action_peak = {count: peak(path, action) for count, path in recordings.items()}
    assert (action_peak[MANY] - action_peak[FEW]) / (MANY - FEW) < MOST_BYTES


def test_the_columns_of_a_request_take_sixty_bytes(recordings: dict[int, Path]) -> None:
    with contextlib.closing(RecordingReader.open(recordings[MANY])) as reader:
        columns = load_requests(reader, Selection())
    assert sum(getattr(columns, name).nbytes for name in PER_REQUEST) <= 60 * MANY
