"""A virtual run agrees with a recording of the same run in real time: the simulator's server, loaded over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from servetop.core.interfaces.run_source import RunUpdate
from servetop.core.tick import Tick
from servetop.recordings.read.reader import RecordingReader
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import VirtualRunPlan
from tests.simulator.virtual_run.runs import merged, total

RECORDING = Path(__file__).parents[2] / "golden/whitepaper.servetop"
"""Four drained stages with batch limits of 64 and 256, the last two with preemptions."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunUpdate, VirtualRun]:
    path = tmp_path_factory.mktemp("golden") / RECORDING.name
    path.write_bytes(RECORDING.read_bytes())
    reader = RecordingReader.open(path)
    update, config = reader.poll(), reader.header.config
    reader.close()
    return update, run_virtually(VirtualRunPlan(config=config, begin=update.stages[0].at))


def _stage(ticks: Sequence[Tick], stage: int) -> list[Tick]:
    return [tick for tick in ticks if tick.client.gauges.stage == stage]


@pytest.mark.parametrize("name", ["due", "sent", "ok", "prompt_tokens", "output_tokens"])
def test_the_counts_are_equal(recorded: tuple[RunUpdate, VirtualRun], name: str) -> None:
    real, virtual = recorded
    assert total(virtual.ticks, name) == total(real.ticks, name)


def test_the_stages_have_the_same_limits_and_begin_at_about_the_same_times(
    recorded: tuple[RunUpdate, VirtualRun],
) -> None:
    """In real time half a second passes until a new batch limit is in force."""
    real, virtual = recorded
    assert [stage.max_num_seqs for stage in virtual.stages] == [stage.max_num_seqs for stage in real.stages]
    assert [stage.at for stage in virtual.stages] == pytest.approx([stage.at for stage in real.stages], abs=1.0)


@pytest.mark.parametrize("stage", range(4))
@pytest.mark.parametrize("name", ["ttft", "itl"])
def test_the_latencies_of_each_stage_agree(recorded: tuple[RunUpdate, VirtualRun], stage: int, name: str) -> None:
    real, virtual = (merged(_stage(run.ticks, stage), name) for run in recorded)
    assert virtual.mean == pytest.approx(real.mean, rel=0.05)
    assert virtual.percentile(90) == pytest.approx(real.percentile(90), rel=0.05)


@pytest.mark.parametrize("name", ["tpot", "e2el"])
def test_the_latencies_of_whole_requests_agree(recorded: tuple[RunUpdate, VirtualRun], name: str) -> None:
    """Compared over the run, because the last requests of a stage may end in the first tick of the next one."""
    real, virtual = (merged(run.ticks, name) for run in recorded)
    assert virtual.mean == pytest.approx(real.mean, rel=0.02)
    assert virtual.percentile(90) == pytest.approx(real.percentile(90), rel=0.05)


@pytest.mark.parametrize("stage", range(4))
def test_the_engine_metrics_of_each_stage_agree(recorded: tuple[RunUpdate, VirtualRun], stage: int) -> None:
    peaks = []
    for run in recorded:
        samples = [tick.engine for tick in _stage(run.ticks, stage) if tick.engine is not None]
        peaks.append([max(getattr(each, name) for each in samples) for name in ("kv_usage", "running", "waiting")])
    assert peaks[1] == pytest.approx(peaks[0], rel=0.08)
