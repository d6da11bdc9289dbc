"""Draws the pauses of one sender's users; each prompt stream has its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from servetop.core.config import WorkloadConfig
from servetop.workload.client.user_slots import parse_think_time
from servetop.workload.stages.schedule import Schedule
from servetop.workload.stages.stage_draws import Stream


class Pauses:
    """Passes the pauses of a stage to those who pause: the user slots, or the users of conversations."""

    def __init__(self, workload: WorkloadConfig, *, worker: int, use: Callable[[Iterator[float] | None], None]) -> None:
        self._text = workload.think_time
        self._worker = worker
        self._use = use
        self._stream: Stream | None = None

    def follow(self, schedule: Schedule) -> None:
        """Draw the pauses of the latest stage, unless it continues an earlier stream.

        A stage that sends all its requests at once has ended when its conversations go on.
        """
        if not self._text or schedule.latest_stage is None:
            return
        draws = schedule.plan.draws_of(schedule.latest_stage.index)
        if draws.stream != self._stream:
            self._stream = draws.stream
            self._use(parse_think_time(self._text, seed=(*draws.prompts, self._worker)))
