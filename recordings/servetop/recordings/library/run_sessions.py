"""The sessions of a run that was interrupted and resumed, and the stages that were measured to their end."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from servetop.core.errors import ExitCode
from servetop.core.events import Note, RunEnd, StageChange

RESUMED = "resume"
"""Source of the note between two sessions of a run."""


def finished_stages(stages: Sequence[StageChange], notes: Sequence[Note], *, end: RunEnd | None) -> list[StageChange]:
    """The stages, each with its last settings, that another stage of the same session followed, or the planned end."""
    sittings = [note.at for note in notes if note.source == RESUMED]
    last = {stage.index: stage for stage in stages}
    ordered = [last[index] for index in sorted(last)]
    finished = [
        stage
        for stage, after in itertools.pairwise(ordered)
        if not any(stage.at <= sitting <= after.at for sitting in sittings)
    ]
    return [*finished, *ordered[-1:]] if _as_planned(end) else finished


def first_of_session(stages: Sequence[StageChange], notes: Sequence[Note]) -> int:
    """Index of the first stage of the last session, which may not have started yet."""
    resumed = resumed_at(notes)
    return max((stage.index for stage in stages if stage.at < resumed), default=-1) + 1


def resumed_at(notes: Sequence[Note]) -> float:
    """Run time of the start of the last session; -inf for the only one."""
    return max((note.at for note in notes if note.source == RESUMED), default=-math.inf)


def _as_planned(end: RunEnd | None) -> bool:
    """Whether the run ended by itself: a missed threshold does not interrupt it, "stopped early" does."""
    return end is not None and (
        end.exit_code == ExitCode.THRESHOLDS or (end.exit_code == ExitCode.OK and not end.reason)
    )
