"""Applies the commands of viewers and of the system to a run."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from servetop.core.events import Action, Command, Severity
from servetop.loadgen.messages import SenderReport
from servetop.run.loop.engine_session import EngineSession
from servetop.run.loop.pending_batch_change import PendingBatchChange
from servetop.run.loop.plan_progress import PlanProgress
from servetop.run.loop.search_control import SearchControl
from servetop.run.loop.segment_start import SegmentStarter
from servetop.run.loop.tick_recorder import TickRecorder
from servetop.run.outcome import Outcome


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunCommands:
    """What a command changes: the load of the senders, the plan, the engine, or who chooses the load."""

    starter: SegmentStarter
    engine: EngineSession
    attached: bool
    """Whether the engine runs at a URL, not started by servetop."""
    progress: PlanProgress
    outcome: Outcome
    batch_change: PendingBatchChange
    search: SearchControl
    ticks: TickRecorder

    async def apply(self, commands: Sequence[Command], report: SenderReport) -> None:
        """Apply commands in their order; each gets a reply, from here or from the senders."""
        for command in commands:
            match command.action:
                case _ if why := self.search.refusal(command):
                    self.ticks.reply(command, why)
                case Action.SEARCH:
                    self.ticks.reply(command, self.search.switch(self.starter, report, busy=self._busy))
                case Action.MARK:
                    self.ticks.note(Severity.INFO, "user", text=command.text or "mark")
                    self.ticks.reply(command, "marked")
                case Action.SET_MAX_NUM_SEQS:
                    await self.change_batch(command)
                case Action.PREVIOUS_STAGE:
                    await self._to_previous_stage(command)
                case Action.STOP | Action.CANCEL:
                    await self.stop(command)
                case _:
                    await self.starter.sender.command(command)

    async def stop(self, command: Command) -> None:
        """Send nothing more; CANCEL: cancel the requests in flight too."""
        self.progress.left.clear()
        self.outcome.stopped_by = command.action
        await self.starter.sender.command(command)

    async def change_batch(self, command: Command) -> None:
        """Change the batch size of the engine, with a restart if it must."""
        batch = int(command.value or 0)
        changing = self.batch_change.is_pending
        needs = dataclasses.replace(self.engine.provides, max_num_seqs=batch)
        restarts = self.engine.must_restart(needs)
        if batch >= 1 and changing and not restarts:
            self.search.batch_changes()
            self.batch_change.wait(command)
        elif batch < 1 or changing:
            reason = "the batch size must be at least 1" if batch < 1 else "the batch size is already being changed"
            self.ticks.reply(command, reason)
        elif not restarts:
            self.search.batch_changes()
            self.batch_change.accept(command)
            self.batch_change.start(self.engine.change(needs))
        elif self.attached:
            self.ticks.reply(command, "an attached engine keeps its batch size: change the concurrency")
        else:
            self.search.batch_changes()
            self.batch_change.accept(command)
            # repeat the current stage and those after it as new stages
            self.progress.follow(self.progress.plan.again(self.progress.stage, max_num_seqs=batch))
            await self.starter.sender.command(Command(id=0, at=command.at, action=Action.STOP, source="restart"))

    async def _to_previous_stage(self, command: Command) -> None:
        """Repeat the previous stage and those after it, as new stages."""
        if busy := self._busy:
            self.ticks.reply(command, busy)
        elif back := self.progress.plan.before(self.progress.stage):
            self.progress.follow(back)
            self.ticks.reply(command, f"back to {back[0].stages[0][1].label}")
            await self.starter.sender.command(Command(id=0, at=command.at, action=Action.STOP, source="previous stage"))
        else:
            self.ticks.reply(command, "this is the first stage")

    @property
    def _busy(self) -> str:
        """Why no other stage can begin now; empty if one can."""
        if self.batch_change.is_pending:
            return "the batch size is already being changed"
        if self.starter.preparing:
            return "the prefix cache is being prepared"
        return "" if self.outcome.stopped_by is None else "the run is being stopped"
