"""A run that was interrupted and resumed has several sittings; which of its stages were measured to their end?"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from servetop.core.errors import ExitCode
from servetop.core.events import Note, RunEnd, StageChange

RESUMED = "resume"
"""Source of the note that stands between two sittings of one run."""


def finished_stages(stages: Sequence[StageChange], notes: Sequence[Note], *, end: RunEnd | None) -> list[StageChange]:
    """The stages, each as announced last, that another one followed in the same sitting, or the planned end."""
    sittings = [note.at for note in notes if note.source == RESUMED]
    last = {stage.index: stage for stage in stages}
    ordered = [last[index] for index in sorted(last)]
    finished = [
        stage
        for stage, after in itertools.pairwise(ordered)
        if not any(stage.at <= sitting <= after.at for sitting in sittings)
    ]
    return [*finished, *ordered[-1:]] if _as_planned(end) else finished


def first_of_sitting(stages: Sequence[StageChange], notes: Sequence[Note]) -> int:
    """Index of the first stage of the last sitting, which may not have begun yet."""
    resumed = resumed_at(notes)
    return max((stage.index for stage in stages if stage.at < resumed), default=-1) + 1


def resumed_at(notes: Sequence[Note]) -> float:
    """When the last sitting began, run time; minus infinity for the only one."""
    return max((note.at for note in notes if note.source == RESUMED), default=-math.inf)


def _as_planned(end: RunEnd | None) -> bool:
    """It came to its end by itself; a threshold that was missed is not an interruption, "stopped early" is."""
    return end is not None and (
        end.exit_code == ExitCode.THRESHOLDS or (end.exit_code == ExitCode.OK and not end.reason)
    )
