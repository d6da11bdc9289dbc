"""The bound on the hit rate of an engine that exports no counters, beside the truth of the simulator."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

import pytest

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.summary.summary import run_summary
from servetop.simulator.virtual_run.virtual_run import VirtualRun, run_virtually
from tests.judgement.recordings import write_recording
from tests.simulator.virtual_run.runs import plan_of


def measured(*, caches: bool, seed: int) -> VirtualRun:
    """Two minutes of long prompts with 60 prefixes of three quarters of their length."""
    workload = WorkloadConfig(input_len=500, output_len=4, prefix_len=1500, num_prefixes=60)
    plan = {"engine_profile": "vllm-current" if caches else "vllm-0.2.1"}
    return run_virtually(
        plan_of(
            StageConfig(request_rate=2.0, duration=120.0), workload=workload, seed=seed, plan=plan, kv_blocks=20_000
        )
    )


def silenced(run: VirtualRun) -> VirtualRun:
    """The same run without what the engine exported."""
    return dataclasses.replace(run, ticks=tuple(dataclasses.replace(tick, engine=None) for tick in run.ticks))


def hit_rates(run: VirtualRun, path: Path) -> tuple[float | None, float | None]:
    """The hit rate that the engine counts, and the bound, in the summary of a recording."""
    write_recording(run, path)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        server = run_summary(reader).measured.server
    return server.prefix_cache_hit_rate, server.prefix_cache_hit_rate_at_least


@pytest.mark.parametrize("seed", [1, 2])
def test_the_bound_of_an_engine_without_counters_is_below_the_true_hit_rate(tmp_path: Path, seed: int) -> None:
    run = measured(caches=True, seed=seed)
    truth, unneeded = hit_rates(run, tmp_path / "counted.servetop")
    assert unneeded is None
    unknown, bound = hit_rates(silenced(run), tmp_path / "silent.servetop")
    assert unknown is None
    assert truth is not None
    assert bound is not None
    assert 0.3 * truth < bound < truth


def test_without_a_cache_the_bound_is_0(tmp_path: Path) -> None:
    run = measured(caches=False, seed=1)
    _, bound = hit_rates(silenced(run), tmp_path / "run.servetop")
    assert bound is not None
    assert bound < 0.05
