"""Finds the start of the engine in which each stage of a run was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from servetop.analysis.cells.attempts import session_starts
from servetop.analysis.diagnosis.run_record import restarts
from servetop.core.events import Note, Severity


def engine_starts(stages: Mapping[int, float], notes: Sequence[Note], *, attached: bool) -> dict[int, int]:
    """Return a number for each stage, equal for stages of one start; `stages` has the time at which each began.

    A start begins where the run restarts the engine, after it failed, and in a resumed session, unless it is a
    server to which the run is attached.
    """
    failed = [note for note in notes if note.source == "engine" and note.severity is Severity.ERROR]
    times = [note.at for note in (*restarts(notes), *failed)]
    times += [] if attached else session_starts(notes)
    return {index: sum(at <= begin for at in times) for index, begin in stages.items()}
