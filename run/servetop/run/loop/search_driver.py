"""Drives a search: asks for the next load shortly before a probe ends, and begins it while requests are in flight.

A load is kept until the next one replaces it, so it never pauses while the answer is computed, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from servetop.core.events import Action, Command
from servetop.core.interfaces.search_state import SearchState
from servetop.core.tick import TICK_SECONDS
from servetop.run.search.recorded_probes import taken_back_note
from servetop.workload.stages.plan import LoadPhase

if TYPE_CHECKING:
    from servetop.loadgen.messages import SenderReport
    from servetop.run.loop.plan_progress import PlanProgress
    from servetop.run.loop.segment_start import SegmentStarter
    from servetop.run.loop.tick_recorder import TickRecorder
    from servetop.run.search.probe_decision import FirstProbe, ProbeDecider, ProbeDecision

ASK_AHEAD = 1.0
"""Seconds before the end of a probe at which the next one is asked for."""


class SearchDriver:
    """Follows the reports of the senders, once per tick."""

    def __init__(
        self,
        decider: ProbeDecider,
        progress: PlanProgress,
        *,
        starter: SegmentStarter,
        ticks: TickRecorder,
        returns: bool = False,
    ) -> None:
        """`returns`: at its end the load stays as it is, for the keys to steer; else it is stopped."""
        self._decider = decider
        self._progress = progress
        self._starter = starter
        self._ticks = ticks
        self._returns = returns
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="search")
        self._first: asyncio.Future[FirstProbe] | None = None
        self._decision: asyncio.Future[ProbeDecision] | None = None
        self._newest: SearchState | None = None
        self._stage = -1
        """Number of the stage of the current probe."""
        self._seconds = 0.0
        self._until = math.inf
        self.active = False
        """Whether the search chooses the load."""

    def begin(self) -> None:
        """Begin with the load that the run begins with."""
        self.active = True
        first = self._decider.first()
        self._keep(first, stage=self._progress.prolong_last())

    def take_over(self) -> None:
        """Begin, or go on, as soon as the first load is known, in place of the load that is being sent."""
        self.active = True
        self._first = asyncio.get_running_loop().run_in_executor(self._thread, self._decider.first)

    def take_back(self, now: float) -> None:
        """Choose no further load; the present one stays."""
        self.active = False
        self._ticks.add_note(taken_back_note("the search was stopped by key: the load stays as it is", at=now))
        if self._newest is not None:
            over = replace(self._newest, at=now, load=None, purpose="", reason="stopped by key", loads=())
            self._ticks.add_search_state(over)

    async def follow(self, report: SenderReport) -> None:
        """Begin the next load, or end the search, if the time for it has come."""
        for stage in report.stages:
            if stage.index == self._stage:
                self._until = stage.at + self._seconds
        if not self.active or report.state is not LoadPhase.RUNNING:
            return
        now = (report.tick.index + 1) * TICK_SECONDS
        if self._first is not None:
            if self._first.done():
                first, self._first = self._first.result(), None
                self._decision = None  # of the time before the load was taken back
                self._keep(first, stage=self._progress.add(self._decider.stage(first.probe)))
                await self._starter.start(self._progress.next())
        elif self._decision is None:
            if now >= self._until - ASK_AHEAD and report.in_flight is not None:
                loop = asyncio.get_running_loop()
                self._decision = loop.run_in_executor(self._thread, self._decider.decide)
        elif self._decision.done() and now > self._until - TICK_SECONDS:
            decision, self._decision = self._decision.result(), None
            await self._apply(decision, now)

    def _keep(self, first: FirstProbe, *, stage: int) -> None:
        self._stage, self._seconds, self._until = stage, first.probe.seconds, math.inf
        self._ticks.add_note(first.note(stage))
        self._add_state(first.state)

    def _add_state(self, state: SearchState) -> None:
        self._newest = state
        self._ticks.add_search_state(state)

    async def _apply(self, decision: ProbeDecision, now: float) -> None:
        self._until = max(self._until, now)
        if decision.state is not None:
            self._add_state(decision.state)
        for warning in decision.warnings:
            self._ticks.add_note(replace(warning, at=now))
        if decision.next is None:
            self.active = False
            self._ticks.add_note(decision.note(self._stage, at=now))
            if self._returns:
                self._ticks.add_note(taken_back_note("the search is over: the load stays as it is", at=now))
            else:
                await self._starter.sender.command(Command(id=0, at=now, action=Action.STOP, source="search"))
        elif decision.continues:
            self._until += decision.next.seconds
        else:
            self._stage = self._progress.add(self._decider.stage(decision.next))
            self._seconds, self._until = decision.next.seconds, math.inf
            self._ticks.add_note(decision.note(self._stage, at=now))
            await self._starter.start(self._progress.next())

    async def close(self) -> None:
        """Wait for what is being computed, and close the recording."""
        if pending := {each for each in (self._first, self._decision) if each is not None}:
            await asyncio.wait(pending)
        self._decider.close()
        self._thread.shutdown()
