"""Which stages of a run are attempts at the same cell, and which of them count."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from servetop.analysis.cells.stage_load import CellKey
from servetop.analysis.cells.steering import steering
from servetop.core.config_values.failure_limit import DEFAULT_MAX_FAILURES, FailureLimit
from servetop.core.errors import ExitCode
from servetop.core.events import Action, Command, Note, RunEnd, StageChange
from servetop.core.text.counted import counted
from servetop.core.tick import TICK_SECONDS

RESUMED = "resume"
"""Source of the note that separates two sessions of a run."""
ENDS_STAGE = (Action.NEXT_STAGE, Action.PREVIOUS_STAGE, Action.SET_MAX_NUM_SEQS, Action.STOP, Action.CANCEL)
"""Commands that may end a stage before its planned end."""


class AttemptState(StrEnum):
    """How far a stage got."""

    WHOLE = "whole"
    """It reached its planned length, and its requests ended."""
    CUT_SHORT = "cut-short"
    """It ended, or was interrupted, before that; or it still runs."""
    FAILED = "failed"
    """Its engine did not start or died, or too many of its requests failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTally:
    """What happened in a stage until its end, or until the end of its session."""

    ok: int = 0
    """Requests that succeeded."""
    failed: int = 0
    left: int = 0
    """Requests queued or in flight at `until`."""
    until: float = -math.inf
    """Run time up to which the stage is recorded."""

    @property
    def ended(self) -> int:
        """Requests that succeeded or failed; those that the client cancelled are not among them."""
        return self.ok + self.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class StageHistory:
    """The rows by which the stages of a run are judged as attempts at cells."""

    stages: Sequence[StageChange]
    """All rows, in order of time."""
    tallies: Mapping[int, StageTally]
    """One for each stage, by its number."""
    notes: Sequence[Note] = ()
    commands: Sequence[Command] = ()
    end: RunEnd | None = None
    max_failures: str = DEFAULT_MAX_FAILURES


@dataclass(frozen=True, slots=True, kw_only=True)
class CellAttempt:
    """One stage as an attempt at its cell."""

    stage: int
    """Number of the stage."""
    key: CellKey
    state: AttemptState
    reason: str = field(default="")
    """Why it failed."""
    counts: bool = True
    """Whether its requests count: not those of one that was cut short where the cell was also measured as a whole, nor
    those of one that failed where a later session measured the cell, or failed again."""

    @property
    def steered(self) -> str:
        """How commands changed its load; empty for the load as planned."""
        return self.key.load.steered


def session_starts(notes: Sequence[Note]) -> list[float]:
    """Return the run times at which a session ended and the next one began."""
    return [note.at for note in notes if note.source == RESUMED]


def cell_attempts(history: StageHistory) -> dict[int, CellAttempt]:
    """Return the attempts by number of the stage; stages without a load are none."""
    limit = FailureLimit.parse(history.max_failures)
    loaded = [stage for stage in history.stages if stage.request_rate is not None]
    first = {stage.index: stage for stage in reversed(loaded)}
    last = {stage.index: stage for stage in loaded}
    states: dict[int, tuple[AttemptState, str]] = {}
    for index in sorted(first):
        reason = _failure(last[index], history.tallies.get(index, StageTally()), limit)
        if reason:
            states[index] = AttemptState.FAILED, reason
        else:
            whole = _is_whole(first[index], history)
            states[index] = AttemptState.WHOLE if whole else AttemptState.CUT_SHORT, ""
    keys = {index: _key(first[index], last[index], history) for index in states}
    seams = session_starts(history.notes)
    sessions = {index: sum(seam <= first[index].at for seam in seams) for index in states}
    last_in: dict[tuple[CellKey, AttemptState], int] = {}
    for index, (state, _) in states.items():
        last_in[keys[index], state] = sessions[index]
    return {
        index: CellAttempt(
            stage=index,
            key=keys[index],
            state=state,
            reason=reason,
            counts=_counts(
                state,
                session=sessions[index],
                measured_in=last_in.get((keys[index], AttemptState.WHOLE)),
                failed_in=last_in.get((keys[index], AttemptState.FAILED)),
            ),
        )
        for index, (state, reason) in states.items()
    }


def _key(first: StageChange, last: StageChange, history: StageHistory) -> CellKey:
    """Return the key of a stage; one whose load was steered measures a cell of its own."""
    until = next((each.at for each in history.stages if each.at >= first.at and each.index != first.index), math.inf)
    key, steered = CellKey.of(last), steering(first, history.commands, until=until)
    return replace(key, load=replace(key.load, steered=steered))


def _counts(state: AttemptState, *, session: int, measured_in: int | None, failed_in: int | None) -> bool:
    """Whether an attempt counts, given the last sessions in which the cell was measured as a whole, and failed."""
    if state is AttemptState.WHOLE:
        return True
    if state is AttemptState.FAILED:
        return session == failed_in and (measured_in is None or measured_in <= session)
    return measured_in is None


def _failure(stage: StageChange, tally: StageTally, limit: FailureLimit) -> str:
    """Return why a stage failed; empty if it did not: an engine that dies after the last response spoils no cell."""
    if stage.failure is not None and (stage.num_prompts is None or tally.ok < stage.num_prompts):
        return stage.failure
    if not tally.failed or (tally.ok and not limit.is_exceeded(tally.failed, tally.ended)):
        return ""
    return f"{tally.failed:,} of {counted(tally.ended, 'request')} failed"


def _is_whole(stage: StageChange, history: StageHistory) -> bool:
    """Whether a stage reached its planned length and its requests ended; without a plan, whether nothing cut it off."""
    tally = history.tallies.get(stage.index, StageTally())
    if stage.num_prompts is not None and tally.ended >= stage.num_prompts:
        return True
    if stage.duration is not None and not tally.left and tally.until >= stage.at + stage.duration - TICK_SECONDS / 2:
        return True
    return _ended_by_itself(stage, history)


def _ended_by_itself(stage: StageChange, history: StageHistory) -> bool:
    """Whether the next stage, or the planned end of the run, followed in the same session without a command."""
    following = next((each for each in history.stages if each.at >= stage.at and each.index != stage.index), None)
    if following is None and not _as_planned(history.end):
        return False
    if following and any(stage.at <= resumed <= following.at for resumed in session_starts(history.notes)):
        return False
    until = following.at if following else math.inf
    ending = (each.applied_at for each in history.commands if each.action in ENDS_STAGE)
    return not any(at is not None and stage.at < at <= until for at in ending)


def _as_planned(end: RunEnd | None) -> bool:
    """Whether the run ended as planned: whatever its thresholds say, but not if it was stopped early."""
    judged = (ExitCode.THRESHOLDS, ExitCode.CANNOT_TELL)
    return end is not None and (end.exit_code in judged or (end.exit_code == ExitCode.OK and not end.reason))
