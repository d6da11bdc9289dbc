"""The conditions of a recorded run are those of the run itself, of each stage, and of older files."""

from __future__ import annotations

import dataclasses
import math
import sqlite3
from pathlib import Path

import pytest

from servetop.analysis.confounding.conditions import RunConditions
from servetop.core.config import StageConfig, WorkloadConfig
from servetop.core.events import LogLine
from servetop.core.interfaces.series_scrape import PROCESS_START, SeriesScrape, pack_numbers
from servetop.recordings.write.tick_transaction import TickTransaction
from servetop.reports.comparison.load_comparison import load_measured_run
from servetop.run.record_prediction import write_virtual_run
from servetop.simulator.virtual_run.virtual_gpu import GpuTelemetry
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import ClientCosts, Outage, OutageKind, VirtualRunPlan
from tests.judgement.recordings import write_recording
from tests.simulator.virtual_run.runs import plan_of

STAGES = (
    StageConfig(request_rate=4.0, duration=2.0, warmup=True),
    StageConfig(request_rate=4.0, duration=4.0),
    StageConfig(request_rate=8.0, duration=4.0),
)
ALONE = plan_of(StageConfig(request_rate=4.0, duration=4.0))


@pytest.fixture(scope="module")
def run() -> VirtualRun:
    workload = WorkloadConfig(input_len=32, output_len=16, prefix_len=64, num_prefixes=4)
    plan = {"replicas": 2, "engine_profile": "vllm-current", "gpus": GpuTelemetry()}
    outage = Outage(kind=OutageKind.HTTP_500, start=7.0, share=0.3)
    costs = ClientCosts(per_beat=5e-3)
    return run_virtually(plan_of(*STAGES, workload=workload, client=costs, outages=(outage,), plan=plan))


@pytest.fixture(scope="module")
def measured(run: VirtualRun, tmp_path_factory: pytest.TempPathFactory) -> RunConditions:
    return _conditions(run, tmp_path_factory.mktemp("conditions") / "run.servetop")


def _conditions(run: VirtualRun, path: Path) -> RunConditions:
    write_recording(run, path)
    return _read(path)


def _read(path: Path) -> RunConditions:
    return load_measured_run(path).conditions


def test_requests_are_those_of_the_stages_except_warm_ups(run: VirtualRun, measured: RunConditions) -> None:
    counted = [record for record in run.records if record.stage > 0]
    failed = [record for record in counted if record.error]
    assert len(failed) > 0
    assert (measured.requests, measured.failed) == (len(counted), len(failed))
    assert list(measured.lengths.ids) == sorted(record.id for record in counted if not record.error)
    assert set(measured.lengths.prompt) == {96}
    assert {index: stage.requests for index, stage in measured.stages.items()} == {
        index: sum(record.stage == index for record in counted) for index in (1, 2)
    }
    assert measured.error_lines == measured.stages[2].error_lines == len(failed)


def test_the_cache_is_counted_from_the_first_warm_up_on(run: VirtualRun, measured: RunConditions) -> None:
    samples = [tick.engine for tick in run.ticks if tick.engine]
    for name in ("hits", "queries"):
        totals = [getattr(sample, f"prefix_cache_{name}_total") for sample in samples]
        assert getattr(measured.cache, name).sum() == totals[-1] - totals[0] > 0
    assert measured.cache.capacity == 2 * (measured.kv.tokens or 0)
    assert measured.cache.from_start
    assert not measured.stages[2].cache.from_start
    assert 0 < measured.stages[2].cache.queries.sum() < measured.cache.queries.sum()


def test_gpus_replicas_and_the_client_are_measured(run: VirtualRun, measured: RunConditions) -> None:
    assert measured.kv.blocks == run.replica_samples[0].kv_blocks_total
    assert measured.replicas.configured == measured.replicas.answered == 2
    assert sum(measured.replicas.served) == measured.lengths.ids.size
    assert set(measured.gpus) == {0, 1}
    assert measured.gpus[0].sm_clock.max() > 1.3e9
    assert measured.client.cpu_share == pytest.approx(5 / 20, rel=0.05)
    assert measured.client.trust.slip_p99 < 0.02


def test_behind_a_load_balancer_the_replicas_are_counted_by_their_tokens(run: VirtualRun, tmp_path: Path) -> None:
    records = tuple(dataclasses.replace(record, replica=None) for record in run.records)
    replicas = _conditions(dataclasses.replace(run, records=records), tmp_path / "run.servetop").replicas
    assert replicas.answered == 2
    assert sum(replicas.served) > 10 * replicas.requests


def test_a_file_without_replicas_gpus_and_cache_counters_has_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "run.servetop"
    write_recording(run_virtually(plan_of(StageConfig(request_rate=4.0, duration=2.0))), path)
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE request DROP COLUMN replica")
    connection.close()
    found = _read(path)
    assert found.requests > 0
    assert found.replicas.configured == 1
    assert found.gpus == {}
    assert math.isnan(found.cache.hit_rate)


def test_errors_that_the_engine_logs_when_it_is_stopped_are_not_counted(run: VirtualRun, tmp_path: Path) -> None:
    last = max(record.done_at or 0.0 for record in run.records)
    lines = (
        LogLine(at=last - 0.1, text="ERROR: no space left on device"),
        LogLine(at=last + 0.3, text="ERROR 11-23 20:59:38 [async_llm.py:906] AsyncLLM output_handler failed."),
    )
    found = _conditions(dataclasses.replace(run, log_lines=lines), tmp_path / "run.servetop")
    assert found.error_lines == found.stages[2].error_lines == 1


def test_a_restart_of_one_replica_is_counted(run: VirtualRun, tmp_path: Path) -> None:
    samples = tuple(
        dataclasses.replace(sample, generation_tokens_total=float(number % 60) if sample.replica else 500.0)
        for number, sample in enumerate(run.replica_samples)
    )
    lines = (LogLine(at=9.0, text="INFO: engine started"),)
    found = _conditions(dataclasses.replace(run, replica_samples=samples, log_lines=lines), tmp_path / "run.servetop")
    assert found.restarts == 1
    assert found.error_lines == 0


def test_a_restart_of_the_only_server_is_counted_by_its_counters(tmp_path: Path) -> None:
    found = _conditions(_falling(ALONE), tmp_path / "run.servetop")
    assert found.restarts == 1


def test_another_start_of_the_process_is_a_restart_where_no_counter_falls(tmp_path: Path) -> None:
    started = [1.7e9, 1.7e9, 1.7e9 + 60]
    for number, (starts, restarts) in enumerate(((started[:2], 0), (started, 1))):
        scrapes = [
            SeriesScrape(at=0.5 + at, names=None if at else PROCESS_START, numbers=pack_numbers([start]))
            for at, start in enumerate(starts)
        ]
        path = tmp_path / f"{number}.servetop"
        run = run_virtually(ALONE)
        recorder = write_virtual_run(run, path)
        recorder.commit(TickTransaction(tick=None, engine_series=scrapes))
        recorder.close(run.end)
        assert _read(path).restarts == restarts


def _falling(plan: VirtualRunPlan) -> VirtualRun:
    """A run in the middle of which the engine's tokens begin again at 0."""
    run = run_virtually(plan)
    ticks = [
        dataclasses.replace(tick, engine=dataclasses.replace(tick.engine, generation_tokens_total=float(number % 12)))
        for number, tick in enumerate(run.ticks[:20])
        if tick.engine
    ]
    return dataclasses.replace(run, ticks=tuple(ticks))
