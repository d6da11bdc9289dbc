"""A sweep that was killed at any time and resumed has the cells, figures and comparisons of one that was not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from servetop.analysis.comparison.alignment import align
from servetop.core.clock import ClockAnchor
from servetop.core.config import EngineConfig, RunConfig, StageConfig
from servetop.core.events import EngineSample, RequestRecord, RequestStatus, RunEnd
from servetop.core.interfaces.run_source import RunHeader
from servetop.core.interfaces.stage_row import planned_row
from servetop.core.tick import TICK_SECONDS, ClientTick, LoadGauges, Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.resume import RunStart, resume_recording
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.comparison.load_comparison import RecordedColumns, load_measured_run
from servetop.reports.summary.summary import run_summary
from servetop.run.sweep.resume_sweep import rest_of_sweep
from tests.recordings.rows import change

BOOT_TICKS, CELL_TICKS, REQUESTS = 2, 6, 4
TICK_TOKENS, CELL_TOKENS = 500, 500 * REQUESTS
"""By the counters of client and engine; the requests' own are not compared with them."""
BY_COUNT = tuple(StageConfig(request_rate=8.0, max_num_seqs=size, num_prompts=REQUESTS) for size in (8, 32, 128))
BY_TIME = tuple(
    StageConfig(request_rate=rate, max_num_seqs=size, duration=(CELL_TICKS - 1) * TICK_SECONDS)
    for size, rate in ((8, 8.0), (8, 16.0), (32, 8.0))
)
PLANNED = RunEnd(at=99.0, exit_code=0, reason="")


@dataclass
class FakeSweep:
    """A sweep in virtual time: each cell starts at a tick, and its requests last as long as its batch size says."""

    recorder: Recorder
    start: RunStart
    until: int
    """The tick before which it is killed."""

    def run(self, cells: Sequence[StageConfig]) -> bool:
        """Measure the cells; whether it was killed before the end."""
        tick, request = self.start.first_tick + BOOT_TICKS, self.start.first_request
        boot = [TickTransaction(tick=empty_tick(each)) for each in range(self.start.first_tick, tick)]
        rows = [*boot]
        for index, cell in enumerate(cells, start=self.start.first_stage):
            done = index - self.start.first_stage
            rows += transactions(cell, index, first_tick=tick, first_request=request, generated=done * CELL_TOKENS)
            tick, request = tick + CELL_TICKS, request + REQUESTS
        for row in rows:
            if row.tick is not None and row.tick.index >= self.until:
                return True
            self.recorder.commit(row)
        return False


def empty_tick(index: int) -> Tick:
    return Tick(client=ClientTick(index=index))


def transactions(
    cell: StageConfig, index: int, *, first_tick: int, first_request: int, generated: int
) -> Iterator[TickTransaction]:
    """One request is due in each of the first ticks and ends in the next one; a last tick is idle.

    `generated` are the tokens that the engine has generated since it was started.
    """
    begin = first_tick * TICK_SECONDS
    for number in range(CELL_TICKS):
        ended = [] if not 1 <= number <= REQUESTS else [record(cell, index, first_request + number - 1, begin, number)]
        gauges = LoadGauges(stage=index, request_rate=cell.request_rate, in_flight=int(number < REQUESTS))
        tokens = TICK_TOKENS * len(ended)
        generated += tokens
        client = ClientTick(
            index=first_tick + number, ok=len(ended), due=int(number < REQUESTS), output_tokens=tokens, gauges=gauges
        )
        stages = [planned_row(cell, at=begin, index=index)] if number == 0 else []
        scraped = begin + (number + 0.9) * TICK_SECONDS
        engine = EngineSample(scrape_start=scraped, scrape_end=scraped, generation_tokens_total=generated)
        yield TickTransaction(tick=Tick(client=client), stages=stages, requests=ended, engine_samples=[engine])


def record(cell: StageConfig, index: int, request: int, begin: float, number: int) -> RequestRecord:
    due = begin + (number - 1) * TICK_SECONDS + 0.01
    ttft = 0.001 * (cell.max_num_seqs or 1)
    times = due + ttft + np.array([0.0, 0.01])
    return RequestRecord(
        id=request, stage=index, due=due, sent=due, headers_at=due, first_token_at=due + ttft,
        done_at=due + ttft + 0.01, prompt_tokens=8, output_tokens=2, status=RequestStatus.OK,
        chunk_times=times, chunk_tokens=np.array([1, 1]),
    )  # fmt: skip


def config(cells: Sequence[StageConfig]) -> RunConfig:
    return RunConfig(engine=EngineConfig(), stages=tuple(cells), drain_at_stages=True, label="grid")


