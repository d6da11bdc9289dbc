"""The search of a run: planned from its start, or of a running load that a person hands over and takes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from servetop.core.config import RunConfig
from servetop.core.errors import UsageError
from servetop.core.events import Action, Command
from servetop.core.interfaces.search_state import SEARCH_COMMANDS, SEARCH_REFUSES
from servetop.core.tick import TICK_SECONDS
from servetop.loadgen.messages import SenderReport
from servetop.recordings.write.recorder import Recorder
from servetop.run.loop.plan_progress import PlanProgress
from servetop.run.loop.segment_start import SegmentStarter
from servetop.run.loop.tick_recorder import TickRecorder
from servetop.run.outcome import Outcome

if TYPE_CHECKING:
    from servetop.run.loop.search_driver import SearchDriver


class SearchControl:
    """Knows whether a search chooses the load, and begins and ends it."""

    def __init__(
        self, config: RunConfig, recorder: Recorder, progress: PlanProgress, outcome: Outcome, ticks: TickRecorder
    ) -> None:
        self._config = config
        self._recorder = recorder
        self._progress = progress
        self._outcome = outcome
        self._ticks = ticks
        self._driver: SearchDriver | None = None
        self._planned = config.search is not None
        """The run is a search from its start, or continues one."""
        self._other_batch = False
        """Whether the batch size was changed since the load was first handed to the search."""

    @property
    def active(self) -> bool:
        """Whether a search chooses the load."""
        return self._driver is not None and self._driver.active

    def begin(self, starter: SegmentStarter) -> None:
        """Begin the search of a run that is one, before its first stage."""
        if self._planned:
            self._driver = self._made(starter)
            self._driver.begin()

    def refusal(self, command: Command) -> str:
        """Return why a command of a user is refused while a search chooses the load; empty if it is not.

        Its evidence is that of the loads that it chose, on an engine that stays as it is.
        """
        taken = command.action in SEARCH_COMMANDS and not (self._planned and command.action is Action.SEARCH)
        return SEARCH_REFUSES if self.active and not taken else ""

    def batch_changes(self) -> None:
        """Take note of a change of the batch size: a search that was stopped cannot continue with its evidence."""
        self._other_batch = self._driver is not None

    def switch(self, starter: SegmentStarter, report: SenderReport, *, busy: str) -> str:
        """Hand the load to a search, or take it back; return the reply, `busy` if that is not empty."""
        now = (report.tick.index + 1) * TICK_SECONDS
        if self._driver is not None and self._driver.active:
            self._driver.take_back(now)
            return "the load is yours: it stays as it is"
        if busy:
            return busy
        if self._other_batch:
            return "the batch size has changed since the search began: start a new run to search again"
        if self._driver is None:
            from servetop.run.search.handed_load import handed_load

            try:
                self._config = handed_load(self._config, report.tick.gauges, at=now)
            except UsageError as error:
                return str(error)
            self._recorder.set_config(self._config)
            self._outcome.allow_failures(self._config.max_failures)
            self._driver = self._made(starter)
        left = self._progress.count_left
        self._progress.follow(())
        self._driver.take_over()
        return "the search chooses the load" + (f"; stages left out: {left}" if left else "")

    async def follow(self, report: SenderReport) -> None:
        """Let the search begin its next load, or end, if the time for it has come."""
        if self._driver is not None:
            await self._driver.follow(report)

    async def close(self) -> None:
        """Wait for what the search computes, and close what it reads."""
        if self._driver is not None:
            await self._driver.close()

    def _made(self, starter: SegmentStarter) -> SearchDriver:
        from servetop.run.loop.search_driver import SearchDriver
        from servetop.run.search.probe_decision import ProbeDecider

        decider = ProbeDecider.of(self._config, self._recorder.path)
        return SearchDriver(decider, self._progress, starter=starter, ticks=self._ticks, returns=not self._planned)
