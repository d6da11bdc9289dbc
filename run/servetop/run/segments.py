"""Stages that can follow each other without touching the engine belong to one segment."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.core.config import StageConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Consecutive stages under one batch-size limit of the engine."""

    max_num_seqs: int | None
    """None: leave the engine as it is."""
    stages: tuple[tuple[int, StageConfig], ...]
    """With their indices in the run."""


def segments(stages: Sequence[StageConfig], *, first_index: int = 0) -> list[Segment]:
    """Split where the batch size changes; stage numbers count from `first_index`."""
    numbered = list(enumerate(stages, start=first_index))
    groups = itertools.groupby(numbered, key=lambda pair: pair[1].max_num_seqs)
    return [Segment(max_num_seqs=batch, stages=tuple(group)) for batch, group in groups]


def with_other_batch(stages: Sequence[StageConfig], max_num_seqs: int) -> list[StageConfig]:
    """The stages still to play, the one in force first: those that shared its batch size take the new one."""
    in_force = stages[0].max_num_seqs if stages else None
    return [
        dataclasses.replace(stage, max_num_seqs=max_num_seqs) if stage.max_num_seqs == in_force else stage
        for stage in stages
    ]
