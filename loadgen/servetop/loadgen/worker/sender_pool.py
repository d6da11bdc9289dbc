"""Several senders behind the interface of one: the load is divided among them and their reports are merged.

The senders share nothing but messages and run time. Three things assume that they read one CLOCK_MONOTONIC
(`SenderSetup.origin_ns`): a plan's `begin`, a timed command's `at`, and the merging of ticks by index. Senders on other
machines would need their clocks related to the run's to within a fraction of a tick.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence

from servetop.core.clock import MonotonicClock
from servetop.core.errors import LoadError
from servetop.core.events import Action, Command, Note, RequestRecord, Severity
from servetop.loadgen.messages import SenderReport, SenderSetup, TimedCommand
from servetop.loadgen.worker.plan_split import is_closed_loop, must_drain, split_plan, subplan_for
from servetop.loadgen.worker.report_merge import (
    ReplyMerger,
    merge_in_flight,
    merge_notes,
    merge_ticks,
    new_stages,
    slowest_phase,
)
from servetop.loadgen.worker.saturation import Saturation
from servetop.loadgen.worker.sender_handle import SenderHandle
from servetop.loadgen.worker.sender_state import SenderState, lost_text
from servetop.loadgen.worker.spawn import Spawned
from servetop.workload.stages.plan import LoadPhase, LoadPlan

COMMAND_LEAD = 0.1
"""Seconds from sending a timed command to its time; only a sender with an extreme lag receives it later."""
_BEGIN_LEAD = 0.05
_MARGIN_TICKS = 4
"""A new partition counts from a number that is not reached within this many ticks at the current rate.

