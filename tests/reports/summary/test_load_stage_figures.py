"""The figures of the rules are those of the summary."""

import contextlib
import dataclasses
from pathlib import Path

import pytest

from servetop.analysis.summary.request_metrics import finite
from servetop.core.config import StageConfig
from servetop.recordings.read.reader import RecordingReader
from servetop.reports.comparison.load_comparison import RecordedColumns
from servetop.reports.summary.summary import run_summary
from servetop.simulator.virtual_run.virtual_run import run_virtually
from servetop.simulator.virtual_run.virtual_run_plan import Outage, OutageKind
from tests.judgement.recordings import write_recording
from tests.simulator.virtual_run.runs import plan_of

STAGES = (
    StageConfig(request_rate=4.0, duration=3.0, warmup=True),
    StageConfig(request_rate=6.0, duration=16.0),
    StageConfig(request_rate=12.0, duration=6.0),
)


def test_figures_are_those_of_the_summary_without_its_token_gaps(tmp_path: Path) -> None:
    outage = Outage(kind=OutageKind.HTTP_500, start=20.0, share=0.3)
    plan = plan_of(*STAGES, outages=(outage,))
    plan = dataclasses.replace(plan, config=dataclasses.replace(plan.config, cooldown=1.0))
    path = tmp_path / "run.servetop"
    write_recording(run_virtually(plan), path)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        found = RecordedColumns.load(reader).stage_figures()
        stages = run_summary(reader).stages
    assert [each.stage for each in found] == [each.stage for each in stages] == [1, 2]
    assert [each.steady_seconds is not None for each in found] == [True, False]
    for figures, stage in zip(found, stages, strict=True):
        compared = stage.steady.measured or stage.measured
        requests = stage.measured.requests
        assert (figures.requests, figures.completed, figures.failed) == (
            requests.num_prompts, requests.completed, requests.failed,
        )  # fmt: skip
        assert figures.compared_completed == compared.requests.completed
        assert figures.trust == compared.trust
        assert (figures.steady_seconds, figures.unsteady) == (stage.steady.seconds, stage.steady.reason or "")
        server = stage.measured.server
        cache = (finite(figures.cache.hit_rate), finite(figures.cache.ideal))
        assert cache == (server.prefix_cache_hit_rate, server.prefix_cache_ideal_hit_rate)


def test_requests_that_wait_for_a_token_are_part_of_those_in_flight(tmp_path: Path) -> None:
    """On the simulator every request in flight waits for a token, except while its prompt is processed."""
    path = tmp_path / "run.servetop"
    write_recording(run_virtually(plan_of(StageConfig(request_rate=6.0, duration=14.0))), path)
    with contextlib.closing(RecordingReader.open(path)) as reader:
        (figures,) = RecordedColumns.load(reader).stage_figures()
    assert figures.generating == pytest.approx(figures.in_flight, rel=0.05)
