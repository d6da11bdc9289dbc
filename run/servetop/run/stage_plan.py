"""Where in the planned stages a run is, when stages are played again under other numbers."""

from __future__ import annotations

from collections.abc import Sequence

from servetop.core.config import StageConfig
from servetop.run.segments import Segment, segments, with_other_batch


class StagePlan:
    """The planned stages, and which of them each number in the run stands for.

    A stage that is played again gets a new number: the figures of its two plays never mix.
    """

    def __init__(self, stages: Sequence[StageConfig], *, first_index: int) -> None:
        self._plan = list(stages)
        self._place_of = {first_index + place: place for place in range(len(self._plan))}
        self._next_index = first_index + len(self._plan)

    def again(self, stage: int, *, max_num_seqs: int) -> list[Segment]:
        """From the stage in force on, under another batch size."""
        place = self._place_of.get(stage, 0)
        self._plan[place:] = with_other_batch(self._plan[place:], max_num_seqs)
        return self._from(place)

    def before(self, stage: int) -> list[Segment]:
        """From the stage before the one in force on; empty when there is none."""
        place = self._place_of.get(stage, 0)
        return self._from(place - 1) if place > 0 else []

    def _from(self, place: int) -> list[Segment]:
        first = self._next_index
        rest = self._plan[place:]
        self._place_of.update((first + offset, place + offset) for offset in range(len(rest)))
        self._next_index += len(rest)
        return segments(rest, first_index=first)
