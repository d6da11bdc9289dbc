"""The sessions of an interrupted and resumed run, and its finished stages."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from servetop.core.errors import ExitCode
from servetop.core.events import Note, RunEnd, StageChange

RESUMED = "resume"
"""Source of the note that separates two sessions of a run."""


def finished_stages(stages: Sequence[StageChange], notes: Sequence[Note], *, end: RunEnd | None) -> list[StageChange]:
    """Return the stages, with their last settings, before another stage of the same session or the planned end."""
    resumes = [note.at for note in notes if note.source == RESUMED]
    last = {stage.index: stage for stage in stages}
    ordered = [last[index] for index in sorted(last)]
    finished = [
        stage
        for stage, following in itertools.pairwise(ordered)
        if not any(stage.at <= resumed <= following.at for resumed in resumes)
    ]
    return [*finished, *ordered[-1:]] if _as_planned(end) else finished


def first_of_session(stages: Sequence[StageChange], notes: Sequence[Note]) -> int:
    """Return the index of the first stage of the last session, which may not have started yet."""
    resumed = resumed_at(notes)
    return max((stage.index for stage in stages if stage.at < resumed), default=-1) + 1


def resumed_at(notes: Sequence[Note]) -> float:
    """Return the run time at which the last session started; -inf if there is only one."""
    return max((note.at for note in notes if note.source == RESUMED), default=-math.inf)


def _as_planned(end: RunEnd | None) -> bool:
    """Whether the run ended as planned: even if it missed a threshold, but not if it was stopped early."""
    return end is not None and (
        end.exit_code == ExitCode.THRESHOLDS or (end.exit_code == ExitCode.OK and not end.reason)
    )
