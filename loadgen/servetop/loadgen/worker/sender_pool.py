"""Several senders behind the interface of one: the schedule is dealt out, and their reports become one a tick.

The senders share nothing but messages and run time. That they read one CLOCK_MONOTONIC (`SenderSetup.origin_ns`) is
assumed in three places: a plan's `begin`, an order's `at`, and the merging of ticks by index. Senders on other machines
would need their clocks related to the run's to within a fraction of a tick.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import math
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field

from servetop.core.clock import MonotonicClock
from servetop.core.errors import LoadError
from servetop.core.events import Action, Command, Note, RequestRecord, Severity
from servetop.loadgen.messages import BegunRequest, SenderReport, SenderSetup, TimedCommand
from servetop.loadgen.worker.plan_split import is_closed, must_drain, pieces_of, share_of
from servetop.loadgen.worker.report_merge import (
    lost_record,
    lost_words,
    merged_notes,
    merged_tick,
    new_stages,
    one_reply,
    slowest,
)
from servetop.loadgen.worker.saturation import Saturation
from servetop.loadgen.worker.sender_handle import SenderHandle
from servetop.loadgen.worker.spawn import Spawned
from servetop.workload.plan import LoadPhase, LoadPlan

LEAD = 0.1
"""Seconds from giving an order to its time: all senders have heard of it by then, unless they lag beyond belief."""
_BEGIN_LEAD = 0.05
_MARGIN_TICKS = 4
"""An order that deals anew does so from a number that is not reached within so many ticks at the present pace.

Whose prompts are drawn one after the other, all senders pass over those in between, once: 50 ms at 2,000 requests/s.
"""
_MARGIN = 128
"""And so many requests a sender, which may have been prepared already."""


@dataclass(eq=False)
class SenderState:
    """One sender of a fleet, as far as its reports tell."""

    worker: int
    process: SenderHandle
    reports: deque[SenderReport] = field(default_factory=deque)
    """Not merged yet."""
    heard_of: bool = False
    alive: bool = True
    playing: bool = False
    """It has a part in the piece that is being played."""
    in_flight: dict[int, BegunRequest] = field(default_factory=dict)
    """By number, held back ones included."""
    next_number: int = 0
    begun: deque[int] = field(default_factory=lambda: deque([0], maxlen=8))
    """Requests that it began in each of the last two seconds' ticks."""

    def take(self, report: SenderReport) -> None:
        """Keep books of a report."""
        self.heard_of = True
        self.reports.append(report)
        self.in_flight.update((begun.number, begun) for begun in report.begun)
        for record in report.records:
            self.in_flight.pop(record.id, None)
        self.next_number = report.next_number
        self.begun.append(len(report.begun))


