"""One run from start to end: start the engine, send the load, record everything, clean up."""

from __future__ import annotations

import asyncio
import dataclasses
from functools import partial

from servetop.core.clock import MonotonicClock
from servetop.core.config import AS_IS, RunConfig
from servetop.core.errors import EngineError, ServetopError
from servetop.core.events import Action, Command, RunEnd, Severity
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import ClientTick
from servetop.loadgen.messages import SenderReport
from servetop.loadgen.worker.start_senders import LoadSenders
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.resume import RunStart
from servetop.run.loop.cell_failures import CellFailures
from servetop.run.loop.engine_boot import EngineBoot
from servetop.run.loop.engine_session import EngineSession
from servetop.run.loop.pending_batch_change import PendingBatchChange
from servetop.run.loop.plan_progress import PlanProgress
from servetop.run.loop.row_ends import RowEnds
from servetop.run.loop.run_commands import RunCommands
from servetop.run.loop.search_control import SearchControl
from servetop.run.loop.segment_start import SegmentStarter
from servetop.run.loop.sender_setup import set_up_sender
from servetop.run.loop.stage_plan import EngineNeeds
from servetop.run.loop.tick_recorder import Alert, TickRecorder
from servetop.run.outcome import Outcome, RunPhase
from servetop.run.process.first_sender import FirstSender
from servetop.run.stop_requests import StopRequests
from servetop.workload.stages.plan import LoadPhase


