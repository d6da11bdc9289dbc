"""Steady windows of the stages that are over, each looked for once."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from servetop.core.events import StageChange
from servetop.core.history import TickHistory
from servetop.core.steady import SteadyWindow, TickColumns, steady_window


class SteadyStages:
    """Keeps what it found: a stage that is over does not change any more."""

    def __init__(self, history: TickHistory) -> None:
        self._history = history
        self._found: dict[tuple[int, float, float, float], SteadyWindow] = {}

    def windows(
        self, stages: Sequence[StageChange], *, end: float | None, cooldown: float
    ) -> Mapping[int, SteadyWindow]:
        """By stage, warm-ups and boots apart: of those that another one followed, and of the last when the run ended.

        `end` is when the run ended, None while it goes on.
        """
        starts = [next(group) for _, group in itertools.groupby(stages, key=lambda stage: stage.index)]
        ends = [*(stage.at for stage in starts[1:]), end]
        return {
            stage.index: self._window(stage, until, cooldown)
            for stage, until in zip(starts, ends, strict=False)
            if until is not None and stage.request_rate is not None and not stage.warmup
        }

    def _window(self, stage: StageChange, until: float, cooldown: float) -> SteadyWindow:
        key = (stage.index, stage.at, until, cooldown)
        if key not in self._found:
            first, stop = self._history.first_from(stage.at), self._history.up_to(until)
            columns = TickColumns.of(self._history.ticks[first : max(first, stop)])
            self._found[key] = steady_window(columns, cooldown=cooldown)
        return self._found[key]