All senders skip the prompts in between once: 50 ms at 2,000 requests/s.
"""
_MARGIN = 128
"""Additional numbers per sender, for requests that may have been rendered already."""


class SenderPool:
    """Senders that share one load; created by `start`. Implements LoadSenders."""

    def __init__(
        self, senders: Sequence[SenderState], *, active: int, clock: MonotonicClock, first_number: int
    ) -> None:
        self._senders = senders
        self._active = tuple(range(active))
        self._standby = deque(range(active, len(senders)))
        self._clock = clock
        self._first_number = first_number
        self._saturation = Saturation()
        self._full_reported = False
        self._subplans: deque[LoadPlan] = deque()
        """The rest of the plan after the current subplan."""
        self._subplan: LoadPlan | None = None
        self._stopped = self._sending = False
        """`_sending`: the senders are sending the requests of a plan, as of the last tick."""
        self._skipped = 0
        """Numbers that are left out at the next begin, because some senders may have used them."""
        self._reported_stages: set[int] = set()
        self._replies = ReplyMerger()
        self._received: asyncio.Queue[tuple[SenderState, SenderReport | LoadError | None]] = asyncio.Queue()
        self._own_replies: list[Command] = []
        self._own_notes: list[Note] = []
        self._deaths: list[str] = []
        self._lost: list[RequestRecord] = []
        self._last_command_at = 0.0

    @classmethod
    async def start(
        cls, argv: Sequence[str], setup: SenderSetup, *, workers: int, active: int = 0, spawned: Spawned | None = None
    ) -> SenderPool:
        """Start `workers` senders, the first `active` of them active (0: all), the others on standby."""
        count = active or workers
        first = tuple(range(count))
        setups = [dataclasses.replace(setup, worker=each, workers=workers, active=first) for each in range(workers)]
        processes = await SenderHandle.start_all(argv, setups, spawned=spawned)
        senders = [SenderState(number, process) for number, process in enumerate(processes)]
        clock = MonotonicClock(setup.origin_ns)
        return cls(senders, active=count, clock=clock, first_number=setup.first_id)

    @property
    def pids(self) -> tuple[int, ...]:
        """Process ids of the living senders."""
        return tuple(sender.process.pid for sender in self._alive)

    @property
    def _alive(self) -> list[SenderState]:
        return [sender for sender in self._senders if sender.alive]

    # --- plans and commands ---

    async def begin(self, plan: LoadPlan) -> None:
        """Start a plan as soon as all senders are up."""
        self._stopped = False
        self._skipped = self._margin() if self._sending else 0
        self._subplans = deque(split_plan(plan))
        self._subplan = None
        await self._begin_if_ready()

    async def _begin_if_ready(self) -> None:
        if self._subplan is None and self._subplans and all(sender.has_reported for sender in self._alive):
            await self._begin_subplan(self._subplans.popleft())

    async def _begin_subplan(self, subplan: LoadPlan) -> None:
        """Send each sender its part; all begin at one time and count from one number."""
        begin = max(subplan.begin, self._clock.now() + _BEGIN_LEAD)
        first, self._skipped = self._next_number() + self._skipped, 0
        self._subplan = dataclasses.replace(subplan, begin=begin, first_number=first)
        for sender in self._alive:
            part = subplan_for(self._subplan, sender.worker, self._active)
            sender.playing = part is not None
            if part is not None:
                await self._send(sender.process.begin(part))

    def _next_number(self) -> int:
        return max(self._first_number, *(sender.next_number for sender in self._senders))

    async def command(self, command: Command) -> None:
        """Send a command that all senders apply at one time, a tenth of a second from now."""
        if command.action in (Action.STOP, Action.CANCEL):
            self._stopped = True
            self._subplans.clear()
        rate = math.inf if command.action is Action.CLOSE_LOOP else command.value
        if command.action in (Action.SET_RATE, Action.OPEN_LOOP, Action.CLOSE_LOOP) and self._changes_loop(rate):
            reply = "not possible: the requests of this stage are already divided among several senders"
            self._own_replies.append(dataclasses.replace(command, applied_at=self._clock.now(), reply=reply))
            return
        await self._send_timed(self._timed(command=command))

    def _changes_loop(self, rate: float | None) -> bool:
        """Whether a rate would open or close the loop of a stage whose number of requests was divided for the other."""
        stages = {} if self._subplan is None else dict(self._subplan.segments)
        stage = stages.get(max(self._reported_stages, default=-1))
        if stage is None or stage.num_prompts is None or rate is None:
            return False
        return is_closed_loop(stage) != math.isinf(rate)

    def _timed(self, *, active: tuple[int, ...] | None = None, command: Command | None = None) -> TimedCommand:
        self._last_command_at = max(self._last_command_at, self._clock.now() + COMMAND_LEAD)
        number_from = self._next_number() + self._margin()
        return TimedCommand(at=self._last_command_at, number_from=number_from, active=active, command=command)

    def _margin(self) -> int:
        """Return how many numbers the senders may use before a message reaches all of them."""
        most_started = max(max(sender.started_per_tick) for sender in self._senders)
        return len(self._senders) * (_MARGIN + _MARGIN_TICKS * most_started)

    async def _activate(self, active: tuple[int, ...]) -> None:
        self._active = active
        await self._send_timed(self._timed(active=active))

    async def _send_timed(self, timed: TimedCommand) -> None:
        await asyncio.gather(*(self._send(sender.process.timed_command(timed)) for sender in self._alive))

    @staticmethod
    async def _send(sending: Coroutine[None, None, None]) -> None:
        """Await sending a message; the death of the sender is handled where its reports are received."""
        with contextlib.suppress(LoadError):
            await sending

    # --- reports ---

    async def reports(self) -> AsyncIterator[SenderReport]:
        """Yield one merged report per tick until `close`; LoadError if the last sender dies."""
        receiving = [asyncio.ensure_future(self._receive(sender)) for sender in self._senders]
        try:
            while (received := await self._received.get())[1] is not None:
                await self._handle(*received)
                for reports in self._complete_ticks():
                    yield await self._merge(reports)
        finally:
            for task in receiving:
                task.cancel()

    async def _receive(self, sender: SenderState) -> None:
        try:
            async for report in sender.process.reports():
                self._received.put_nowait((sender, report))
            self._received.put_nowait((sender, None))
        except LoadError as error:
            self._received.put_nowait((sender, error))

    async def _handle(self, sender: SenderState, received: SenderReport | LoadError | None) -> None:
        if isinstance(received, LoadError):
            await self._handle_death(sender, received)
        elif received is not None:
            sender.add(received)
        await self._begin_if_ready()

    def _complete_ticks(self) -> Iterator[dict[int, SenderReport]]:
        """Yield the reports by sender of each tick that all living senders have reported."""
        while all(sender.reports for sender in self._alive):
            index = min(sender.reports[0].tick.index for sender in self._senders if sender.reports)
            yield {
                sender.worker: sender.reports.popleft()
                for sender in self._senders
                if sender.reports and sender.reports[0].tick.index == index
            }

    async def _merge(self, reports: dict[int, SenderReport]) -> SenderReport:
        state = await self._advance(reports)
        self._sending = state is LoadPhase.RUNNING
        await self._scale_up(reports)
        lost, notes, deaths = self._lost, self._own_notes, self._deaths
        self._lost, self._own_notes, self._deaths = [], [], []
        return SenderReport(
            state=state,
            tick=merge_ticks(reports, lost=len(lost)),
            records=(*(record for report in reports.values() for record in report.records), *lost),
            in_flight=merge_in_flight(reports),
            stages=tuple(new_stages(reports, self._reported_stages)),
            notes=(*merge_notes(reports), *notes),
            replies=tuple(self._complete_replies(reports)),
            deaths=tuple(deaths),
        )

    async def _advance(self, reports: dict[int, SenderReport]) -> LoadPhase:
        """Return the slowest sender's phase; begin the next subplan once all senders have finished this one."""
        subplan = self._subplan
        players = [sender.worker for sender in self._alive if sender.playing]
        if subplan is None or self._stopped:
            return slowest_phase([report.state for report in reports.values()])
        first = subplan.segments[0][0]
        if any(worker not in reports or reports[worker].tick.gauges.stage < first for worker in players):
            return LoadPhase.RUNNING
        phase = slowest_phase([reports[worker].state for worker in players])
        if not self._subplans:
            return phase
        if phase is LoadPhase.FINISHED or (phase is LoadPhase.DRAINING and not must_drain(subplan)):
            await self._begin_subplan(self._subplans.popleft())
        return LoadPhase.RUNNING

    def _complete_replies(self, reports: dict[int, SenderReport]) -> Iterator[Command]:
        own, self._own_replies = self._own_replies, []
        yield from own
        self._replies.add(reports)
        playing = {sender.worker for sender in self._senders if sender.playing}
        yield from self._replies.complete(alive={sender.worker for sender in self._alive}, playing=playing)

    # --- active senders ---

    async def _handle_death(self, sender: SenderState, death: LoadError) -> None:
        """Record the requests of a sender that died as lost and let the others take over; LoadError if none is left."""
        sender.alive = False
        if not self._alive:
            raise death
        lost = sender.take_lost()
        self._lost += lost
        text = f"sender {sender.worker} died (exit code {sender.process.returncode}): {lost_text(lost)}"
        self._note(Severity.WARNING, text)
        self._deaths += [text] if sender.worker in self._active else []
        active = tuple(worker for worker in self._active if worker != sender.worker)
        if sender.worker in self._standby:
            self._standby.remove(sender.worker)
        elif self._standby:
            active = (*active, self._standby.popleft())
        await self._activate(active)

    async def _scale_up(self, reports: dict[int, SenderReport]) -> None:
        """Activate one more sender if the active ones have been saturated for a while."""
        text = self._saturation.update({worker: reports[worker].tick for worker in self._active if worker in reports})
        if text is None:
            return
        if self._standby:
            added = self._standby.popleft()
            await self._activate((*self._active, added))
            self._note(Severity.INFO, f"{text}: sender {added} added, {len(self._active)} are active now")
        elif not self._full_reported:
            self._full_reported = True
            self._note(Severity.WARNING, f"{text}: the load exceeds what these senders can do")

    def _note(self, severity: Severity, text: str) -> None:
        self._own_notes.append(Note(at=self._clock.now(), severity=severity, source="load", text=text))

    async def close(self) -> None:
        """End all senders; what they have not reported is lost."""
        await asyncio.gather(*(sender.process.close() for sender in self._senders))
