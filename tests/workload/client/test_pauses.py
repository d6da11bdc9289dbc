"""The pauses of a stage follow from its draws, whatever ran before it."""

import itertools
from collections.abc import Iterator

from servetop.core.config import StageConfig, WorkloadConfig
from servetop.workload.build import arrivals_of
from servetop.workload.client.pauses import Pauses
from servetop.workload.stages.plan import LoadPlan
from servetop.workload.stages.schedule import Schedule
from servetop.workload.stages.stage_draws import StageDraws

STAGE = StageConfig(request_rate=1.0, duration=1.0)
WORKLOAD = WorkloadConfig(think_time="exponential:mean=2")


def pauses_of(*seeds: int, stage: StageConfig = STAGE) -> list[list[float]]:
    """Three pauses of each of the stages, whose prompt streams have these seeds."""
    found: list[list[float]] = []

    def take(pauses: Iterator[float] | None) -> None:
        found.append(list(itertools.islice(pauses or (), 3)))

    following = Pauses(WORKLOAD, worker=0, use=take)
    for seed in seeds:
        draws = {0: StageDraws(arrivals=(0,), prompts=(0, seed))}
        plan = LoadPlan(segments=((0, stage),), draws=draws, begin=0.0)
        schedule = Schedule(plan, arrivals=arrivals_of(WORKLOAD), now=0.0)
        schedule.due(0.5)
        following.follow(schedule)
    return found


def test_each_prompt_stream_has_its_own_pauses() -> None:
    first, second = pauses_of(1, 2)
    assert first != second
    assert pauses_of(2) == [second]


def test_a_stage_that_continues_the_stream_continues_its_pauses() -> None:
    assert len(pauses_of(1, 1)) == 1


def test_a_stage_that_ends_as_it_begins_has_pauses_too() -> None:
    """All its requests are due at once; the turns of its conversations follow."""
    assert pauses_of(1, stage=StageConfig(num_prompts=3)) == pauses_of(1)
