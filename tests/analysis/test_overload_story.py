"""What a short queue tells, and what an overload of which only the client knows is called."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servetop.analysis.diagnosis.run_verdict import RunCause, run_verdict
from servetop.analysis.story.story import story_of
from servetop.core.config import StageConfig
from servetop.simulator.virtual_run.virtual_run import run_virtually
from tests.analysis.story_runs import QUEUE, ramp, story_from
from tests.analysis.test_run_verdict import LIGHT, record_of, with_objectives
from tests.judgement.observed import without_metrics
from tests.simulator.virtual_run.runs import plan_of


def test_a_queue_that_hardly_grows_tells_no_rate() -> None:
    story = story_from(ramp(waiting=QUEUE))
    assert story.verdict.cause is RunCause.RATE
    assert story.lines[-1].text == "try a lower rate or more replicas"


@pytest.mark.parametrize(("url", "name"), [(None, "overloaded"), ("http://gpu-1:8000", "engine or network overloaded")])
def test_a_shorter_overload_without_metrics_may_be_one_of_the_network(url: str | None, name: str) -> None:
    loads = [StageConfig(request_rate=rate, duration=length) for rate, length in ((12, 15), (2, 60), (12, 30))]
    plan = plan_of(*loads, workload=LIGHT, max_num_seqs=4)
    run = record_of(without_metrics(run_virtually(with_objectives(plan, ttft=0.5))))
    config = run.header.config
    attached = replace(config, engine=replace(config.engine, url=url))
    told = replace(run, header=replace(run.header, config=attached))
    story = story_of(told, run_verdict(told))
    assert story.headline.startswith(f"{name} ")
    assert [line.text.partition(": ")[2] for line in story.lines if "a shorter overload" in line.text] == [name]
