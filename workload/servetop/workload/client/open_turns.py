"""The next turns of open conversations: each is due when its user has paused."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from servetop.workload.datasets.rows import SkippedRows
from servetop.workload.stages.schedule import Schedule

_Prompt = TypeVar("_Prompt")


@dataclass(frozen=True, slots=True)
class DueTurn(Generic[_Prompt]):
    """A turn that is due."""

    stage: int
    """The current stage; that of the turn before, if the load drains."""
    at: float
    prompt: _Prompt


class OpenTurns(Generic[_Prompt]):
    """Keeps the turns whose users pause; `skipped` counts the conversations that a stage cuts off."""

    def __init__(self, skipped: SkippedRows) -> None:
        self._skipped = skipped
        self._pauses: Iterator[float] = itertools.repeat(0.0)
        self._waiting: list[tuple[float, int, int, _Prompt]] = []

    def think(self, pauses: Iterator[float] | None) -> None:
        """Pause for these times from now on; None: not at all."""
        self._pauses = pauses or itertools.repeat(0.0)

    @property
    def thinking(self) -> int:
        """Users between a completion and their next turn."""
        return len(self._waiting)

    @property
    def wake_at(self) -> float:
        """Run time at which the next turn is due; inf if no user is thinking."""
        return self._waiting[0][0] if self._waiting else math.inf

    def add(self, prompt: _Prompt, *, after: float, stage: int, number: int) -> None:
        """Schedule the turn that follows one that ended at `after`; of turns due at once the lowest number is first."""
        heapq.heappush(self._waiting, (after + next(self._pauses), number, stage, prompt))

    def due(self, now: float, schedule: Schedule) -> Iterator[DueTurn[_Prompt]]:
        """Yield the turns that have become due, in order, as requests of the current or draining stage.

        If the stage was cut off, its conversations end.
        """
        if not schedule.continues_conversations:
            self.cancel()
        while self._waiting and self._waiting[0][0] <= now:
            at, _, stage, prompt = heapq.heappop(self._waiting)
            schedule.turn_due(at)
            yield DueTurn(stage if schedule.stage is None else schedule.stage.index, at, prompt)
        if self._waiting:
            schedule.turn_due(self.wake_at)

    def cancel(self) -> None:
        """End the conversations whose users are thinking."""
        self._skipped.cut += len(self._waiting)
        self._waiting.clear()