class RunLoop:
    """Drives one run: call `run` once; `stop_requests` may be used from a signal handler."""

    def __init__(
        self, config: RunConfig, recorder: Recorder, *, start: RunStart, sender: FirstSender, alert: Alert
    ) -> None:
        self._config = config
        self._recorder = recorder
        self._start = start
        self._clock = MonotonicClock(start.anchor.origin_ns)
        resets = config.prefix_cache != AS_IS
        self._engine = EngineSession(config.engine, self._clock, workload=config.workload, resets_cache=resets)
        self.ticks = TickRecorder(recorder, self._engine, clock=self._clock, alert=alert)
        self._failures = CellFailures(config, self.ticks, clock=self._clock)
        self._outcome = Outcome(config.max_failures, per_cell=config.drain_at_stages)
        self.warn = partial(self.ticks.note, Severity.WARNING)
        self.stop_requests = StopRequests(self._outcome, lambda why: self.warn("run", text=why), self._engine.hurry)
        self._first_sender = sender
        self._sender: LoadSenders | None = None
        self._progress = PlanProgress(config, first_stage=start.first_stage)
        self._search = SearchControl(config, recorder, self._progress, self._outcome, self.ticks)
        self._rows = RowEnds(config, recorder, self.ticks, clock=self._clock)
        self._starter: SegmentStarter | None = None
        self._commands: RunCommands | None = None
        self._max_num_seqs: int | None = None
        self._batch_change = PendingBatchChange()
        self.first_launched = self._engine.first_launched
        """Returns how the engine was first started, once it is ready."""
        self.engine_name = ""
        """Name of the engine; empty until it is started or recognised."""
        self._tick_index = start.first_tick
        self._draining = self._winding_down = self._engine_lost = False

    @property
    def phase(self) -> RunPhase:
        """The current phase of the run."""
        if self._winding_down or (self._sender is None and self.stop_requests.action is not None):
            return RunPhase.STOPPING
        if self._sender is None:
            return RunPhase.BOOTING
        if self._outcome.stopped_by is None and self._batch_change.is_pending:
            return RunPhase.RESTARTING
        return RunPhase.DRAINING if self._draining else RunPhase.RUNNING

    async def run(self) -> RunEnd:
        """Run to the end; errors of the run are reported by the RunEnd, not raised."""
        try:
            await self._boot()
            await self.stop_requests.wait_for(asyncio.ensure_future(self._play()))
            await self._engine.check_alive()
            failure = None
        except ServetopError as error:
            failure = error
            self.ticks.note(Severity.ERROR, "run", text=str(error))
        await self._wind_down()
        return self._outcome.end(self._clock.now(), self._failures.explain(failure))

    async def _boot(self) -> None:
        boot = EngineBoot(self._engine, self.ticks, self._recorder, clock=self._clock, first_tick=self._tick_index)
        try:
            facts = await boot.start(self._progress.left, self._failures, self.stop_requests)
        finally:
            self._tick_index = boot.next_tick
        if facts is None:
            return
        await self._engine_started(facts)
        left = dataclasses.replace(self._config, stages=self._progress.stages_left)
        self._sender, setup = await set_up_sender(
            self._first_sender, left, self._engine, ticks=self.ticks, start=self._start
        )
        self._starter = SegmentStarter(self._config, self._sender, setup, engine=self._engine, ticks=self.ticks)
        self._commands = RunCommands(
            starter=self._starter, engine=self._engine, attached=self._config.engine.url is not None,
            progress=self._progress, outcome=self._outcome, batch_change=self._batch_change, search=self._search,
            ticks=self.ticks,
        )  # fmt: skip
        self._search.begin(self._starter)
        await self._start_next_at(self._starter, self._progress.left[0].needs)

    async def _engine_started(self, facts: EngineFacts) -> None:
        self.ticks.set_engine(facts)
        self.engine_name = facts.name
        self._max_num_seqs = facts.max_num_seqs
        self._failures.started(self._engine.wanted)
        await self._failures.drop_unfit(self._progress, facts, settings=self._engine.provides.settings)

    async def _play(self) -> None:
        if self._sender is None:
            return
        async for report in self._sender.reports():
            self._take(report)
            await self._apply_commands(report)
            if self._outcome.stopped_by is None:
                await self._search.follow(report)
            self._draining = self._outcome.stopped_by is not None or report.state is LoadPhase.DRAINING
            if self._engine.dead and not self._batch_change.is_running:
                await self._lose_engine(self._sender, report)
            elif self._starter is not None and await self._is_over(self._starter, report):
                return

    def _take(self, report: SenderReport) -> None:
        """Record a tick; gaps before it (while the sender was starting) become ticks without load."""
        for index in range(self._tick_index, report.tick.index):
            self.ticks.commit(ClientTick(index=index))
        self._tick_index = report.tick.index + 1
        self._progress.stage = max(self._progress.stage, report.tick.gauges.stage)
        self._outcome.take(report.records, report.stages, report.deaths)
        self.ticks.commit(
            report.tick,
            requests=report.records,
            in_flight=report.in_flight,
            stages=[self._progress.plan.row(stage, max_num_seqs=self._max_num_seqs) for stage in report.stages],
            notes=report.notes,
            replies=[reply for reply in report.replies if reply.id],
        )

    async def _is_over(self, starter: SegmentStarter, report: SenderReport) -> bool:
        """Start the next segment when the current one is over; True if there is none."""
        if self._outcome.interruptions:
            return report.state is LoadPhase.FINISHED or self._outcome.interruptions > 1
        if starter.preparing:
            if self._outcome.stopped_by is None and self._batch_change.command is None:
                await starter.advance()
                return False
            await starter.cancel()
        if self._batch_change.is_running:
            if self._batch_change.is_done:
                await self._batch_changed(starter)
                if self._commands is not None and (waiting := self._batch_change.next_waiting()) is not None:
                    await self._commands.change_batch(waiting)
            elif self._outcome.stopped_by is not None and self._progress.current is None:
                return True  # nothing is in flight during a restart
            return False
        started = self._batch_change.command is not None or self._progress.has_begun  # else reports of the previous one
        drained = report.state is LoadPhase.FINISHED and (started or self._outcome.stopped_by is not None)
        drained = drained and self._rows.are_settled(self._progress)
        if not self._progress.left:
            return drained
        needs = self._progress.left[0].needs
        if drained or (report.state is LoadPhase.DRAINING and not self._must_drain(needs)):
            await self._start_next_at(starter, needs)
        return False

    async def _lose_engine(self, sender: LoadSenders, report: SenderReport) -> None:
        """End the load of a dead engine, and then start it again for the cells that follow, if the run continues."""
        if self._engine_lost:
            if report.state is LoadPhase.FINISHED or not self._progress.left:
                self._restart_engine(self._engine.death())
            return
        rest = self._failures.died(self._engine.death(), self._progress.current, stage=self._progress.stage)
        self._progress.left.extendleft(rest)
        self._engine_lost = True
        if self._starter is not None:
            await self._starter.cancel()
        await sender.command(Command(id=0, at=self._clock.now(), action=Action.STOP, source="engine"))

    def _restart_engine(self, error: EngineError) -> None:
        if not self._progress.left:
            raise error
        self._engine_lost, self._progress.current = False, None
        self._batch_change.start(self._engine.restart(self._progress.left[0].needs))

    async def _start_next_at(self, starter: SegmentStarter, needs: EngineNeeds) -> None:
        provided = self._engine.provides
        if needs.met_by(provided):
            await starter.start(self._progress.next())
            return
        how = "restarting the engine" if self._engine.must_restart(needs) else "changing it while it runs"
        self.ticks.note(Severity.INFO, "engine", text=f"{needs.change_from(provided)}: {how}")
        self._progress.current = None
        self._batch_change.start(self._engine.change(needs))

    def _must_drain(self, needs: EngineNeeds) -> bool:
        changes = not needs.met_by(self._engine.provides) and self._engine.must_restart(needs)
        return self._config.drain_at_stages or self._progress.left[0].fresh or changes

    async def _apply_commands(self, report: SenderReport) -> None:
        if self._commands is None:
            return
        await self._commands.apply(self._recorder.new_commands(), report)
        wanted = self.stop_requests.action
        if wanted is not None and self._outcome.stopped_by not in (wanted, Action.CANCEL):
            await self._commands.stop(Command(id=0, at=self._clock.now(), action=wanted, source="signal"))

    async def _batch_changed(self, starter: SegmentStarter) -> None:
        command, change = self._batch_change.take()
        try:
            await self._engine_started(change.result())
            await starter.follow_engine()
        except EngineError as error:
            if command is not None and self._progress.current is not None:
                self.ticks.reply(command, str(error))
            else:  # the engine did not start again, or died after the last cell
                self._failures.failed_to_restart(error, self._progress.left, died=self._engine.dead)
                self._restart_engine(error)
            return
        if command is not None:
            self.ticks.reply(command, f"batch size {self._max_num_seqs}")
        if self._progress.current is None and self._progress.left:
            await self._start_next_at(starter, self._progress.left[0].needs)

    async def _wind_down(self) -> None:
        self._winding_down = True
        await self._search.close()
        if self._starter is not None:
            await self._starter.cancel()
        await self._batch_change.cancel()
        self._first_sender.end_unused()
        if self._sender is not None:
            await self._sender.close()
        await self._engine.final_scrape()
        self.ticks.commit(None)  # before the engine stops, which may take a while
        await self._engine.close()
        self.ticks.commit(None)
