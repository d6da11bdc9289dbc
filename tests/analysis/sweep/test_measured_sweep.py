"""The cells and the verdict of recorded sweeps, from the figures of their stages and the engine's overloads."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from pathlib import Path

import pytest

from servetop.analysis.diagnosis.run_record import RunRecord
from servetop.analysis.summary.measured_sweep import is_sweep, measured_cells, measured_sweep
from servetop.analysis.summary.summary_types import StageSummary
from servetop.analysis.sweep.row_limits import overloaded_stages, row_limits, stage_periods
from servetop.core.config import RunConfig, StageConfig
from servetop.core.events import StageChange
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.recorded_run import recorded_run
from servetop.reports.summary.summary import run_summary

WHITEPAPER = Path(__file__).parents[2] / "golden" / "whitepaper.servetop"


@pytest.fixture(scope="module")
def run() -> RunRecord:
    with contextlib.closing(RecordingReader.open(WHITEPAPER)) as reader:
        return recorded_run(reader)


@pytest.fixture(scope="module")
def stages() -> tuple[StageSummary, ...]:
    with contextlib.closing(RecordingReader.open(WHITEPAPER)) as reader:
        return run_summary(reader).stages


def change(index: int, rate: float | None, *, batch: int | None = None, concurrency: int | None = None) -> StageChange:
    return StageChange(
        at=10.0 * index, index=index, label="", request_rate=rate, max_concurrency=concurrency, max_num_seqs=batch
    )


def test_cells_have_the_figures_of_their_stages(stages: tuple[StageSummary, ...]) -> None:
    cells = measured_cells(stages, objectives={})
    by_stage = {cell.stages: cell for cell in cells}
    for stage in stages:
        cell = by_stage[(stage.stage,)]
        assert cell.output_throughput == stage.measured.requests.output_throughput
        assert cell.p99_ttft_ms == stage.measured.requests.latency("ttft", "p99")
        assert cell.kept is None


def test_repeats_are_averaged_and_stages_that_were_cut_short_are_left_out(stages: tuple[StageSummary, ...]) -> None:
    first = stages[0]
    requests = first.measured.requests
    faster = dataclasses.replace(requests, output_throughput=3 * (requests.output_throughput or 0.0))
    second = dataclasses.replace(
        first, stage=90, repeat=1, measured=dataclasses.replace(first.measured, requests=faster)
    )
    cut = dataclasses.replace(second, stage=91, repeat=2, finished=False)
    (cell,) = measured_cells([first, second, cut], objectives={})
    assert cell.stages == (first.stage, 90)
    assert cell.output_throughput == pytest.approx(2 * (requests.output_throughput or 0.0))


def test_the_share_within_the_objectives_pools_the_requests_of_the_repeats(stages: tuple[StageSummary, ...]) -> None:
    def with_counts(stage: int, *, completed: int, failed: int, good: int) -> StageSummary:
        requests = dataclasses.replace(
            stages[0].measured.requests, completed=completed, failed=failed, duration=10.0, request_goodput=good / 10
        )
        return dataclasses.replace(
            stages[0], stage=stage, measured=dataclasses.replace(stages[0].measured, requests=requests)
        )

    repeats = [with_counts(0, completed=100, failed=0, good=100), with_counts(1, completed=80, failed=20, good=76)]
    (cell,) = measured_cells(repeats, objectives={"ttft": 0.5})
    assert (cell.share_within, cell.kept, cell.failed) == (176 / 200, False, 20)
    assert cell.request_goodput == pytest.approx(8.8)


def test_each_batch_size_has_the_limit_of_its_own_overload(run: RunRecord, stages: tuple[StageSummary, ...]) -> None:
    limits = row_limits(run, measured_cells(stages, objectives={}))
    assert {key[0]: limit.limit for key, limit in limits.items()} == {64: "batch-bound", 256: "KV-bound"}
    assert all(limit.estimate is not None and 15 < limit.estimate < 25 for limit in limits.values())


def test_a_stage_is_overloaded_if_its_own_requests_waited(run: RunRecord) -> None:
    indexes = list(stage_periods(run))
    assert overloaded_stages(run, indexes) == frozenset(indexes)
    calm = dataclasses.replace(run, episodes=())
    assert overloaded_stages(calm, indexes) == frozenset()


def test_the_sweep_of_a_recording_is_judged_by_its_cells(run: RunRecord, stages: tuple[StageSummary, ...]) -> None:
    sweep = measured_sweep(run, stages)
    assert sweep is not None
    assert sweep.best is not None
    assert sweep.best.output_throughput == max(cell.output_throughput or 0.0 for cell in sweep.cells)
    assert [row.max_num_seqs for row in sweep.rows] == [64, 256]
    assert measured_sweep(run, [dataclasses.replace(stage, finished=False) for stage in stages]) is None


@pytest.mark.parametrize(
    ("drains", "stages", "wanted"),
    [
        (True, [change(0, 8.0), change(1, 16.0)], True),
        (False, [change(0, 8.0), change(1, 16.0)], False),
        (False, [change(0, 8.0, batch=16), change(1, 8.0, batch=64)], True),
        (True, [change(0, 8.0), change(1, 8.0)], False),
        (True, [change(0, math.inf, concurrency=1), change(1, math.inf, concurrency=4)], True),
        (True, [change(0, None), change(1, 8.0)], False),
    ],
)
def test_a_sweep_has_several_loads_or_batch_sizes(drains: bool, stages: list[StageChange], wanted: bool) -> None:
    assert is_sweep(RunConfig(drain_at_stages=drains), stages) is wanted


def test_a_run_with_a_ramp_is_not_a_sweep() -> None:
    config = RunConfig(stages=(StageConfig(request_rate=16.0, ramp_from=4.0),), drain_at_stages=True)
    assert not is_sweep(config, [change(0, 8.0, batch=16), change(1, 16.0, batch=64)])
