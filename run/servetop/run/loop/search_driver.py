"""Drives a search: asks for the next load shortly before a probe ends, and begins it while requests are in flight.

A load is kept until the next one replaces it, so it never pauses while the answer is computed, in a thread of its own.
"""

from __future__ import annotations

import asyncio
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from servetop.core.config import RunConfig
from servetop.core.events import Action, Command
from servetop.core.interfaces.search_state import SEARCH_COMMANDS, SEARCH_REFUSES
from servetop.core.tick import TICK_SECONDS
from servetop.workload.stages.plan import LoadPhase

if TYPE_CHECKING:
    from servetop.loadgen.messages import SenderReport
    from servetop.run.loop.plan_progress import PlanProgress
    from servetop.run.loop.segment_start import SegmentStarter
    from servetop.run.loop.tick_recorder import TickRecorder
    from servetop.run.search.probe_decision import ProbeDecider, ProbeDecision

ASK_AHEAD = 1.0
"""Seconds before the end of a probe at which the next one is asked for."""


def search_driver(
    config: RunConfig, recording: Path, progress: PlanProgress, starter: SegmentStarter, ticks: TickRecorder
) -> SearchDriver | None:
    """Return the driver of a run that is a search, before its first stage begins; None for another run."""
    if config.search is None:
        return None
    from servetop.run.search.probe_decision import ProbeDecider

    return SearchDriver(ProbeDecider.of(config, recording), progress, starter=starter, ticks=ticks)


def refusal(search: SearchDriver | None, command: Command) -> str:
    """Return why a command of a user is refused during a search; empty if it is not, or if there is no search.

    Its evidence is that of the loads that it chose, on an engine that stays as it is.
    """
    return SEARCH_REFUSES if search is not None and command.action not in SEARCH_COMMANDS else ""


class SearchDriver:
    """Follows the reports of the senders, once per tick."""

    def __init__(
        self, decider: ProbeDecider, progress: PlanProgress, *, starter: SegmentStarter, ticks: TickRecorder
    ) -> None:
        self._decider = decider
        self._progress = progress
        self._starter = starter
        self._ticks = ticks
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="search")
        self._decision: asyncio.Future[ProbeDecision] | None = None
        self._stage = progress.prolong_last()
        """Number of the stage of the current probe."""
        first = decider.first()
        self._seconds = first.seconds
        self._until = math.inf
        self._over = False
        self._ticks.add_note(decider.note_of(first, stage=self._stage))
        self._ticks.add_search_state(decider.state_of(first))

    async def follow(self, report: SenderReport) -> None:
        """Begin the next load, or end the search, if the time for it has come."""
        for stage in report.stages:
            if stage.index == self._stage:
                self._until = stage.at + self._seconds
        if self._over or report.state is not LoadPhase.RUNNING:
            return
        now = (report.tick.index + 1) * TICK_SECONDS
        if self._decision is None:
            if now >= self._until - ASK_AHEAD and report.in_flight is not None:
                loop = asyncio.get_running_loop()
                self._decision = loop.run_in_executor(self._thread, self._decider.decide)
        elif self._decision.done() and now > self._until - TICK_SECONDS:
            decision, self._decision = self._decision.result(), None
            await self._apply(decision, now)

    async def _apply(self, decision: ProbeDecision, now: float) -> None:
        self._until = max(self._until, now)
        if decision.state is not None:
            self._ticks.add_search_state(decision.state)
        for warning in decision.warnings:
            self._ticks.add_note(replace(warning, at=now))
        if decision.next is None:
            self._over = True
            self._ticks.add_note(decision.note(self._stage, at=now))
            await self._starter.sender.command(Command(id=0, at=now, action=Action.STOP, source="search"))
        elif decision.continues:
            self._until += decision.next.seconds
        else:
            self._stage = self._progress.add(self._decider.stage(decision.next))
            self._seconds, self._until = decision.next.seconds, math.inf
            self._ticks.add_note(decision.note(self._stage, at=now))
            await self._starter.start(self._progress.next())

    async def close(self) -> None:
        """Wait for a decision under way, and close the recording."""
        if self._decision is not None:
            await asyncio.wait({self._decision})
        self._decider.close()
        self._thread.shutdown()
