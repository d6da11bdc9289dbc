"""Where a run is in its plan."""

from __future__ import annotations

from servetop.core.config import RunConfig, StageConfig
from servetop.run.loop.plan_progress import PlanProgress

STAGES = tuple(
    StageConfig(request_rate=rate, max_num_seqs=batch, num_prompts=1) for rate, batch in ((1.0, 8), (2.0, 16))
)


def test_a_segment_has_begun_when_its_first_stage_is_reported() -> None:
    progress = PlanProgress(RunConfig(stages=STAGES), first_stage=3)
    assert progress.has_begun
    assert progress.next().stages == ((3, STAGES[0]),)
    assert not progress.has_begun
    progress.stage = 3
    assert progress.has_begun


def test_the_stages_left_are_those_behind_the_current_segment() -> None:
    progress = PlanProgress(RunConfig(stages=STAGES), first_stage=0)
    assert progress.stages_left == STAGES
    segment = progress.next()
    assert progress.stages_left == STAGES[1:]
    progress.follow([segment])
    assert progress.stages_left == STAGES[:1]
