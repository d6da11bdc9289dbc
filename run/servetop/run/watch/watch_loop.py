"""Watches one server, or several, to the end: attach, read metrics, record them, and wait for a server that is gone.

Nothing is sent but GET requests for the pages by which the engine is recognised, its health and its metrics.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Protocol

from servetop.core.clock import MonotonicClock
from servetop.core.config import RunConfig
from servetop.core.config_values.watch_config import WatchConfig
from servetop.core.errors import EngineError, ExitCode, ServetopError
from servetop.core.events import Action, Command, RunEnd, Severity
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.text import formats
from servetop.core.tick import TICK_SECONDS, ClientTick
from servetop.engines.control.retry_delay import retry_delay
from servetop.engines.handle import LaunchedServer
from servetop.recordings.write.recorder import Recorder
from servetop.recordings.write.resume import RunStart
from servetop.run.loop.engine_session import EngineSession
from servetop.run.loop.engine_update import RecordedEngine
from servetop.run.loop.tick_recorder import Alert, TickRecorder
from servetop.run.outcome import Outcome, RunPhase
from servetop.run.stop_requests import StopRequests
from servetop.run.watch.episode_commands import EpisodeCommands, command_words
from servetop.run.watch.episode_hook import EpisodeHook
from servetop.run.watch.watched_fleet import WatchedFleet
from servetop.run.watch.watched_replica import SAMPLE_PERIOD


class WatchedEngine(RecordedEngine, Protocol):
    """A watched server, or several."""

    @property
    def dead(self) -> bool:
        """Whether the server stopped responding; several are waited for one by one."""
        ...

    async def start(self) -> EngineFacts:
        """Attach; EngineError if that fails."""
        ...

    def first_launched(self) -> LaunchedServer | None:
        """Return None: a watch starts no engine."""
        ...

    def death(self) -> EngineError:
        """Return why a server stopped responding."""
        ...

    async def final_scrape(self) -> None:
        """Read the last values of its counters."""
        ...

    async def stop(self) -> None:
        """Detach."""
        ...

    async def close(self) -> None:
        """Detach, at the end."""
        ...


class WatchLoop:
    """Drives one watch: call `run` once; `stop_requests` may be used from a signal handler."""

    def __init__(self, config: RunConfig, recorder: Recorder, *, start: RunStart, alert: Alert) -> None:
        self._settings = config.watch or WatchConfig()
        self._recorder = recorder
        recorder.downsample(keep=self._settings.keep)
        self._clock = MonotonicClock(start.anchor.origin_ns)
        self._engine: WatchedEngine = (
            WatchedFleet(config, self._clock, on_facts=self._take_facts)
            if self._settings.several
            else EngineSession(
                config.engine,
                self._clock,
                workload=config.workload,
                sample_period=SAMPLE_PERIOD,
                watched=True,
            )
        )
        self.ticks = TickRecorder(recorder, self._engine, clock=self._clock, alert=alert)
        self.warn = partial(self.ticks.note, Severity.WARNING)
        self._outcome = Outcome()
        self.stop_requests = StopRequests(self._outcome, lambda why: self.ticks.note(Severity.INFO, "run", text=why))
        self.first_launched = self._engine.first_launched
        """Returns None: a watch starts no engine."""
        self.engine_name = ""
        """Name of the engine; empty until it is recognised."""
        self._facts: EngineFacts | None = None
        self._of_all: EngineFacts | None = None
        """What is known of several servers together; None of a single one, and until a second one responds."""
        self._attaching: asyncio.Future[EngineFacts] | None = None
        self._attached_at: float | None = None
        self._silent_since: float | None = None
        self._retry_at = 0.0
        self._tick_index = start.first_tick
        self._origin = start.anchor.wall_epoch_s
        self._hook: EpisodeHook | None = None
        self._stopped = self._winding_down = False

    @property
    def phase(self) -> RunPhase:
        """The current phase."""
        if self._winding_down:
            return RunPhase.STOPPING
        return RunPhase.BOOTING if self._facts is None else RunPhase.RUNNING

    async def run(self) -> RunEnd:
        """Watch to the end; errors are reported by the RunEnd, not raised."""
        failure: ServetopError | None = None
        try:
            await self._watch()
        except ServetopError as error:
            failure = error
            self.ticks.note(Severity.ERROR, "run", text=str(error))
        await self._wind_down()
        return self._end(failure)

    def _end(self, failure: ServetopError | None) -> RunEnd:
        """Return the end: a watch that was stopped ended as planned, unless it never saw its server."""
        at = self._clock.now()
        if failure is not None:
            return RunEnd(at=at, exit_code=int(failure.exit_code), reason=str(failure))
        if self._facts is None:
            return RunEnd(at=at, exit_code=int(ExitCode.INTERRUPTED), reason="interrupted")
        return RunEnd(at=at, exit_code=int(ExitCode.OK), reason="")

    async def _watch(self) -> None:
        """Record ticks until the end; EngineError if the first attempt to attach fails."""
        self._hook = self._new_hook()
        self._attaching = asyncio.ensure_future(self._engine.start())
        while not self._is_over:
            await self._tick()
            if self._attaching is not None:
                self._take_attached()
            elif self._engine.dead:
                await self._lose_server()
            elif self._silent_since is not None and self._clock.now() >= self._retry_at:
                self._attaching = asyncio.ensure_future(self._engine.start())

    def _new_hook(self) -> EpisodeHook | None:
        """Begin to run the command of `--on-episode`, if there is one; UsageError if it cannot be run."""
        if not self._settings.on_episode:
            return None
        words = command_words(self._settings.on_episode)
        commands = EpisodeCommands(words, origin=self._origin, note=self._warn_of_command)
        return EpisodeHook(self._recorder.path, commands, note=self._warn_of_command)

    def _warn_of_command(self, text: str) -> None:
        self.warn("on-episode", text=text)

    @property
    def _is_over(self) -> bool:
        duration = self._settings.duration
        timed_out = duration is not None and self._attached_at is not None
        ended = timed_out and self._clock.now() >= (self._attached_at or 0.0) + (duration or 0.0)
        return self._stopped or self.stop_requests.action is not None or ended

    async def _tick(self) -> None:
        """Wait for the end of the current tick, record it, and answer commands."""
        await self._clock.sleep_until((self._tick_index + 1) * TICK_SECONDS)
        while (self._tick_index + 1) * TICK_SECONDS <= self._clock.now():
            self.ticks.commit(ClientTick(index=self._tick_index))
            self._tick_index += 1
        for command in self._recorder.new_commands():
            self._apply(command)

    def _apply(self, command: Command) -> None:
        match command.action:
            case Action.STOP | Action.CANCEL:
                self._stopped = True
                self.ticks.reply(command, "the watch ends")
            case Action.MARK:
                self.ticks.note(Severity.INFO, "user", text=command.text or "mark")
                self.ticks.reply(command, "marked")
            case _:
                self.ticks.reply(command, "a watch sends no load")

    def _take_attached(self) -> None:
        """Take the result of an attempt to attach, if there is one; a later one that failed is repeated."""
        attaching = self._attaching
        if attaching is None or not attaching.done():
            return
        self._attaching = None
        try:
            facts = attaching.result()
        except EngineError:
            if self._silent_since is None:
                raise
            self._retry_at = self._clock.now() + retry_delay(self._clock.now() - self._silent_since)
            return
        self._note_return(facts)
        facts = self._of_all or facts  # a second server may have responded since the first one did
        self.ticks.set_engine(facts)
        self._facts, self.engine_name = facts, facts.name
        self._attached_at = self._clock.now() if self._attached_at is None else self._attached_at

    def _take_facts(self, facts: EngineFacts) -> None:
        """Record what is known of several servers together, which changes while they are watched."""
        self._of_all = facts
        self.ticks.set_engine(facts)

    def _note_return(self, facts: EngineFacts) -> None:
        if self._silent_since is None or self._facts is None:
            return
        seconds = formats.clock(self._clock.now() - self._silent_since)
        before, now = (f"{each.title} {each.version or ''} with {each.model}" for each in (self._facts, facts))
        changed = f", now {now} instead of {before}" if before != now else ""
        text = f"the server responds again after {seconds}{changed}"
        self._silent_since = None
        self.ticks.note(Severity.INFO, "engine", text=text)

    async def _lose_server(self) -> None:
        """Note that the server is gone, and begin to wait for it."""
        self._silent_since = self._clock.now()
        self._retry_at = self._silent_since + retry_delay(0.0)
        self.warn("engine", text=f"{self._engine.death()}: the watch waits for it")
        await self._engine.stop()

    async def _wind_down(self) -> None:
        self._winding_down = True
        if self._attaching is not None:
            self._attaching.cancel()
            await asyncio.wait({self._attaching})
        if self._hook is not None:
            await self._hook.close()
        await self._engine.final_scrape()
        self.ticks.commit(None)
        await self._engine.close()
        self.ticks.commit(None)
