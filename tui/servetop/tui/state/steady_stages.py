"""Steady windows of finished stages, each computed once."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from servetop.analysis.series.tick_history import TickHistory
from servetop.analysis.trust.steady_state import SteadyWindow, steady_window
from servetop.core.events import StageChange


class SteadyStages:
    """Caches the windows, because a finished stage no longer changes."""

    def __init__(self, history: TickHistory) -> None:
        self._history = history
        self._found: dict[tuple[int, float, float, float], SteadyWindow] = {}

    def windows(
        self, stages: Sequence[StageChange], *, end: float | None, cooldown: float
    ) -> Mapping[int, SteadyWindow]:
        """Steady windows by stage index: of stages that were followed by another, and of the last if the run has ended.

        Warm-ups and engine starts have none. `end` is the end of the run, None while it is live.
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
            self._found[key] = steady_window(self._history.stage_columns(first, stop), cooldown=cooldown)
        return self._found[key]
