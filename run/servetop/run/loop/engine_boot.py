"""Starts the engine before the load, while the run commits ticks without a load."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from servetop.core.clock import Clock
from servetop.core.errors import EngineError
from servetop.core.events import Action
from servetop.core.interfaces.run_source import EngineFacts
from servetop.core.tick import TICK_SECONDS, ClientTick
from servetop.recordings.write.recorder import Recorder
from servetop.run.loop.cell_failures import CellFailures
from servetop.run.loop.engine_session import EngineSession
from servetop.run.loop.stage_plan import EngineNeeds, Segment
from servetop.run.loop.tick_recorder import TickRecorder
from servetop.run.stop_requests import StopRequests


class EngineBoot:
    """Starts the engine as often as its run wants; `next_tick` is the number of the next tick."""

    def __init__(
        self, engine: EngineSession, ticks: TickRecorder, recorder: Recorder, *, clock: Clock, first_tick: int
    ) -> None:
        self.next_tick = first_tick
        self._engine = engine
        self._ticks = ticks
        self._recorder = recorder
        self._clock = clock

    async def start(
        self, segments: deque[Segment], failures: CellFailures, stop_requests: StopRequests
    ) -> EngineFacts | None:
        """Start the engine for the first segment for which it starts, or attach to it; None if that was cancelled.

        EngineError if it fails, unless the run continues.
        """
        while True:
            try:
                return await self._start(segments[0].needs, stop_requests)
            except EngineError as error:
                failures.skip_engine(error, segments)

    async def _start(self, needs: EngineNeeds, stop_requests: StopRequests) -> EngineFacts | None:
        booting: asyncio.Future[EngineFacts] = asyncio.ensure_future(self._engine.start(needs))
        while not booting.done():
            await self._idle_tick(booting, stop_requests)
            if stop_requests.action is not None:
                booting.cancel()
                await asyncio.wait({booting})
        return None if booting.cancelled() else booting.result()

    async def _idle_tick(self, booting: asyncio.Future[EngineFacts], stop_requests: StopRequests) -> None:
        """Commit ticks without load, until the current one ends or the engine has started."""
        sleep: asyncio.Future[Any] = asyncio.create_task(self._clock.sleep_until((self.next_tick + 1) * TICK_SECONDS))
        await asyncio.wait({sleep, booting}, return_when=asyncio.FIRST_COMPLETED)
        sleep.cancel()
        while (self.next_tick + 1) * TICK_SECONDS <= self._clock.now():
            self._ticks.commit(ClientTick(index=self.next_tick))
            self.next_tick += 1
        for command in self._recorder.new_commands():
            if command.action in (Action.STOP, Action.CANCEL):
                stop_requests.cancel()
            self._ticks.reply(command, "the engine is still loading")
