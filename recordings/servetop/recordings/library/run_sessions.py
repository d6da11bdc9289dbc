"""The sessions of an interrupted and resumed run."""

from __future__ import annotations

import math
from collections.abc import Sequence

from servetop.analysis.cells.attempts import session_starts
from servetop.core.events import Note, StageChange


def first_of_session(stages: Sequence[StageChange], notes: Sequence[Note]) -> int:
    """Return the index of the first stage of the last session, which may not have started yet."""
    resumed = resumed_at(notes)
    return max((stage.index for stage in stages if stage.at < resumed), default=-1) + 1


def resumed_at(notes: Sequence[Note]) -> float:
    """Return the run time at which the last session started; -inf if there is only one."""
    return max(session_starts(notes), default=-math.inf)
