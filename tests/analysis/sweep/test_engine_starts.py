"""Stages of one start of the engine have one number."""

from __future__ import annotations

from servetop.analysis.cells.attempts import RESUMED
from servetop.analysis.sweep.engine_starts import engine_starts
from servetop.core.events import Note, Severity

STAGES = {0: 10.0, 1: 20.0, 2: 30.0, 3: 40.0}


def note(at: float, source: str, text: str, severity: Severity = Severity.INFO) -> Note:
    return Note(at=at, severity=severity, source=source, text=text)


def test_a_restart_and_a_failure_of_the_engine_begin_another_start() -> None:
    notes = [
        note(15.0, "engine", "max_num_seqs 8 → 16: restarting the engine"),
        note(25.0, "engine", "max_num_seqs 16 → 8: changing it while it runs"),
        note(26.0, "load", "8 req/s failed", Severity.ERROR),
        note(35.0, "engine", "the engine was killed", Severity.ERROR),
    ]
    assert engine_starts(STAGES, notes, attached=False) == {0: 0, 1: 1, 2: 1, 3: 2}


def test_a_resumed_session_starts_the_engine_unless_it_is_a_server_at_a_url() -> None:
    notes = [note(25.0, RESUMED, "resumed")]
    assert engine_starts(STAGES, notes, attached=False) == {0: 0, 1: 0, 2: 1, 3: 1}
    assert engine_starts(STAGES, notes, attached=True) == dict.fromkeys(STAGES, 0)