class SenderPool:
    """Senders that play one load together; made by `start`. Its methods are those of SenderHandle."""

    def __init__(
        self, members: Sequence[SenderState], *, at_work: int, clock: MonotonicClock, first_number: int
    ) -> None:
        self._members = members
        self._active = tuple(range(at_work))
        self._standing_by = deque(range(at_work, len(members)))
        self._clock = clock
        self._first_number = first_number
        self._strain = Saturation()
        self._said_full = False
        self._pieces: deque[LoadPlan] = deque()
        self._piece: LoadPlan | None = None
        self._stopped = False
        self._told: set[int] = set()
        self._replies: dict[int, list[tuple[int, Command]]] = {}
        self._news: asyncio.Queue[tuple[SenderState, SenderReport | LoadError | None]] = asyncio.Queue()
        self._own_replies: list[Command] = []
        self._own_notes: list[Note] = []
        self._deaths: list[str] = []
        self._lost: list[RequestRecord] = []
        self._last_order = 0.0

    @classmethod
    async def start(
        cls, argv: Sequence[str], setup: SenderSetup, *, workers: int, at_work: int = 0, spawned: Spawned | None = None
    ) -> SenderPool:
        """So many senders, the first `at_work` of them at work (0: all), the others standing by to join in."""
        at_work = at_work or workers
        active = tuple(range(at_work))
        setups = [dataclasses.replace(setup, worker=each, workers=workers, active=active) for each in range(workers)]
        processes = await SenderHandle.start_all(argv, setups, spawned=spawned)
        members = [SenderState(number, process) for number, process in enumerate(processes)]
        clock = MonotonicClock(setup.origin_ns)
        return cls(members, at_work=at_work, clock=clock, first_number=setup.first_id)

    @property
    def pids(self) -> tuple[int, ...]:
        """Of the senders that live."""
        return tuple(member.process.pid for member in self._alive)

    @property
    def _alive(self) -> list[SenderState]:
        return [member for member in self._members if member.alive]

    # --- what it is told ---

    async def begin(self, plan: LoadPlan) -> None:
        """See SenderHandle; the load begins when all senders are up."""
        self._stopped = False
        self._pieces = deque(pieces_of(plan))
        self._piece = None
        await self._deal_if_ready()

    async def _deal_if_ready(self) -> None:
        if self._piece is None and self._pieces and all(member.heard_of for member in self._alive):
            await self._deal(self._pieces.popleft())

    async def _deal(self, piece: LoadPlan) -> None:
        """Each gets its part, all with one beginning, and count on from one number."""
        begin = max(piece.begin, self._clock.now() + _BEGIN_LEAD)
        self._piece = dataclasses.replace(piece, begin=begin, first_number=self._reached())
        for member in self._alive:
            part = share_of(self._piece, member.worker, self._active)
            member.playing = part is not None
            if part is not None:
                await self._quietly(member.process.begin(part))

    def _reached(self) -> int:
        return max(self._first_number, *(member.next_number for member in self._members))

    async def command(self, command: Command) -> None:
        """See SenderHandle; all senders obey as of one instant, a tenth of a second from now."""
        if command.action in (Action.STOP, Action.CANCEL):
            self._stopped = True
            self._pieces.clear()
        rate = math.inf if command.action is Action.CLOSE_LOOP else command.value
        if command.action in (Action.SET_RATE, Action.OPEN_LOOP, Action.CLOSE_LOOP) and self._would_turn(rate):
            words = "the requests of this stage are shared out among several senders: its loop stays as it is"
            self._own_replies.append(dataclasses.replace(command, obeyed_at=self._clock.now(), reply=words))
            return
        order = self._order()
        await asyncio.gather(*(self._quietly(each.process.command(command, order)) for each in self._alive))

    def _would_turn(self, rate: float | None) -> bool:
        """A rate that would open or close the loop of a stage whose number of requests was shared out for the other."""
        stages = {} if self._piece is None else dict(self._piece.segments)
        stage = stages.get(max(self._told, default=-1))
        if stage is None or stage.num_prompts is None or rate is None:
            return False
        return is_closed(stage) != math.isinf(rate)

    def _order(self, active: tuple[int, ...] | None = None) -> TimedCommand:
        self._last_order = max(self._last_order, self._clock.now() + LEAD)
        pace = max(max(member.begun) for member in self._members)
        margin = len(self._members) * (_MARGIN + _MARGIN_TICKS * pace)
        return TimedCommand(at=self._last_order, number_from=self._reached() + margin, active=active)

    async def _work_with(self, active: tuple[int, ...]) -> None:
        self._active = active
        order = self._order(active)
        await asyncio.gather(*(self._quietly(each.process.order(order)) for each in self._alive))

    @staticmethod
    async def _quietly(telling: Coroutine[None, None, None]) -> None:
        """A sender that died is noticed by whoever listens to it."""
        with contextlib.suppress(LoadError):
            await telling

    # --- what it tells ---

    async def reports(self) -> AsyncIterator[SenderReport]:
        """One report a tick until `close`; LoadError when the last sender dies."""
        listening = [asyncio.ensure_future(self._listen(member)) for member in self._members]
        try:
            while (news := await self._news.get())[1] is not None:
                await self._take(*news)
                for parts in self._complete():
                    yield await self._merged(parts)
        finally:
            for task in listening:
                task.cancel()

    async def _listen(self, member: SenderState) -> None:
        try:
            async for report in member.process.reports():
                self._news.put_nowait((member, report))
            self._news.put_nowait((member, None))
        except LoadError as error:
            self._news.put_nowait((member, error))

    async def _take(self, member: SenderState, news: SenderReport | LoadError | None) -> None:
        if isinstance(news, LoadError):
            await self._bury(member, news)
        elif news is not None:
            member.take(news)
        await self._deal_if_ready()

    def _complete(self) -> Iterator[dict[int, SenderReport]]:
        """Ticks of which all living senders have told, each with the reports by sender."""
        while all(member.reports for member in self._alive):
            index = min(member.reports[0].tick.index for member in self._members if member.reports)
            yield {
                member.worker: member.reports.popleft()
                for member in self._members
                if member.reports and member.reports[0].tick.index == index
            }

    async def _merged(self, parts: dict[int, SenderReport]) -> SenderReport:
        state = await self._state(parts)
        await self._relieve(parts)
        lost, notes, deaths = self._lost, self._own_notes, self._deaths
        self._lost, self._own_notes, self._deaths = [], [], []
        return SenderReport(
            state=state,
            tick=merged_tick(parts, lost=len(lost)),
            records=(*(record for report in parts.values() for record in report.records), *lost),
            stages=tuple(new_stages(parts, self._told)),
            notes=(*merged_notes(parts), *notes),
            replies=tuple(self._complete_replies(parts)),
            deaths=tuple(deaths),
        )

    async def _state(self, parts: dict[int, SenderReport]) -> LoadPhase:
        """The slowest sender's; while pieces are left, the load goes on with the next one."""
        piece = self._piece
        players = [each.worker for each in self._alive if each.playing]
        if piece is None or self._stopped:
            return slowest([report.state for report in parts.values()])
        first = piece.segments[0][0]
        if any(worker not in parts or parts[worker].tick.gauges.stage < first for worker in players):
            return LoadPhase.RUNNING
        state = slowest([parts[worker].state for worker in players])
        if not self._pieces:
            return state
        if state is LoadPhase.FINISHED or (state is LoadPhase.DRAINING and not must_drain(piece)):
            await self._deal(self._pieces.popleft())
        return LoadPhase.RUNNING

    def _complete_replies(self, parts: dict[int, SenderReport]) -> Iterator[Command]:
        own, self._own_replies = self._own_replies, []
        yield from own
        for worker, report in parts.items():
            for reply in report.replies:
                self._replies.setdefault(reply.id, []).append((worker, reply))
        for key, replies in list(self._replies.items()):
            if {member.worker for member in self._alive} <= {worker for worker, _ in replies}:
                del self._replies[key]
                players = [reply for worker, reply in replies if self._members[worker].playing]
                yield one_reply(players or [reply for _, reply in replies])

    # --- who is at work ---

    async def _bury(self, member: SenderState, death: LoadError) -> None:
        """Its requests in flight are lost; the others go on with its share. LoadError when there are no others."""
        member.alive = False
        if not self._alive:
            raise death
        lost = [lost_record(begun, worker=member.worker) for begun in member.in_flight.values()]
        member.in_flight.clear()
        self._lost += lost
        words = f"sender {member.worker} died (exit code {member.process.returncode}): {lost_words(lost)}"
        self._own_notes.append(self._note(Severity.WARNING, words))
        self._deaths += [words] if member.worker in self._active else []
        active = tuple(worker for worker in self._active if worker != member.worker)
        if member.worker in self._standing_by:
            self._standing_by.remove(member.worker)
        elif self._standing_by:
            active = (*active, self._standing_by.popleft())
        await self._work_with(active)

    async def _relieve(self, parts: dict[int, SenderReport]) -> None:
        """Let one more sender join in when those at work have been at their limit for a while."""
        words = self._strain.take({worker: parts[worker].tick for worker in self._active if worker in parts})
        if words is None:
            return
        if self._standing_by:
            joining = self._standing_by.popleft()
            await self._work_with((*self._active, joining))
            words += f": sender {joining} joins in, {len(self._active)} are at work now"
            self._own_notes.append(self._note(Severity.INFO, words))
        elif not self._said_full:
            self._said_full = True
            self._own_notes.append(self._note(Severity.WARNING, f"{words}: the load is more than these senders can do"))

    def _note(self, severity: Severity, text: str) -> Note:
        return Note(at=self._clock.now(), severity=severity, source="load", text=text)

    async def close(self) -> None:
        """End all senders; what they have not reported is lost."""
        await asyncio.gather(*(member.process.close() for member in self._members))
