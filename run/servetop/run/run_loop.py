"""One run from start to end: boot the engine, play the load, write everything down, leave nothing behind."""

from __future__ import annotations

import asyncio
import dataclasses
import os
from collections import deque
from functools import partial
from typing import Any

from servetop.core.clock import MonotonicClock
from servetop.core.config import ConnectionConfig, RunConfig
from servetop.core.errors import EngineError, ServetopError
from servetop.core.events import Action, Command, RunEnd, Severity, StageChange
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import TICK_SECONDS, ClientTick
from servetop.engines.control.connection import route_to
from servetop.loadgen.messages import SenderReport
from servetop.loadgen.worker.start_senders import LoadSenders
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.resume import RunStart
from servetop.run.engine_session import EngineSession
from servetop.run.outcome import Outcome, RunPhase
from servetop.run.process.first_sender import FirstSender
from servetop.run.sender_setup import requests_to, sender_setup
from servetop.run.stage_plan import Segment, StagePlan, segments
from servetop.run.stop_requests import StopRequests
from servetop.run.tick_recorder import Alert, TickRecorder
from servetop.workload.plan import LoadPhase, LoadPlan

BEGIN_AHEAD = 0.05
"""Seconds between telling the sender to begin and the first due time."""


class RunLoop:
    """Drives one run; `run` once, `stop_requests` from a signal handler."""

    def __init__(
        self, config: RunConfig, recorder: Recorder, *, start: RunStart, sender: FirstSender, alert: Alert
    ) -> None:
        self._config = config
        self._recorder = recorder
        self._start = start
        self._clock = MonotonicClock(start.anchor.origin_ns)
        self._engine = EngineSession(config.engine, self._clock)
        self._recording = TickRecorder(recorder, self._engine, clock=self._clock, alert=alert)
        self._outcome = Outcome(config.max_failures)
        self.warn = partial(self._recording.note, Severity.WARNING)
        self.stop_requests = StopRequests(
            self._outcome, lambda reason: self.warn("run", text=reason), self._engine.hurry
        )
        self._first_sender = sender
        self._sender: LoadSenders | None = None
        self._segments: deque[Segment] = deque(segments(config.stages, first_index=start.first_stage))
        self._segment: Segment | None = None
        self._stage_plan = StagePlan(config.stages, first_index=start.first_stage)
        self._stage = -1
        self._batch_change: asyncio.Task[EngineFacts] | None = None
        self._batch_command: Command | None = None
        self._tick_index = start.first_tick
        self._draining = False
        self._winding_down = False

    @property
    def trouble(self) -> str:
        """Why the recording cannot be written now; empty while it can."""
        return self._recording.trouble

    @property
    def phase(self) -> RunPhase:
        """What the run is doing now."""
        if self._winding_down or (self._sender is None and self.stop_requests.action is not None):
            return RunPhase.STOPPING
        if self._sender is None:
            return RunPhase.BOOTING
        if self._outcome.stopped_by is None and (self._batch_change is not None or self._batch_command is not None):
            return RunPhase.RESTARTING
        return RunPhase.DRAINING if self._draining else RunPhase.RUNNING

    async def run(self) -> RunEnd:
        """Play the whole run; what can go wrong in one is told by the RunEnd, not raised."""
        try:
            await self._boot()
            await self.stop_requests.play(asyncio.ensure_future(self._play()))
            await self._engine.refuse_dead()
            failure = None
        except ServetopError as error:
            failure = error
            self._recording.note(Severity.ERROR, "run", text=str(error))
        await self._wind_down()
        return self._outcome.end(self._clock.now(), failure)

    async def _boot(self) -> None:
        booting: asyncio.Future[EngineFacts] = asyncio.ensure_future(
            self._engine.start(max_num_seqs=self._segments[0].max_num_seqs)
        )
        while not booting.done():
            await self._idle_tick(booting)
            if self.stop_requests.action is not None:
                booting.cancel()
                await asyncio.wait({booting})
        if booting.cancelled():
            return
        facts = booting.result()
        self._set_engine_facts(facts)
        setup = await sender_setup(
            self._config, self._engine, facts=facts, start=self._start, connection=self._connection(facts)
        )
        self._sender = await self._first_sender.set_up(setup, workers=self._config.workers)
        await self._begin_next(self._sender)

    async def _idle_tick(self, booting: asyncio.Future[EngineFacts]) -> None:
        """A tick without load: wait for its end, or for the boot to be over."""
        sleeping: asyncio.Future[None] = asyncio.ensure_future(
            self._clock.sleep_until((self._tick_index + 1) * TICK_SECONDS)
        )
        waiting: set[asyncio.Future[Any]] = {sleeping, booting}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        sleeping.cancel()
        while (self._tick_index + 1) * TICK_SECONDS <= self._clock.now():
            self._recording.commit(ClientTick(index=self._tick_index))
            self._tick_index += 1
        for command in self._recorder.new_commands():
            if command.action in (Action.STOP, Action.CANCEL):
                self.stop_requests.cancel()
            self._recording.reply(command, "the engine is still loading")

    def _connection(self, facts: EngineFacts) -> ConnectionConfig:
        """How the senders reach the engine; an engine of our own by no proxy."""
        wanted = self._config.engine
        route = route_to(requests_to(self._config, facts), wanted.connection, os.environ if wanted.url else {})
        if route.remark:
            self._recording.note(Severity.INFO, "load", text=route.remark)
        return route.connection

    def _set_engine_facts(self, facts: EngineFacts) -> None:
        self._recorder.set_engine(facts)
        self._max_num_seqs = facts.max_num_seqs

    # --- the load ---

    async def _play(self) -> None:
        if self._sender is None:
            return
        async for report in self._sender.reports():
            self._take(report)
            await self._apply_new_commands(self._sender)
            await self._apply_stop_requests(self._sender)
            self._draining = self._outcome.stopped_by is not None or report.state is LoadPhase.DRAINING
            if self._engine.dead and self._batch_change is None:
                raise self._engine.death()
            if await self._is_over(self._sender, report):
                return

    def _take(self, report: SenderReport) -> None:
        """Write a tick down; gaps before it (the sender was starting) become ticks without load."""
        for index in range(self._tick_index, report.tick.index):
            self._recording.commit(ClientTick(index=index))
        self._tick_index = report.tick.index + 1
        self._stage = max(self._stage, report.tick.gauges.stage)
        self._outcome.take(report.records, report.stages, report.deaths)
        self._recording.commit(
            report.tick,
            requests=report.records,
            stages=[self._with_batch(stage) for stage in report.stages],
            notes=report.notes,
            replies=[reply for reply in report.replies if reply.id],
        )

    def _with_batch(self, stage: StageChange) -> StageChange:
        batch = stage.max_num_seqs if stage.max_num_seqs is not None else self._max_num_seqs
        return dataclasses.replace(stage, max_num_seqs=batch)

    async def _is_over(self, sender: LoadSenders, report: SenderReport) -> bool:
        """Move on to the next segment when this one is over; True when there is none."""
        if self._outcome.interruptions:
            return report.state is LoadPhase.FINISHED or self._outcome.interruptions > 1
        if self._batch_change is not None:
            if self._batch_change.done():
                await self._changed(sender, self._batch_change)
            elif self._outcome.stopped_by is not None and self._segment is None:
                return True  # nothing is in flight during a restart
            return False
        drained = report.state is LoadPhase.FINISHED and (self._begun or self._outcome.stopped_by is not None)
        if not self._segments:
            return drained
        batch = self._segments[0].max_num_seqs
        if drained or (report.state is LoadPhase.DRAINING and not self._must_drain(batch)):
            await self._move_on(sender, batch)
        return False

    @property
    def _begun(self) -> bool:
        """The segment in force has begun: a report from before that speaks of the one before it."""
        restarting = self._batch_command is not None
        return restarting or self._segment is None or self._stage >= self._segment.stages[0][0]

    async def _move_on(self, sender: LoadSenders, batch: int | None) -> None:
        if batch is None or batch == self._max_num_seqs:
            await self._begin_next(sender)
            return
        how = "restarting the engine" if self._engine.needs_restart else "changing it while it runs"
        self._recording.note(Severity.INFO, "engine", text=f"max_num_seqs {self._max_num_seqs} → {batch}: {how}")
        self._segment = None
        self._batch_change = asyncio.ensure_future(self._engine.change_batch(batch))

    def _must_drain(self, batch: int | None) -> bool:
        changes = batch is not None and batch != self._max_num_seqs
        return self._config.drain_at_stages or (changes and self._engine.needs_restart)

    async def _begin_next(self, sender: LoadSenders) -> None:
        self._segment = self._segments.popleft()
        await sender.begin(
            LoadPlan(
                begin=self._clock.now() + BEGIN_AHEAD,
                segments=self._segment.stages,
                drain_at_stages=self._config.drain_at_stages,
                drain_timeout=self._config.drain_timeout,
            )
        )

    # --- what people ask for ---

    async def _apply_new_commands(self, sender: LoadSenders) -> None:
        for command in self._recorder.new_commands():
            match command.action:
                case Action.MARK:
                    self._recording.note(Severity.INFO, "user", text=command.text or "mark")
                    self._recording.reply(command, "marked")
                case Action.SET_MAX_NUM_SEQS:
                    await self._change_batch(sender, command)
                case Action.PREVIOUS_STAGE:
                    await self._go_back(sender, command)
                case Action.STOP | Action.CANCEL:
                    await self._stop(sender, command)
                case _:
                    await sender.command(command)

    async def _apply_stop_requests(self, sender: LoadSenders) -> None:
        wanted = self.stop_requests.action
        if wanted is not None and self._outcome.stopped_by not in (wanted, Action.CANCEL):
            await self._stop(sender, Command(id=0, at=self._clock.now(), action=wanted, source="signal"))

    async def _stop(self, sender: LoadSenders, command: Command) -> None:
        self._segments.clear()
        self._outcome.stopped_by = command.action
        await sender.command(command)

    async def _change_batch(self, sender: LoadSenders, command: Command) -> None:
        batch = int(command.value or 0)
        if batch < 1 or self._batch_change is not None or self._batch_command is not None:
            words = "a batch size is at least 1" if batch < 1 else "a change of batch size is under way"
            self._recording.reply(command, words)
        elif not self._engine.needs_restart:
            self._batch_command = command
            self._batch_change = asyncio.ensure_future(self._engine.change_batch(batch))
        elif self._config.engine.url is not None:
            self._recording.reply(command, "an attached engine keeps its batch size: change the concurrency instead")
        else:
            self._batch_command = command
            # the stage in force again, and what follows, as new stages
            self._segments = deque(self._stage_plan.again(self._stage, max_num_seqs=batch))
            await sender.command(Command(id=0, at=self._clock.now(), action=Action.STOP, source="restart"))

    async def _go_back(self, sender: LoadSenders, command: Command) -> None:
        """Play the stage before the one in force, and what follows it, as new stages."""
        if self._batch_change is not None or self._batch_command is not None:
            self._recording.reply(command, "a change of batch size is under way")
        elif self._outcome.stopped_by is not None:
            self._recording.reply(command, "the run is being stopped")
        elif back := self._stage_plan.before(self._stage):
            self._segments = deque(back)
            self._recording.reply(command, f"back to {back[0].stages[0][1].label}")
            await sender.command(Command(id=0, at=self._clock.now(), action=Action.STOP, source="previous stage"))
        else:
            self._recording.reply(command, "this is the first stage")

    async def _changed(self, sender: LoadSenders, change: asyncio.Task[EngineFacts]) -> None:
        command, self._batch_change, self._batch_command = self._batch_command, None, None
        try:
            self._set_engine_facts(change.result())
        except EngineError as error:
            if command is None or self._segment is None:
                raise  # the engine did not come back
            self._recording.reply(command, str(error))
            return
        if command is not None:
            self._recording.reply(command, f"batch size {self._max_num_seqs}")
        if self._segment is None and self._segments:
            await self._begin_next(sender)

    # --- the end ---

    async def _wind_down(self) -> None:
        self._winding_down = True
        if self._batch_change is not None:
            self._batch_change.cancel()
            await asyncio.wait({self._batch_change})
        self._first_sender.end_unused()
        if self._sender is not None:
            await self._sender.close()
        await self._engine.final_scrape()
        self._recording.commit(None)  # before the engine is stopped: that may take a while
        await self._engine.close()
        self._recording.commit(None)