def recorded(path: Path, cells: Sequence[StageConfig], *, kills: Sequence[int] = ()) -> Path:
    """Run the sweep into a file; each kill ends a session before the tick, and the next session resumes it."""
    anchor = ClockAnchor.take()
    recorder, start = Recorder.create(path, RunHeader(config=config(cells), anchor=anchor)), RunStart(anchor=anchor)
    left: Sequence[StageConfig] = cells
    for kill in (*kills, 10_000):
        killed = FakeSweep(recorder=recorder, start=start, until=kill).run(left)
        if not killed:
            recorder.close(PLANNED)
            break
        kill_writer(recorder, path)
        left = rest_of_sweep(path, config(cells)).left
        if not left:
            recorder, start = resume_recording(path)
            recorder.close(PLANNED)
            break
        recorder, start = resume_recording(path)
    return path


def kill_writer(recorder: Recorder, path: Path) -> None:
    """Leave the file as SIGKILL does: with everything committed, and without an end."""
    recorder.close(RunEnd(at=0.0, exit_code=0, reason=""))
    change(path, "UPDATE run SET end_at = NULL, exit_code = NULL, end_reason = NULL, writer = NULL")


def summary_of(path: Path) -> tuple[list[tuple[Any, ...]], tuple[int, int | None]]:
    with contextlib.closing(RecordingReader.open(path)) as reader:
        summary = run_summary(reader)
    rows = [
        (each.label, each.max_num_seqs, each.request_rate, each.measured.requests.completed,
         each.measured.requests.latency("ttft", "p50"), each.outcome)
        for each in summary.stages if each.counted
    ]  # fmt: skip
    return sorted(rows), (summary.requests.completed, summary.requests.total_output_tokens)


def checked(path: Path) -> list[tuple[Any, ...]]:
    """What the rules of `servetop check` see of each stage."""
    with contextlib.closing(RecordingReader.open(path)) as reader:
        figures = RecordedColumns.load(reader).stage_figures()
    return sorted((each.label, each.requests, each.completed, each.failed, each.unsteady) for each in figures)


@pytest.mark.parametrize("cells", [BY_COUNT, BY_TIME], ids=["by count", "by time"])
def test_a_sweep_killed_before_any_tick_and_resumed_equals_one_that_was_not(
    tmp_path: Path, cells: Sequence[StageConfig]
) -> None:
    whole = recorded(tmp_path / "whole.servetop", cells)
    expected, totals = summary_of(whole)
    clean, figures = load_measured_run(whole), checked(whole)
    assert len(expected) == len(cells)
    for kill in range(1, BOOT_TICKS + CELL_TICKS * len(cells) + 1):
        resumed = recorded(tmp_path / f"{kill}.servetop", cells, kills=[kill])
        assert summary_of(resumed) == (expected, totals), kill
        assert checked(resumed) == figures, kill
        other = load_measured_run(resumed)
        for stage in align([clean.arm], [other.arm]):
            ((_, a),), ((_, b),) = stage.a, stage.b
            assert a.latencies["ttft"] == pytest.approx(b.latencies["ttft"], abs=1e-5), kill
        counts = [(each.conditions.requests, each.conditions.completed) for each in (clean, other)]
        assert counts[0] == counts[1], kill


@pytest.mark.parametrize("kills", [(5, 9), (9, 9, 17), (3, 11, 21, 30), (13, 27, 28)])
def test_a_sweep_killed_several_times_equals_one_that_was_not(tmp_path: Path, kills: Sequence[int]) -> None:
    whole = recorded(tmp_path / "whole.servetop", BY_COUNT)
    resumed = recorded(tmp_path / "resumed.servetop", BY_COUNT, kills=kills)
    assert summary_of(resumed) == summary_of(whole)


@pytest.mark.parametrize("kill", [None, 5, 11, 12, 18])
def test_the_engine_counts_the_tokens_of_the_stages_that_count_for_the_client(tmp_path: Path, kill: int | None) -> None:
    path = recorded(tmp_path / "killed.servetop", BY_COUNT, kills=[] if kill is None else [kill])
    with contextlib.closing(RecordingReader.open(path)) as reader:
        trust = run_summary(reader).measured.trust
    assert trust.token_error == pytest.approx(0.0, abs=0.05)


def test_a_cell_whose_requests_had_all_ended_is_not_measured_again(tmp_path: Path) -> None:
    path = tmp_path / "killed.servetop"
    last_of_second = BOOT_TICKS + CELL_TICKS + REQUESTS
    recorded(path, BY_COUNT, kills=[last_of_second + 1])
    with contextlib.closing(RecordingReader.open(path)) as reader:
        assert [row.max_num_seqs for row in reader.stages()] == [8, 32, 128]


def test_a_recording_of_an_older_version_takes_the_lengths_of_its_cells_from_the_plan(tmp_path: Path) -> None:
    path = recorded(tmp_path / "older.servetop", BY_COUNT, kills=[11])
    expected = summary_of(path)
    columns = ("ramp_from", "ramp_strategy", "duration", "num_prompts", "failure")
    change(path, *(f"ALTER TABLE stage DROP COLUMN {name}" for name in columns), "PRAGMA user_version = 1008")
    assert summary_of(path) == expected
