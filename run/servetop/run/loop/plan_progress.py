"""Where a run is in its plan: the segment that is being measured, those that follow, and the newest stage."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Container, Iterable

from servetop.core.config import RunConfig, StageConfig
from servetop.run.loop.stage_plan import FreshStarts, Segment, StagePlan


class PlanProgress:
    """The segments of one session, in the order in which they are measured."""

    def __init__(self, config: RunConfig, *, first_stage: int) -> None:
        self.plan = StagePlan(
            config.stages,
            first_index=first_stage,
            fresh=FreshStarts.of(config),
            apart=bool(config.until),
            restarts=config.restart is not None and config.engine.url is None,
        )
        self.left: deque[Segment] = deque(self.plan.segments)
        """Segments that follow the current one."""
        self.current: Segment | None = None
        """None before the first segment, and while the engine is being prepared for the next one."""
        self.stage = -1
        """The highest number of a stage that has started; -1 before the first one."""

    def next(self) -> Segment:
        """Take the next segment, which becomes the current one."""
        self.current = self.left.popleft()
        return self.current

    def follow(self, segments: Iterable[Segment]) -> None:
        """Replace the segments that follow."""
        self.left = deque(segments)

    def drop(self, segments: Container[Segment]) -> None:
        """Remove some of the segments that follow."""
        self.follow([each for each in self.left if each not in segments])

    def add(self, stage: StageConfig) -> int:
        """Add a stage after all others, which lasts until it is replaced; return its number."""
        segment = self.plan.add(stage)
        self.left.append(segment)
        return segment.stages[0][0]

    def prolong_last(self) -> int:
        """Let the last stage that is planned last until it is replaced; return its number."""
        segment = self.left.pop()
        *before, (index, stage) = segment.stages
        endless = dataclasses.replace(stage, duration=None)
        self.left.append(dataclasses.replace(segment, stages=(*before, (index, endless))))
        return index

    @property
    def has_begun(self) -> bool:
        """Whether the current segment has started, or there is none; earlier reports are about the previous one."""
        return self.current is None or self.stage >= self.current.stages[0][0]

    @property
    def count_left(self) -> int:
        """The number of planned stages that have not started."""
        segments = (*self.left, self.current) if self.current is not None else self.left
        return sum(index > self.stage for segment in segments for index, _ in segment.stages)

    @property
    def stages_left(self) -> tuple[StageConfig, ...]:
        """The stages that follow the current segment."""
        return tuple(stage for segment in self.left for _, stage in segment.stages)
