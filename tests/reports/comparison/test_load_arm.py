"""A recording loaded for a comparison has the same figures as its summary."""

import contextlib
import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from servetop.analysis.comparison.alignment import ArmRun
from servetop.analysis.comparison.start_spread import ELSEWHERE, SAME
from servetop.core.config import EngineConfig, RunConfig, StageConfig, WorkloadConfig
from servetop.recordings.read.load_requests import load_stage_requests
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.comparison.load_arm import load_arm_run
from servetop.reports.summary.summary import run_summary
from servetop.simulator.virtual_run.virtual_run import run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import VirtualRunPlan
from tests.judgement.recordings import write_recording

STAGES = (
    StageConfig(request_rate=math.inf, max_concurrency=4, num_prompts=8, warmup=True),
    StageConfig(request_rate=4.0, duration=20.0),
    StageConfig(request_rate=8.0, ramp_from=4.0, duration=10.0),
)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("arm") / "run.servetop"
    workload = WorkloadConfig(input_len=64, output_len=32, range_ratio=0.5)
    config = RunConfig(engine=EngineConfig(), workload=workload, stages=STAGES, seed=5, goodput={"ttft": 0.02})
    write_recording(run_virtually(VirtualRunPlan(config=config)), path)
    return path


@contextlib.contextmanager
def opened(path: Path) -> Iterator[RecordingReader]:
    reader = RecordingReader.open(path)
    try:
        yield reader
    finally:
        reader.close()


def loaded(path: Path) -> ArmRun:
    with opened(path) as reader:
        return load_arm_run(reader)


def test_each_stage_with_load_is_there_except_the_warm_up(recording: Path) -> None:
    first, second = loaded(recording).stages
    assert first.load.label == "4 req/s"
    assert second.load.label == "4 to 8 req/s"
    assert first.steady
    assert not second.steady
    assert second.seconds == pytest.approx(10.0)


def test_the_figures_are_those_of_the_summary(recording: Path) -> None:
    with opened(recording) as reader:
        stages = run_summary(reader).stages
    for sample, summary in zip(loaded(recording).stages, stages, strict=True):
        requests = summary.measured.requests
        ttft, tpot = (sample.latencies[name] * 1e3 for name in ("ttft", "tpot"))
        assert np.nanmean(ttft) == pytest.approx(requests.latency("ttft", "mean"))
        assert np.nanpercentile(tpot, 99) == pytest.approx(requests.latency("tpot", "p99"))
        assert sample.good is not None
        assert sample.good.sum() / requests.duration == pytest.approx(requests.request_goodput)


def test_counters_accumulate_over_the_run(recording: Path) -> None:
    sample = loaded(recording).stages[0]
    everything = np.array([0.0, 1000.0])
    assert sample.counters["output_tokens"].between(everything)[0] > 0
    assert sample.counters["preemptions"].between(everything)[0] == 0
    assert 0 < sample.counters["kv_usage"].between(everything)[0] < 1
    assert "joules" not in sample.counters


@pytest.mark.parametrize(("page_age", "usages"), [(0.0, [0.9, 0.9]), (5.0, [0.2, 0.2]), (15.0, [0.2, None])])
def test_pages_that_may_describe_the_time_before_have_no_kv_usage(
    tmp_path: Path, page_age: float, usages: list[float | None]
) -> None:
    """Each stage finds the cache 0.9 full for 4 s, which is what an old page would say, and then 0.2."""
    stages = (StageConfig(request_rate=4.0, duration=20.0), StageConfig(request_rate=8.0, duration=10.0))
    run = run_virtually(VirtualRunPlan(config=RunConfig(stages=stages)))
    assert run.header.engine is not None
    header = dataclasses.replace(run.header, engine=dataclasses.replace(run.header.engine, page_age=page_age))
    starts = [each.at for each in run.stages]

    def usage(at: float) -> float:
        return 0.9 if 0 <= at - max((each for each in starts if each <= at), default=at) < 4.0 else 0.2

    ticks = [
        dataclasses.replace(tick, engine=tick.engine and dataclasses.replace(tick.engine, kv_usage=usage(tick.end)))
        for tick in run.ticks
    ]
    path = tmp_path / "old.servetop"
    write_recording(dataclasses.replace(run, header=header, ticks=tuple(ticks)), path)
    found = []
    for stage in loaded(path).stages:
        counter = stage.counters.get("kv_usage")
        first = np.array([stage.start, stage.start + 3.0])
        found.append(None if counter is None else counter.between(first)[0] / 3.0)
    assert found == pytest.approx(usages)


def test_only_virtual_time_has_no_assumed_spread_between_starts(recording: Path, tmp_path: Path) -> None:
    assert loaded(recording).start_spread == SAME
    run = run_virtually(VirtualRunPlan(config=RunConfig(stages=STAGES[1:2])))
    assert run.header.engine is not None
    facts = run.header.engine
    others = (dataclasses.replace(facts, name="vllm"), dataclasses.replace(facts, url="http://127.0.0.1:8000"))
    for number, engine in enumerate(others):
        header = dataclasses.replace(run.header, engine=engine)
        path = tmp_path / f"{number}.servetop"
        write_recording(dataclasses.replace(run, header=header), path)
        assert loaded(path).start_spread == ELSEWHERE


def test_rows_of_a_stage_are_in_order_of_due_time_with_their_first_chunks(recording: Path) -> None:
    with opened(recording) as reader:
        requests = load_stage_requests(reader)
    rows = requests.of_stage(0)
    assert requests.ids[rows].tolist() == list(range(8))
    columns = requests.columns.part(rows)
    assert (np.diff(columns.due) >= 0).all()
    assert columns.sized.all()
    assert set(columns.first_tokens.tolist()) == {1.0}
